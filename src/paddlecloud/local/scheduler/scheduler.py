"""The scheduler's edge: caches in, bindings and explanations out. What goes where is decided in `decide`.

One round looks at everything that waits. A pod just bound is *assumed* on its node until the cache shows it there, so
that the next round neither places it twice nor forgets what it takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock, rfc3339
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import NODES, PODGROUPS, PODS, Object, key_of

from .decide import Gang, Round, decide
from .snapshot import Pod, pod_view, snapshot_of

log = logging.getLogger(__name__)

NAMES = frozenset(("default-scheduler", "volcano"))
"""Scheduler names this one answers to: on one machine both are the same program."""

CONCURRENCY = 64


class Scheduler:
    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self.pods = Informer(client, PODS, clock=clock)
        self.nodes = Informer(client, NODES, clock=clock)
        self.groups = Informer(client, PODGROUPS, clock=clock)
        self._assumed: dict[str, str] = {}
        self._told: dict[str, str] = {}  # pod uid → the refusal already written on it
        self._wake = asyncio.Event()
        for informer in (self.pods, self.nodes, self.groups):
            informer.on_change(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _irrelevant(old, new):
            return
        self._wake.set()

    async def run(self) -> None:
        informers = (self.pods, self.nodes, self.groups)
        tasks = [asyncio.ensure_future(informer.run()) for informer in informers]
        try:
            for informer in informers:
                await informer.wait_synced()
            while True:
                await self._wake.wait()
                self._wake.clear()
                await asyncio.sleep(0)  # let the rest of a burst arrive: a gang is best seen whole
                try:
                    await self._round()
                except errors.ApiError as error:
                    log.warning("scheduling round failed, trying again: %s", error)
                    await self._clock.sleep(0.2)
                    self._wake.set()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(self) -> None:
        pods = [self._as_assumed(obj) for obj in self.pods.cache.list()]
        waiting = [pod_view(obj) for obj in pods if _waits(obj)]
        gangs = {key_of(obj): _gang(obj) for obj in self.groups.cache.list()}
        if waiting:
            result = decide(snapshot_of(self.nodes.cache.list(), pods), _oldest_first(waiting), gangs)
            await self._carry_out(result)
        await self._report_groups(pods)

    def _as_assumed(self, obj: Object) -> Object:
        uid = obj["metadata"]["uid"]
        node = self._assumed.get(uid)
        if node is None:
            return obj
        if obj["spec"].get("nodeName"):
            del self._assumed[uid]
            return obj
        return {**obj, "spec": {**obj["spec"], "nodeName": node}}

    async def _carry_out(self, result: Round) -> None:
        limit = asyncio.Semaphore(CONCURRENCY)

        async def bind(pod: Pod, node: str) -> None:
            self._assumed[pod.uid] = node
            async with limit:
                try:
                    await self._client.raw(
                        "POST",
                        PODS.path(pod.key.namespace, pod.key.name, "binding"),
                        body={
                            "apiVersion": "v1",
                            "kind": "Binding",
                            "metadata": {"name": pod.key.name},
                            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                        },
                    )
                except (errors.NotFound, errors.Conflict):
                    self._assumed.pop(pod.uid, None)  # deleted, or placed by somebody else, in the meantime

        async def tell(pod: Pod, message: str) -> None:
            if self._told.get(pod.uid) == message:
                return
            self._told[pod.uid] = message
            async with limit:
                try:
                    await self._client.patch(
                        PODS,
                        pod.key.name,
                        {"status": {"conditions": _unschedulable(pod.source, message, self._clock.now())}},
                        namespace=pod.key.namespace,
                        subresource="status",
                    )
                except (errors.NotFound, errors.Conflict):
                    self._told.pop(pod.uid, None)

        await asyncio.gather(
            *(bind(pod, node) for pod, node in result.placements),
            *(tell(item.pod, item.message) for item in result.unplaced),
        )

    async def _report_groups(self, pods: Iterable[Object]) -> None:
        """Phase and counts of each PodGroup, as Volcano shows them."""
        for group in self.groups.cache.list():
            key = key_of(group)
            members = [obj for obj in pods if pod_view(obj).group == key]
            status = _group_status(group, members)
            if status == (group.get("status") or {}):
                continue
            try:
                await self._client.patch(
                    PODGROUPS, key.name, {"status": status}, namespace=key.namespace, subresource="status"
                )
            except errors.NotFound:
                continue  # deleted in the meantime


def _irrelevant(old: Object, new: Object) -> bool:
    """Status details of running pods and heartbeats of nodes change nothing for anybody who waits."""
    if old.get("kind") == "Node" or "allocatable" in (new.get("status") or {}):
        keys = ("allocatable", "capacity")
        before, after = old.get("status") or {}, new.get("status") or {}
        return (
            old.get("spec") == new.get("spec")
            and old["metadata"].get("labels") == new["metadata"].get("labels")
            and all(before.get(key) == after.get(key) for key in keys)
            and _ready(before) == _ready(after)
        )
    return old.get("spec") == new.get("spec") and _phase(old) == _phase(new) and not _deleting_changed(old, new)


def _ready(status: Object) -> str:
    return next((c["status"] for c in status.get("conditions") or () if c.get("type") == "Ready"), "")


def _phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase", ""))


def _deleting_changed(old: Object, new: Object) -> bool:
    return bool(old["metadata"].get("deletionTimestamp")) != bool(new["metadata"].get("deletionTimestamp"))


def _waits(obj: Object) -> bool:
    spec = obj["spec"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName", "default-scheduler") in NAMES
        and not obj["metadata"].get("deletionTimestamp")
        and not spec.get("schedulingGates")
        and _phase(obj) in ("", "Pending")
    )


def _oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (pod.source["metadata"].get("creationTimestamp", ""), pod.key))


def _gang(group: Object) -> Gang:
    return Gang(key_of(group), int((group.get("spec") or {}).get("minMember") or 1))


def _group_status(group: Object, members: list[Object]) -> Object:
    running = sum(1 for pod in members if _phase(pod) == "Running")
    succeeded = sum(1 for pod in members if _phase(pod) == "Succeeded")
    failed = sum(1 for pod in members if _phase(pod) == "Failed")
    placed = sum(1 for pod in members if pod["spec"].get("nodeName"))
    wanted = int((group.get("spec") or {}).get("minMember") or 1)
    phase = "Running" if placed >= wanted else "Inqueue"
    status: Object = {"phase": phase}
    counts = {"running": running, "succeeded": succeeded, "failed": failed}
    return {**status, **{name: count for name, count in counts.items() if count}}


def _unschedulable(pod: Object, message: str, now: float) -> list[Object]:
    conditions = [c for c in (pod.get("status") or {}).get("conditions") or () if c.get("type") != "PodScheduled"]
    return [
        *conditions,
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": rfc3339(now),
        },
    ]
