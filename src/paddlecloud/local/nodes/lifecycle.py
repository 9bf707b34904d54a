"""Nodes that stop answering, and what becomes of their pods: as the node controllers of Kubernetes do it.

A node whose Lease was not renewed in time is Unknown and tainted unreachable; a `NoExecute` taint, ours or anybody's,
makes pods leave that do not tolerate it. A node that `pdc node fail` lost is known to be dead, so its pods are removed
at once; of a node that merely went silent they are asked to leave, since it may come back. Pods of a node that no
longer exists are removed.

When a Lease was renewed is judged by this process's own clock: a jump of the wall clock kills no node.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import LEASES, NODES, PODS, Key, Object, key_of
from paddlecloud.local.scheduler.shape import Toleration
from paddlecloud.local.scheduler.watches import ON_NODE, Watches

from .marks import FAILED, NODE_KIND, SIMULATED

log = logging.getLogger(__name__)

PERIOD = 5.0
LEASE_SECONDS = 40.0
LEASE_NAMESPACE = "kube-node-lease"
UNREACHABLE = "node.kubernetes.io/unreachable"
TAINTS: tuple[Object, ...] = (
    {"key": UNREACHABLE, "effect": "NoSchedule"},
    {"key": UNREACHABLE, "effect": "NoExecute"},
)


@dataclass(frozen=True, slots=True)
class Removal:
    """A pod that must leave its node; `force` when nobody is left to stop it."""

    key: Key
    uid: str
    force: bool
    why: str


@dataclass(slots=True)
class Verdict:
    """What a look at the nodes comes to."""

    lost: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    remove: list[Removal] = field(default_factory=list)
    again: float | None = None
    """Seconds after which somebody's toleration ends."""


def failed(node: Object) -> bool:
    return FAILED in (node["metadata"].get("annotations") or {})


def alive(node: Object, heard: float | None, now: float) -> bool:
    """`heard` is when its Lease last moved. Simulated nodes send no heartbeat: they live until they are failed."""
    if failed(node):
        return False
    if (node["metadata"].get("labels") or {}).get(NODE_KIND) == SIMULATED:
        return True
    return heard is None or now - heard < LEASE_SECONDS


def tainted_unreachable(node: Object) -> bool:
    return any(taint.get("key") == UNREACHABLE for taint in (node.get("spec") or {}).get("taints") or ())


def stays(pod: Object, taints: list[Object], since: float, now: float) -> float | None:
    """Seconds for which a pod may stay in spite of NoExecute taints; None for ever, 0 or less not at all."""
    left: float | None = None
    for taint in taints:
        if taint.get("effect") != "NoExecute":
            continue
        matching = [t for t in pod["spec"].get("tolerations") or () if _tolerates(t, taint)]
        if not matching:
            return 0.0
        limits = [t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None]
        if limits:
            until = since + float(min(limits)) - now
            left = until if left is None else min(left, until)
    return left


def _tolerates(written: Object, taint: Object) -> bool:
    exists = written.get("operator") == "Exists"
    return Toleration(
        written.get("key") or "", exists, written.get("value") or "", written.get("effect") or ""
    ).tolerates(taint)


