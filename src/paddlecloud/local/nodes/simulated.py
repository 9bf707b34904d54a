"""The kubelet of all simulated nodes: pods go through their phases without processes, one status write per step.

Steps that fall due together are written together. What a pod's next step is follows from its object alone (annotation,
status, deletion), so a restart of the platform goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging

from paddlecloud.kube import errors
from paddlecloud.kube.client import PATCH_TYPES, Client
from paddlecloud.kube.clock import Clock, sleep_until_set
from paddlecloud.kube.pods import ENDED, phase_of
from paddlecloud.kube.resource import PODS, Key, Object, key_of
from paddlecloud.local.nodes import lives
from paddlecloud.local.nodes.lives import LifeError, life_of
from paddlecloud.local.nodes.marks import FAILED, NODE_KIND, SIMULATED
from paddlecloud.local.scheduler.controller.watches import ON_NODE, Watches

log = logging.getLogger(__name__)

CONCURRENCY = 64
LEAST_RUN = 1.0
"""Seconds between two starts of a container that is restarted for ever."""


class SimulatedKubelet:
    """`run` works until cancelled."""

    def __init__(self, client: Client, watches: Watches, *, clock: Clock) -> None:
        self._client = client
        self._watches = watches
        self._clock = clock
        self._due: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._begun: dict[str, float] = {}  # uid → exact start of the present run
        self._planned: dict[str, tuple[float, str]] = {}  # uid → (when, phase it was planned in)
        self._addresses = Addresses()
        self._wake = asyncio.Event()
        watches.nodes.on_change(self._on_node)
        watches.pods.on_change(self._on_pod)

    def serves(self, node: str) -> bool:
        """Whether pods of this node are ours: it is simulated, and not lost."""
        obj = self._watches.nodes.cache.get(Key("", node))
        if obj is None:
            return False
        meta = obj["metadata"]
        return (meta.get("labels") or {}).get(NODE_KIND) == SIMULATED and FAILED not in (meta.get("annotations") or {})

    # News

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        """A node that came or came back may have pods that we have seen before it."""
        if new is None or (old is not None and self._same_service(old, new)):
            return
        name = new["metadata"]["name"]
        if self.serves(name):
            for pod in self._watches.pods.cache.by_index(ON_NODE, name):
                self._plan(pod)

    @staticmethod
    def _same_service(old: Object, new: Object) -> bool:
        def mark(obj: Object) -> tuple[object, bool]:
            meta = obj["metadata"]
            return (meta.get("labels") or {}).get(NODE_KIND), FAILED in (meta.get("annotations") or {})

        return mark(old) == mark(new)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                uid = old["metadata"]["uid"]
                self._begun.pop(uid, None)
                self._planned.pop(uid, None)
                self._addresses.release(uid)
            return
        node = new["spec"].get("nodeName")
        if node and self.serves(node):
            self._plan(new)

    def _plan(self, pod: Object) -> None:
        """Put the pod's next step on the calendar, unless it is there already."""
        meta, phase = pod["metadata"], phase_of(pod)
        if ip := (pod.get("status") or {}).get("podIP"):
            self._addresses.reserve(meta["uid"], ip)
        when = self._next_step(pod)
        if when is None:
            return
        state = f"{phase}/{lives.restart_count(pod)}/{bool(meta.get('deletionTimestamp'))}"
        if self._planned.get(meta["uid"], (0.0, ""))[1] == state:
            return
        self._planned[meta["uid"]] = (when, state)
        heapq.heappush(self._due, (when, next(self._order), key_of(pod)))
        self._wake.set()

    def _next_step(self, pod: Object) -> float | None:
        now = self._clock.now()
        if pod["metadata"].get("deletionTimestamp"):
            return now
        phase = phase_of(pod)
        if phase in ENDED:
            return None
        try:
            life = life_of(pod)
        except LifeError:
            return now if not (pod.get("status") or {}).get("containerStatuses") else None
        if phase != "Running":
            return now + life.delay
        if life.run is None:
            return None
        began = self._begun.get(pod["metadata"]["uid"]) or lives.since(pod) or now
        return began + (max(life.run, LEAST_RUN) if lives.restarts(pod, life) else life.run)

    # Steps

    async def run(self) -> None:
        while True:
            await self._wait()
            now = self._clock.now()
            batch: dict[Key, None] = {}
            while self._due and self._due[0][0] <= now:
                batch[heapq.heappop(self._due)[2]] = None
            limit = asyncio.Semaphore(CONCURRENCY)
            await asyncio.gather(*(self._step(limit, key) for key in batch))

    async def _wait(self) -> None:
        """Until something is due."""
        while not self._due or self._due[0][0] > self._clock.now():
            self._wake.clear()
            if self._due:
                left = max(0.0, self._due[0][0] - self._clock.now())
                await sleep_until_set(self._wake, left, self._clock)
            else:
                await self._wake.wait()

    async def _step(self, limit: asyncio.Semaphore, key: Key) -> None:
        pod = self._watches.pods.cache.get(key)
        if pod is None or not self.serves(pod["spec"].get("nodeName") or ""):
            return
        uid = pod["metadata"]["uid"]
        async with limit:
            try:
                if pod["metadata"].get("deletionTimestamp"):
                    await self._client.delete(PODS, key.name, namespace=key.namespace, grace_period=0, uid=uid)
                elif (status := self._status(pod)) is not None:
                    await self._client.raw(  # nobody reads the answer: the pod comes by the watch
                        "PATCH",
                        PODS.path(key.namespace, key.name, "status"),
                        query={"fieldValidation": "Ignore"},
                        body={"metadata": {"uid": uid}, "status": status},
                        content_type=PATCH_TYPES["strategic"],
                    )
            except (errors.NotFound, errors.Conflict):
                return  # gone, or another pod of that name by now
            except errors.ApiError as error:
                log.warning("simulated pod %s: %s; trying again", key, error)
                self._planned.pop(uid, None)
                heapq.heappush(self._due, (self._clock.now() + 1.0, next(self._order), key))

    def _status(self, pod: Object) -> Object | None:
        now = self._clock.now()
        uid = pod["metadata"]["uid"]
        try:
            life = life_of(pod)
        except LifeError as error:
            return lives.confused(pod, error)
        if phase_of(pod) != "Running":
            self._begun[uid] = now
            return lives.running(pod, ip=self._addresses.of(uid), now=now)
        if life.run is None:
            return None
        self._begun.pop(uid, None)
        if lives.restarts(pod, life):
            self._begun[uid] = now
            return lives.running(pod, ip=self._addresses.of(uid), now=now, restart_count=lives.restart_count(pod) + 1)
        return lives.ended(pod, life, now=now)


class Addresses:
    """Addresses for pods that nobody can reach: only that they differ matters."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def of(self, uid: str) -> str:
        while uid not in self._held:
            ip = f"10.{128 + (self._next >> 16 & 127)}.{self._next >> 8 & 255}.{self._next & 255}"
            self._next += 1
            if ip not in self._taken:
                self.reserve(uid, ip)
        return self._held[uid]

    def reserve(self, uid: str, ip: str) -> None:
        if self._held.get(uid) != ip:
            self._held[uid] = ip
            self._taken.add(ip)

    def release(self, uid: str) -> None:
        self._taken.discard(self._held.pop(uid, ""))
