"""Changes that would let a waiting unit start: guessed from why it waits, then tried; only those that work are given.

Single changes only. A unit that two things keep out may therefore have no remedy but another node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from paddlecloud.kube.quantity import MILLI, ONE, written
from paddlecloud.kube.resource import Object, controller_of
from paddlecloud.local.scheduler.decision.attempt import Why
from paddlecloud.local.scheduler.decision.preempt import Rescue, make_room
from paddlecloud.local.scheduler.decision.scores import Policy
from paddlecloud.local.scheduler.decision.session import Session, requests_of
from paddlecloud.local.scheduler.explanation import whatif
from paddlecloud.local.scheduler.explanation.whatif import ClusterState
from paddlecloud.local.scheduler.state.shape import Resources, Shape
from paddlecloud.local.scheduler.state.snapshot import Gang, Node, Pod, Queue
from paddlecloud.local.scheduler.state.units import Unit

KINDS = (
    "end",
    "priority",
    "request",
    "uncordon",
    "tolerate",
    "label",
    "min-member",
    "pods",
    "group",
    "queue",
    "capability",
    "node",
)
"""What a remedy may ask for: pods to end, a higher priority, a smaller request, a node uncordoned, a toleration, a node
label, a lower minMember, more pods of the gang, the PodGroup, the queue made or opened, a higher capability, a node."""

TRIES = 12
"""Sizes that are tried for a smaller request."""
HIGHEST = 2_000_000_000
STEPS = {"cpu": MILLI, "memory": ONE << 20, "ephemeral-storage": ONE << 20}
"""Sizes people write; everything else is counted in whole pieces."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that lets the unit start. `data` says which, in words of the API; `kind` is one of `KINDS`."""

    kind: str
    data: Object


@dataclass(frozen=True, slots=True)
class RefusedUnit:
    """A unit that is refused, in the cluster as it is after everything that could be placed was."""

    cluster: ClusterState
    unit: Unit
    why: Why
    policy: Policy

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(pod.uid for pod in self.unit.pods)

    @property
    def biggest(self) -> Pod:
        """The pod that is hardest to place: the one the refusal is about, as far as size goes."""
        return max(self.unit.pods, key=lambda pod: sorted(pod.requests.items()))


Candidate = tuple[Remedy, ClusterState, int]
"""A remedy, the cluster with it, and how many pods must start then."""


def remedies_of(case: RefusedUnit) -> tuple[Remedy, ...]:
    found: list[Remedy] = []
    kinds: set[str] = set()
    for guess in GUESSES.get(case.why.code, ()):
        for remedy, cluster, needed in guess(case):
            uids = frozenset(pod.uid for pod in cluster.waiting if pod.uid.split("/")[0] in case.uids)
            if remedy.kind not in kinds and whatif.starts(cluster, uids, needed=needed, policy=case.policy):
                found.append(remedy)
                kinds.add(remedy.kind)  # one of a kind says enough
                break
    return tuple(found)


def _needed(unit: Unit) -> int:
    return max(1, unit.needed)


# Room on nodes


def _end_others(case: RefusedUnit) -> Iterator[Candidate]:
    """The fewest pods whose end would do: those that would be driven out if the unit mattered most."""
    rescue = _rescue(case)
    if rescue is None or not rescue.evictions:
        return
    pods = [eviction.pod for eviction in rescue.evictions]
    data: Object = {"pods": [{"pod": str(e.pod.key), "node": e.node} for e in rescue.evictions]}
    yield Remedy("end", data), whatif.without_pods(case.cluster, pods), _needed(case.unit)


def _raise_priority(case: RefusedUnit) -> Iterator[Candidate]:
    rescue = _rescue(case)
    if rescue is None or not rescue.evictions:
        return
    least = max([eviction.pod.priority for eviction in rescue.evictions]) + 1
    if least > case.unit.priority:
        cluster = whatif.with_priority(_without_siblings_at_risk(case), case.uids, least)
        yield Remedy("priority", {"atLeast": least}), cluster, _needed(case.unit)