class NodeLifecycle:
    """`run` works until cancelled."""

    def __init__(self, client: Client, watches: Watches, *, clock: Clock) -> None:
        self._client = client
        self._watches = watches
        self._clock = clock
        self._leases = Informer(client, LEASES, namespace=LEASE_NAMESPACE, clock=clock)
        self._recorder = EventRecorder(client, component="node-controller", clock=clock)
        self._heard: dict[str, float] = {}
        self._tainted: dict[str, float] = {}  # node → since when it has a NoExecute taint
        self._wake = asyncio.Event()
        self._leases.on_change(self._on_lease)
        watches.nodes.on_change(self._on_node)

    def _on_lease(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        if old is None or (old.get("spec") or {}).get("renewTime") != (new.get("spec") or {}).get("renewTime"):
            self._heard[new["metadata"]["name"]] = self._clock.monotonic()

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old.get("spec") != new.get("spec") or failed(old) != failed(new):
            self._wake.set()

    async def run(self) -> None:
        leases = asyncio.ensure_future(self._leases.run())
        try:
            await self._leases.wait_synced()
            await self._watches.synced()
            while True:
                self._wake.clear()
                verdict = self.look()
                await self._carry_out(verdict)
                await self._pause(min(PERIOD, verdict.again or PERIOD))
        finally:
            leases.cancel()
            await asyncio.gather(leases, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        tasks = [asyncio.ensure_future(self._wake.wait()), asyncio.ensure_future(self._clock.sleep(seconds))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def look(self) -> Verdict:
        verdict = Verdict()
        now = self._clock.monotonic()
        names = set()
        for node in self._watches.nodes.cache.list():
            name = node["metadata"]["name"]
            names.add(name)
            lives, tainted = alive(node, self._heard.get(name), now), tainted_unreachable(node)
            if not lives and not tainted:
                verdict.lost.append(name)
            elif lives and tainted:
                verdict.back.append(name)
            self._judge_pods(node, now, verdict)
        for name in self._watches.pods.cache.values(ON_NODE):
            if name not in names:
                for pod in self._watches.pods.cache.by_index(ON_NODE, name):
                    verdict.remove.append(_removal(pod, True, f"node {name} no longer exists"))
        for name in self._tainted.keys() - names:
            del self._tainted[name]
        return verdict

    def _judge_pods(self, node: Object, now: float, verdict: Verdict) -> None:
        name = node["metadata"]["name"]
        taints = [t for t in (node.get("spec") or {}).get("taints") or () if t.get("effect") == "NoExecute"]
        if not taints:
            self._tainted.pop(name, None)
            return
        since = self._tainted.setdefault(name, now)
        dead = failed(node)
        for pod in self._watches.pods.cache.by_index(ON_NODE, name):
            if not dead and (is_finished(pod) or is_leaving(pod)):
                continue  # it is over, or on its way already
            left = 0.0 if dead else stays(pod, taints, since, now)
            if left is not None and left <= 0:
                verdict.remove.append(_removal(pod, dead, f"node {name} has taint {taints[0].get('key')}"))
            elif left is not None:
                verdict.again = left if verdict.again is None else min(verdict.again, left)

    async def _carry_out(self, verdict: Verdict) -> None:
        for name in verdict.lost:
            await self._mark(name, lost=True)
        for name in verdict.back:
            await self._mark(name, lost=False)
        await asyncio.gather(*(self._remove(removal) for removal in verdict.remove))
        if verdict.lost:
            self._wake.set()  # their pods are judged by the new taint

    async def _mark(self, name: str, *, lost: bool) -> None:
        node = self._watches.nodes.cache.get(Key("", name))
        if node is None:
            return
        others = [t for t in (node.get("spec") or {}).get("taints") or () if t.get("key") != UNREACHABLE]
        condition = {
            "type": "Ready",
            "status": "Unknown" if lost else "True",
            "reason": "NodeStatusUnknown" if lost else "KubeletReady",
            "message": "the node stopped sending heartbeats" if lost else "the node sends heartbeats again",
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        try:
            await self._client.patch(
                NODES, name, {"status": {"conditions": [condition]}}, kind="strategic", subresource="status"
            )
            taints = [*others, *TAINTS] if lost else others
            await self._client.patch(NODES, name, {"spec": {"taints": taints or None}})
        except errors.ApiError as error:
            log.warning("node %s could not be marked: %s", name, error)
            return
        await self._recorder.record(node, "NodeNotReady" if lost else "NodeReady", condition["message"])

    async def _remove(self, removal: Removal) -> None:
        key = removal.key
        pod = self._watches.pods.cache.get(key)
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": removal.why,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        body = {"metadata": {"uid": removal.uid}, "status": {"conditions": [target]}}
        try:
            await self._client.patch(
                PODS, key.name, body, namespace=key.namespace, kind="strategic", subresource="status"
            )
            await self._client.delete(
                PODS,
                key.name,
                namespace=key.namespace,
                uid=removal.uid,
                grace_period=0 if removal.force else None,
            )
        except (errors.NotFound, errors.Conflict):
            return  # gone: what was wanted
        except errors.ApiError as error:
            log.warning("pod %s could not be removed: %s", key, error)
            return
        if pod is not None:
            await self._recorder.record(pod, "TaintManagerEviction", f"removed: {removal.why}")


def _removal(pod: Object, force: bool, why: str) -> Removal:
    return Removal(key_of(pod), pod["metadata"]["uid"], force, why)
