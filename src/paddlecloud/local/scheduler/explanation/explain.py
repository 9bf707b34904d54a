"""Why a pod or gang waits, in full: what it needs, what is free where, who holds it, and what would change that.

Every remedy was tried on the scheduler itself (`whatif`) before it is offered: applied alone, it lets the unit start in
the next round. What is called free is what nodes have left once everything that can be placed now has been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from paddlecloud.kube.quantity import total, written
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.decide import PREEMPTING, Round, decide
from paddlecloud.local.scheduler.decision.draft import Draft
from paddlecloud.local.scheduler.decision.filters import admits
from paddlecloud.local.scheduler.decision.preempt import Eviction
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.explanation.remedies import RefusedUnit, Remedy, remedies_of
from paddlecloud.local.scheduler.explanation.whatif import ClusterState
from paddlecloud.local.scheduler.state.shape import Resources, add
from paddlecloud.local.scheduler.state.snapshot import Node, Pod, Snapshot
from paddlecloud.local.scheduler.state.units import Unit, units_of

MOST_BLOCKERS = 5


@dataclass(frozen=True, slots=True)
class Offer:
    """One node: what it has left of what is needed, and why that does not do."""

    node: str
    free: Resources
    allocatable: Resources
    rule: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Blocker:
    """A pod that holds what is needed, where it is needed."""

    pod: Pod
    node: str
    holds: Resources


@dataclass(frozen=True, slots=True)
class Explanation:
    unit: Unit
    code: str
    """The refusal's, or Placed."""
    message: str
    each: Resources = field(default_factory=dict)
    """What one pod needs: the largest that waits. Of a group that has no pods yet: what it needs in all."""
    offers: tuple[Offer, ...] = ()
    """Best first."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    blockers: tuple[Blocker, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    node: str = ""
    """Where it goes, if it is placed."""

    @property
    def placed(self) -> bool:
        return self.code == "Placed"

    def total_free(self) -> Resources:
        return total(offer.free for offer in self.offers if offer.rule not in ("ready", "cordon"))


def explain(snapshot: Snapshot, waiting: Iterable[Pod], uid: str, *, policy: Policy = DEFAULT) -> Explanation | None:
    """The verdict on the unit of the waiting pod `uid`; None if it does not wait."""
    pods = tuple(waiting)
    units = units_of(pods, snapshot.gangs)
    unit = next((unit for unit in units if any(pod.uid == uid for pod in unit.pods)), None)
    if unit is None:
        return None
    result = decide(snapshot, units, policy=policy)
    where = {pod.uid: node for pod, node in result.placements}
    if uid in where:
        return Explanation(unit, "Placed", f"the next round places it on node {where[uid]}", node=where[uid])
    refused = next(r for r in result.refused if any(p.uid == uid for u in r.units for p in u.pods))
    rest = next(u for u in refused.units if any(p.uid == uid for p in u.pods))
    if refused.why.code == PREEMPTING:
        mine = tuple(e for e in result.evictions if e.preemptor == rest.key)
        return Explanation(rest, PREEMPTING, refused.why.message, each=_each(rest), evictions=mine)
    case = RefusedUnit(_settled(snapshot, pods, result), rest, refused.why, policy)
    return _full(case, remedies_of(case))


def _settled(snapshot: Snapshot, waiting: tuple[Pod, ...], result: Round) -> ClusterState:
    """The cluster once the round is carried out: pods placed, others evicted and room nominated."""
    draft = Draft(snapshot, DEFAULT)
    gangs, allocated = dict(snapshot.gangs), dict(snapshot.allocated)
    for pod, node in result.placements:
        draft.place(pod, node)
        if snapshot.queues:
            queue = snapshot.queue_of(pod)
            allocated[queue] = add(allocated.get(queue, {}), pod.requests)
        if pod.group in gangs and pod.group is not None:
            gang = gangs[pod.group]
            tasks = {**gang.placed_tasks, pod.task: gang.placed_tasks.get(pod.task, 0) + 1}
            gangs[pod.group] = replace(gang, placed=gang.placed + 1, placed_tasks=tasks)
    for eviction in result.evictions:
        draft.take_away(eviction.pod, eviction.node)
        draft.place(replace(eviction.pod, leaving=True), eviction.node)
    placed = {pod.uid for pod, _ in result.placements}
    promised = {pod.uid: node for pod, node in result.nominations}
    after = replace(snapshot, nodes=dict(draft.nodes), gangs=gangs, allocated=allocated, guarded=True, lowest=None)
    return ClusterState(
        after,
        tuple(
            replace(pod, nominated=promised[pod.uid]) if pod.uid in promised else pod
            for pod in waiting
            if pod.uid not in placed
        ),
    )


def _full(case: RefusedUnit, remedies: tuple[Remedy, ...]) -> Explanation:
    offers = tuple(sorted(_offers(case), key=lambda offer: _distance(case, offer)))
    return Explanation(
        case.unit,
        case.why.code,
        case.why.message,
        each=_each(case.unit),
        offers=offers,
        reasons=Counter(offer.reason for offer in offers if offer.reason),
        blockers=tuple(_blockers(case)),
        remedies=remedies,
    )


def _each(unit: Unit) -> Resources:
    biggest = max(unit.pods, key=lambda pod: sorted(pod.requests.items()))
    return {name: amount for name, amount in biggest.requests.items() if name != "pods"}


def _offers(case: RefusedUnit) -> Iterable[Offer]:
    needed = case.biggest.requests
    for name, node in case.cluster.snapshot.nodes.items():
        refusal = case.why.by_node.get(name)
        yield Offer(
            node=name,
            free={resource: max(0, node.free(resource)) for resource in needed},
            allocatable={resource: node.allocatable.get(resource, 0) for resource in needed},
            rule=refusal.rule if refusal else "",
            reason=refusal.reason if refusal else "",
            detail=refusal.detail if refusal else "",
        )


CLOSED = ("taint", "selector", "affinity", "cordon", "ready")
"""Rules that no pod's leaving changes."""


