"""Which nodes were lost or came back, and which pods must leave for it: a function of what is there and the time. Pure.

A `NoExecute` taint, ours or anybody's, makes pods leave that do not tolerate it. A node that `pdc node fail` lost is
known to be dead, so its pods are removed by force; of one that merely went silent they are asked to leave, since it may
come back. Pods of a node that was deleted are removed; those of one that nobody has seen yet may wait for it a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import Key, Object, key_of
from paddlecloud.local.nodes.marks import FAILED, NODE_KIND, SIMULATED
from paddlecloud.local.scheduler.state.shape import Toleration

LEASE_SECONDS = 40.0
MISSING_SECONDS = 40.0
"""How long pods may name a node that is not there: it may be about to come."""
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Removal:
    """A pod that must leave its node; `force` when nobody is left to stop it."""

    key: Key
    uid: str
    force: bool
    why: str


@dataclass(slots=True)
class NodeLossPlan:
    """Which nodes to mark as lost or back, and which pods to remove."""

    lost: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    remove: list[Removal] = field(default_factory=list)
    tainted: dict[str, float] = field(default_factory=dict)
    """Since when each node has a NoExecute taint; to be kept for the next look."""
    missing: dict[str, float] = field(default_factory=dict)
    """Since when each node that pods name is not there; likewise."""
    again: float | None = None
    """Seconds after which somebody's toleration ends."""


def failed(node: Object) -> bool:
    return FAILED in (node["metadata"].get("annotations") or {})


def alive(node: Object, lease_renewed: float | None, now: float) -> bool:
    """`lease_renewed` is when its Lease last moved. Simulated nodes send no heartbeat: they live until they are
    failed.
    """
    if failed(node):
        return False
    if (node["metadata"].get("labels") or {}).get(NODE_KIND) == SIMULATED:
        return True
    return lease_renewed is None or now - lease_renewed < LEASE_SECONDS


def judge(
    nodes: Iterable[Object],
    pods: Mapping[str, Iterable[Object]],
    *,
    lease_renewed: Mapping[str, float],
    tainted: Mapping[str, float],
    missing: Mapping[str, float],
    now: float,
) -> NodeLossPlan:
    """`pods` by the node they are on; `lease_renewed` when each Lease last moved; the others are of the plan before."""
    plan = NodeLossPlan()
    names = set()
    for node in nodes:
        name = node["metadata"]["name"]
        names.add(name)
        lives, marked = alive(node, lease_renewed.get(name), now), tainted_unreachable(node)
        if not lives and not marked:
            plan.lost.append(name)
        elif lives and marked:
            plan.back.append(name)
        if taints := [taint for taint in _taints(node) if taint.get("effect") == "NoExecute"]:
            plan.tainted[name] = tainted.get(name, now)
            _judge_pods(node, pods.get(name, ()), taints, now, plan)
    plan.missing = {name: missing.get(name, now) for name in pods.keys() - names}
    for name in (name for name, since in plan.missing.items() if now - since >= MISSING_SECONDS):
        plan.remove += [_removal(pod, True, f"node {name} no longer exists") for pod in pods[name]]
    return plan


def _judge_pods(node: Object, pods: Iterable[Object], taints: list[Object], now: float, plan: NodeLossPlan) -> None:
    name, dead = node["metadata"]["name"], failed(node)
    why = f"node {name} has taint {taints[0].get('key')}"
    for pod in pods:
        if dead:
            plan.remove.append(_removal(pod, True, why))
            continue
        if is_finished(pod) or is_leaving(pod):
            continue  # it is over, or on its way already
        left = stays(pod, taints, plan.tainted[name], now)
        if left is not None and left <= 0:
            plan.remove.append(_removal(pod, False, why))
        elif left is not None:
            plan.again = left if plan.again is None else min(plan.again, left)


def _removal(pod: Object, force: bool, why: str) -> Removal:
    return Removal(key_of(pod), pod["metadata"]["uid"], force, why)


def tainted_unreachable(node: Object) -> bool:
    return any(taint.get("key") == UNREACHABLE for taint in _taints(node))


def _taints(node: Object) -> list[Object]:
    return (node.get("spec") or {}).get("taints") or []


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
