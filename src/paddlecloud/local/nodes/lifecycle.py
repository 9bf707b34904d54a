"""Nodes that stop answering, and what becomes of their pods: as the node controllers of Kubernetes do it.

A node whose Lease was not renewed in time is Unknown and tainted unreachable, and its pods leave: `node_loss` decides,
this carries out. Leases are timed by this process's own clock: a jump of the wall clock kills no node.
"""

from __future__ import annotations

import asyncio
import logging

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, sleep_until_set
from paddlecloud.kube.conditions import condition_in, conditions_of, dated
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import LEASES, NODES, PODS, Key, Object
from paddlecloud.local.nodes.node_loss import MISSING_SECONDS, UNREACHABLE, NodeLossPlan, Removal, failed, judge
from paddlecloud.local.scheduler.controller.watches import ON_NODE, Watches

log = logging.getLogger(__name__)

PERIOD = 5.0
LEASE_NAMESPACE = "kube-node-lease"
TAINTS: tuple[Object, ...] = (
    {"key": UNREACHABLE, "effect": "NoSchedule"},
    {"key": UNREACHABLE, "effect": "NoExecute"},
)


class NodeLifecycle:
    """`run` works until cancelled."""

    def __init__(self, client: Client, watches: Watches, *, clock: Clock) -> None:
        self._client = client
        self._watches = watches
        self._clock = clock
        self._leases = Informer(client, LEASES, namespace=LEASE_NAMESPACE, clock=clock)
        self._recorder = EventRecorder(client, component="node-controller", clock=clock)
        self._lease_renewed: dict[str, float] = {}
        self._tainted: dict[str, float] = {}  # node → since when it has a NoExecute taint
        self._missing: dict[str, float] = {}  # node that pods name → since when it is not there
        self._wake = asyncio.Event()
        self._leases.on_change(self._on_lease)
        watches.nodes.on_change(self._on_node)

    def _on_lease(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        if old is None or (old.get("spec") or {}).get("renewTime") != (new.get("spec") or {}).get("renewTime"):
            self._lease_renewed[new["metadata"]["name"]] = self._clock.monotonic()

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is None:  # its deletion was observed: no grace period
            self._missing[old["metadata"]["name"]] = self._clock.monotonic() - MISSING_SECONDS
        if old is None or new is None or old.get("spec") != new.get("spec") or failed(old) != failed(new):
            self._wake.set()

    async def run(self) -> None:
        leases = asyncio.ensure_future(self._leases.run())
        try:
            await self._leases.wait_synced()
            await self._watches.synced()
            while True:
                self._wake.clear()
                plan = self._look()
                await self._carry_out(plan)
                await sleep_until_set(self._wake, min(PERIOD, plan.again or PERIOD), self._clock)
        finally:
            leases.cancel()
            await asyncio.gather(leases, return_exceptions=True)

    def _look(self) -> NodeLossPlan:
        nodes, pods = self._watches.nodes.cache, self._watches.pods.cache
        plan = judge(
            nodes.list(),
            {name: pods.by_index(ON_NODE, name) for name in pods.values(ON_NODE)},
            lease_renewed=self._lease_renewed,
            tainted=self._tainted,
            missing=self._missing,
            now=self._clock.monotonic(),
        )
        self._tainted, self._missing = plan.tainted, plan.missing
        return plan

    async def _carry_out(self, plan: NodeLossPlan) -> None:
        for name in plan.lost:
            await self._mark(name, lost=True)
        for name in plan.back:
            await self._mark(name, lost=False)
        await asyncio.gather(*(self._remove(removal) for removal in plan.remove))
        if plan.lost:
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
        }
        condition = dated(condition, condition_in(conditions_of(node), "Ready"), self._clock.now())
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
        }
        target = dated(target, condition_in(conditions_of(pod or {}), "DisruptionTarget"), self._clock.now())
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