def _without_siblings_at_risk(case: RefusedUnit) -> ClusterState:
    """No remedy ends what belongs to the same job or other owner: that would only move the shortage."""
    owners = {owner for pod in case.unit.pods if (owner := _owner(pod))}
    return whatif.with_placed(
        case.cluster, lambda pod: replace(pod, priority=HIGHEST) if _owner(pod) in owners else pod
    )


def _owner(pod: Pod) -> str:
    """The uid of what made the pod; empty for pods that nothing made, and those of a simulation."""
    return str((controller_of(pod.source) or {}).get("uid") or "") if pod.source else ""


def _rescue(case: RefusedUnit) -> Rescue | None:
    cluster = whatif.with_priority(_without_siblings_at_risk(case), case.uids, HIGHEST)
    pods = tuple(pod for pod in cluster.waiting if pod.uid in case.uids)
    gang = cluster.snapshot.gangs.get(case.unit.gang.key) if case.unit.gang else None
    return make_room(Session(cluster.snapshot, [], case.policy), Unit(pods, gang))


def _ask_for_less(case: RefusedUnit) -> Iterator[Candidate]:
    """The largest request that fits, found among what nodes have free, whole or divided among the gang's pods."""
    needed = case.biggest.requests
    nodes = [node for node in case.cluster.snapshot.nodes.values() if node.ready]
    for name in sorted(needed):
        enough = case.unit.gang is None and all(needed[name] <= node.free(name) for node in nodes)
        if name == "pods" or enough:
            continue
        count = len(case.unit.pods)
        step = STEPS.get(name, ONE)
        sizes = {node.free(name) // part // step * step for node in nodes for part in range(1, min(count, 8) + 1)}
        for size in sorted((size for size in sizes if 0 < size < needed[name]), reverse=True)[:TRIES]:
            limit = {name: size}
            cluster = whatif.with_shapes(case.cluster, case.uids, whatif.asking_at_most(limit))
            yield Remedy("request", {"atMost": written(limit)}), cluster, _needed(case.unit)


def _uncordon(case: RefusedUnit) -> Iterator[Candidate]:
    for node in _refusing(case, "cordon"):
        cluster = whatif.with_node(case.cluster, replace(node, unschedulable=False))
        yield Remedy("uncordon", {"node": node.name}), cluster, _needed(case.unit)


def _tolerate(case: RefusedUnit) -> Iterator[Candidate]:
    for node in _refusing(case, "taint"):
        for taint in node.taints:
            if taint.get("effect") in ("NoSchedule", "NoExecute") and not case.biggest.shape.tolerates(taint):
                data = {"key": taint.get("key") or "", "value": taint.get("value") or "", "effect": taint["effect"]}
                cluster = whatif.with_shapes(case.cluster, case.uids, whatif.tolerating(**data))
                yield Remedy("tolerate", data), cluster, _needed(case.unit)


def _label_a_node(case: RefusedUnit) -> Iterator[Candidate]:
    wanted = _wanted_labels(case.biggest.shape)
    for node in _refusing(case, "selector", "affinity"):
        missing = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
        if missing:
            cluster = whatif.with_node(case.cluster, replace(node, labels={**node.labels, **missing}))
            yield Remedy("label", {"node": node.name, "labels": missing}), cluster, _needed(case.unit)


def _wanted_labels(shape: Shape) -> Mapping[str, str]:
    """Labels that satisfy nodeSelector and, where that is simple, the first term of required affinity."""
    labels = dict(shape.selector)
    for rule in shape.required[0].labels if shape.required else ():
        if rule.operator in ("in", "=") and rule.values:
            labels[rule.key] = min(rule.values)
        elif rule.operator == "exists":
            labels.setdefault(rule.key, "true")
    return labels


def _add_nodes(case: RefusedUnit) -> Iterator[Candidate]:
    """As few new nodes as will do: one for its pods, one for each that must stand alone, or room for all who wait."""
    unit = case.unit
    pods = unit.pods[: _needed(unit)]
    labels = {**_domains(case), **_wanted_labels(case.biggest.shape)}
    everybody = requests_of(case.cluster.waiting)
    for count, each in ((1, requests_of(pods)), (len(pods), case.biggest.requests), (1, everybody)):
        cluster = case.cluster
        for number in range(1, count + 1):
            own = {"kubernetes.io/hostname": f"new-{number}", **labels}
            cluster = whatif.with_node(cluster, Node(f"new-{number}", own, (), False, True, each))
        data: Object = {"count": count, "capacity": written(each), "labels": labels}
        yield Remedy("node", data), cluster, _needed(unit)


def _domains(case: RefusedUnit) -> dict[str, str]:
    """A new zone, and the like, where rules about neighbours name some."""
    pod_affinity = case.biggest.shape.pod_affinity
    keys = (
        {t.topology for t in pod_affinity.apart} | {t.topology for t in pod_affinity.spread} if pod_affinity else set()
    )
    return {key: "new" for key in keys if key != "kubernetes.io/hostname"}


def _refusing(case: RefusedUnit, *rules: str) -> Iterator[Node]:
    for name, refusal in case.why.by_node.items():
        if refusal.rule in rules:
            yield case.cluster.snapshot.nodes[name]


# The gang


def _fewer_members(case: RefusedUnit) -> Iterator[Candidate]:
    gang = case.unit.gang
    if gang is None or gang.min_tasks:
        return
    for least in sorted({case.why.fitting, len(case.unit.pods) + gang.placed}, reverse=True):
        if 1 <= least < gang.min_member:
            cluster = whatif.with_min_member(case.cluster, gang.key, least)
            yield Remedy("min-member", {"minMember": least}), cluster, max(1, least - gang.placed)


def _more_pods(case: RefusedUnit) -> Iterator[Candidate]:
    gang = case.unit.gang
    if gang is None or gang.min_tasks:
        return
    more = gang.min_member - gang.placed - len(case.unit.pods)
    if more > 0:
        cluster = whatif.with_more_pods(case.cluster, case.unit.pods[-1], more)
        yield Remedy("pods", {"more": more}), cluster, gang.min_member - gang.placed


def _make_group(case: RefusedUnit) -> Iterator[Candidate]:
    absent = case.unit.absent
    if absent is None:
        return
    gang = Gang(absent, created=case.unit.pods[0].created)
    snapshot = case.cluster.snapshot
    cluster = ClusterState(replace(snapshot, gangs={**snapshot.gangs, absent: gang}), case.cluster.waiting)
    yield Remedy("group", {"name": absent.name, "namespace": absent.namespace, "minMember": 1}), cluster, 1


# Queues


def _make_queue(case: RefusedUnit) -> Iterator[Candidate]:
    name = case.unit.queue
    known = case.cluster.snapshot.queues.get(name)
    queue = replace(known, open=True) if known else Queue(name)
    data = {"name": name, "state": "Open"}
    yield Remedy("queue", data), whatif.with_queue(case.cluster, queue), _needed(case.unit)


def _raise_capability(case: RefusedUnit) -> Iterator[Candidate]:
    lack = case.why.lack
    queue = case.cluster.snapshot.queues.get(lack.queue) if lack else None
    if lack is None or queue is None:
        return
    limits: Resources = {lack.resource: queue.capability.get(lack.resource, 0) + lack.used + lack.wanted - lack.limit}
    changed = replace(queue, capability={**queue.capability, **limits})
    data: Object = {"queue": queue.name, "atLeast": written(limits)}
    yield Remedy("capability", data), whatif.with_queue(case.cluster, changed), _needed(case.unit)


Guess = Callable[[RefusedUnit], Iterator[Candidate]]
_ROOM: tuple[Guess, ...] = (
    _uncordon,
    _tolerate,
    _label_a_node,
    _end_others,
    _raise_priority,
    _ask_for_less,
    _fewer_members,
    _add_nodes,
)
GUESSES: Mapping[str, tuple[Guess, ...]] = {
    "Unschedulable": _ROOM,
    "QueueFull": (_raise_capability, _end_others, _raise_priority, _ask_for_less, _fewer_members),
    "GangIncomplete": (_more_pods, _fewer_members),
    "NoPodGroup": (_make_group,),
    "NoQueue": (_make_queue,),
    "QueueClosed": (_make_queue,),
}
"""What to try, by why the unit waits; remedies are given in this order."""