def _distance(case: RefusedUnit, offer: Offer) -> tuple[bool, float, str]:
    """How far a node is from taking the pod: nodes that somebody must change last, then by the share of what lacks."""
    needed = case.biggest.requests
    missing = sum(max(0, needed[name] - offer.free[name]) / needed[name] for name in needed if needed[name])
    return (offer.rule in CLOSED, missing, offer.node)


def _blockers(case: RefusedUnit) -> Iterable[Blocker]:
    """Who holds most of what is lacking, on nodes that would do if they were empty, or in the queue that is full."""
    lack = case.why.lack
    lacking = [lack.resource] if lack else _lacking(case)
    found: list[Blocker] = []
    for node in case.cluster.snapshot.nodes.values():
        if lack is None and not _would_do(case, node):
            continue
        for pod in node.pods:
            if lack is not None and case.cluster.snapshot.queue_of(pod) != lack.queue:
                continue
            holds = {name: pod.requests[name] for name in lacking if pod.requests.get(name)}
            if holds:
                found.append(Blocker(pod, node.name, holds))
    found.sort(key=lambda blocker: (-max(blocker.holds.values()), blocker.pod.key))
    return found[:MOST_BLOCKERS]


def _lacking(case: RefusedUnit) -> list[str]:
    needed = case.biggest.requests
    names = {
        name
        for node in case.cluster.snapshot.nodes.values()
        if _would_do(case, node)
        for name, amount in needed.items()
        if amount > node.free(name)
    }
    return sorted(names)


def _would_do(case: RefusedUnit, node: Node) -> bool:
    shape = case.biggest.shape
    return admits(shape, node) and all(amount <= node.allocatable.get(n, 0) for n, amount in shape.requests.items())


def machine_readable(explanation: Explanation) -> Object:
    """The whole of it as data, amounts as Kubernetes writes them."""
    unit = explanation.unit
    gang = unit.gang
    body: Object = {
        "code": explanation.code,
        "message": explanation.message,
        "priority": unit.priority,
        "queue": unit.queue,
        "needs": {"each" if unit.pods else "all": written(explanation.each), "pods": len(unit.pods)},
        "reasons": dict(explanation.reasons),
        "nodes": [_shown(offer) for offer in explanation.offers],
        "heldBy": [
            {"pod": str(b.pod.key), "node": b.node, "holds": written(b.holds), "priority": b.pod.priority}
            for b in explanation.blockers
        ],
        "leaving": [{"pod": str(e.pod.key), "node": e.node, "reason": e.reason} for e in explanation.evictions],
        "wouldStartIf": [{"change": remedy.kind, **remedy.data} for remedy in explanation.remedies],
    }
    if gang is not None:
        body["needs"] |= {"minMember": gang.min_member, "placed": gang.placed}
    if explanation.node:
        body["node"] = explanation.node
    return body


def _shown(offer: Offer) -> Object:
    amounts = {"free": written(offer.free), "of": written(offer.allocatable)}
    return {"node": offer.node, **amounts, "reason": offer.reason, "detail": offer.detail}
