"""Whether a PodGroup that has no pods yet is let in, and if not, why: its queue, or what nodes have left in all.

Controllers make pods only for groups that were let in, so a group that is kept out has no pods to decide on.
`obstacles` is that decision; `explain_entry` explains it, and tries every change it offers on `obstacles` itself.
Being let in is no promise of a node: that is decided once there are pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from paddlecloud.kube.quantity import ONE, total, written
from paddlecloud.local.scheduler.controller.group_status import shortage_of
from paddlecloud.local.scheduler.decision.filters import node_is_up
from paddlecloud.local.scheduler.decision.queues import chain_of, too_much, unserved
from paddlecloud.local.scheduler.explanation import whatif
from paddlecloud.local.scheduler.explanation.explain import MOST_BLOCKERS, Blocker, Explanation, Offer
from paddlecloud.local.scheduler.explanation.remedies import Remedy
from paddlecloud.local.scheduler.explanation.whatif import ClusterState
from paddlecloud.local.scheduler.state.shape import Resources, Shape, subtract
from paddlecloud.local.scheduler.state.snapshot import Gang, Node, Queue, Snapshot
from paddlecloud.local.scheduler.state.units import Unit

LET_IN = "LetIn"
SHORT = "NotEnoughResources"
QUEUE_CODES = ("NoQueue", "QueueClosed", "QueueTooSmall")
MOST_ENDING = 20
"""Pods whose end is worth proposing; a longer list helps nobody."""

NOBODY = Shape({})
"""A pod that asks for nothing and tolerates nothing."""

Obstacles = Mapping[str, str]
"""What is said of each, by the queue's reason or by the resource that lacks; none: the group is let in."""


def obstacles(gang: Gang, queues: Mapping[str, Queue], *, free: Resources, have: Resources) -> Obstacles:
    """`free` is what could be had by pods of the group's priority, `have` what usable nodes have in all."""
    if (refused := unserved(queues, gang.queue)) is not None:
        return dict([refused])
    if not gang.min_resources:
        return {}
    if text := too_much(queues, gang.queue, gang.min_resources):
        return {"QueueTooSmall": text}
    return shortage_of(gang, free, have)


def explain_entry(snapshot: Snapshot, gang: Gang) -> Explanation:
    """The verdict on a group without pods, in the form of those on pods."""
    found = _obstacles(snapshot, gang)
    unit = Unit((), gang)
    if not found:
        return Explanation(unit, LET_IN, "it is let in")
    code = next((name for name in found if name in QUEUE_CODES), SHORT)
    return Explanation(
        unit,
        code,
        "; ".join(found.values()),
        each=gang.min_resources,
        offers=tuple(sorted(_offers(snapshot, gang), key=_most_free_first)),
        blockers=tuple(_holders(snapshot, gang, [name for name in found if name in gang.min_resources])),
        remedies=tuple(_remedies(snapshot, gang, found)),
    )


def _obstacles(snapshot: Snapshot, gang: Gang) -> Obstacles:
    free, have = _room(snapshot, gang)
    return obstacles(gang, snapshot.queues, free=free, have=have)


def _room(snapshot: Snapshot, gang: Gang) -> tuple[Resources, Resources]:
    """What the group could have, and what there is."""
    nodes = snapshot.nodes.values()
    have = total(node.allocatable for node in nodes if node.ready and not node.unschedulable)
    taken = total(pod.requests for node in nodes for pod in node.pods if pod.priority >= _priority(gang))
    return subtract(have, taken), have


def _priority(gang: Gang) -> int:
    return gang.priority or 0


def _offers(snapshot: Snapshot, gang: Gang) -> Iterator[Offer]:
    for node in snapshot.nodes.values():
        closed = node_is_up(NOBODY, node)
        yield Offer(
            node=node.name,
            free={name: max(0, node.free(name)) for name in gang.min_resources},
            allocatable={name: node.allocatable.get(name, 0) for name in gang.min_resources},
            rule=closed.rule if closed else "",
            reason=closed.reason if closed else "",
            detail=closed.detail if closed else "",
        )


def _most_free_first(offer: Offer) -> tuple[bool, tuple[int, ...], str]:
    return (bool(offer.rule), tuple(-offer.free[name] for name in sorted(offer.free)), offer.node)


def _holders(snapshot: Snapshot, gang: Gang, lacking: Sequence[str], most: int = MOST_BLOCKERS) -> list[Blocker]:
    """Who holds most of what lacks and need not give way."""
    found = [
        Blocker(pod, node.name, holds)
        for node in snapshot.nodes.values()
        for pod in node.pods
        if pod.priority >= _priority(gang)
        and (holds := {name: pod.requests[name] for name in lacking if pod.requests.get(name)})
    ]
    found.sort(key=lambda blocker: (-max(blocker.holds.values()), blocker.pod.key))
    return found[:most]


# What would change it


def _remedies(snapshot: Snapshot, gang: Gang, found: Obstacles) -> Iterator[Remedy]:
    given: set[str] = set()
    for remedy, after, changed in _guesses(snapshot, gang, found):
        if remedy.kind not in given and not _obstacles(after, changed):
            given.add(remedy.kind)
            yield remedy


Guess = tuple[Remedy, Snapshot, Gang]


def _guesses(snapshot: Snapshot, gang: Gang, found: Obstacles) -> Iterator[Guess]:
    if "QueueTooSmall" in found:
        yield from _larger_queue(snapshot, gang)
    elif any(name in QUEUE_CODES for name in found):
        queue = replace(snapshot.queues.get(gang.queue) or Queue(gang.queue), open=True)
        after = whatif.with_queue(ClusterState(snapshot, ()), queue).snapshot
        yield Remedy("queue", {"name": gang.queue, "state": "Open"}), after, gang
    else:
        yield from _more_room(snapshot, gang, list(found))


def _larger_queue(snapshot: Snapshot, gang: Gang) -> Iterator[Guess]:
    """The limit raised, or no more asked for than every queue above it may use."""
    queues = [snapshot.queues[name] for name in chain_of(snapshot.queues, gang.queue) if name in snapshot.queues]
    for queue in queues:
        short = {name: most for name, most in gang.min_resources.items() if most > queue.capability.get(name, most)}
        if short:
            raised = replace(queue, capability={**queue.capability, **short})
            after = whatif.with_queue(ClusterState(snapshot, ()), raised).snapshot
            yield Remedy("capability", {"queue": queue.name, "atLeast": written(short)}), after, gang
    limits = {
        name: min([amount, *(queue.capability[name] for queue in queues if name in queue.capability)])
        for name, amount in gang.min_resources.items()
    }
    yield _asking_at_most(snapshot, gang, limits)


def _more_room(snapshot: Snapshot, gang: Gang, lacking: list[str]) -> Iterator[Guess]:
    for node in snapshot.nodes.values():
        if node.ready and node.unschedulable:
            after = whatif.with_node(ClusterState(snapshot, ()), replace(node, unschedulable=False)).snapshot
            yield Remedy("uncordon", {"node": node.name}), after, gang
    yield from _ends(snapshot, gang, lacking)
    for priority in sorted({pod.priority for node in snapshot.nodes.values() for pod in node.pods}):
        if priority >= _priority(gang):
            yield Remedy("priority", {"atLeast": priority + 1}), snapshot, replace(gang, priority=priority + 1)
    free = total(offer.free for offer in _offers(snapshot, gang) if not offer.rule)
    if all(free.get(name) for name in gang.min_resources):
        yield _asking_at_most(snapshot, gang, free)
    missing = {name: gang.min_resources[name] for name in lacking}
    node = Node("new", {}, (), False, True, {**missing, "pods": gang.min_member * ONE})
    after = whatif.with_node(ClusterState(snapshot, ()), node).snapshot
    yield Remedy("node", {"count": 1, "capacity": written(missing), "labels": {}}), after, gang


def _ends(snapshot: Snapshot, gang: Gang, lacking: list[str]) -> Iterator[Guess]:
    """As few pods as will do, the largest first; none that could have stayed."""
    free, _ = _room(snapshot, gang)
    deficit = {name: gang.min_resources[name] - free.get(name, 0) for name in lacking}

    def enough(blockers: Sequence[Blocker]) -> bool:
        freed = total(blocker.holds for blocker in blockers)
        return all(freed.get(name, 0) >= amount for name, amount in deficit.items())

    holders = _holders(snapshot, gang, lacking, most=MOST_ENDING)
    count = next((n for n in range(1, len(holders) + 1) if enough(holders[:n])), 0)
    ending = holders[:count]
    for blocker in list(ending):
        rest = [other for other in ending if other is not blocker]
        if enough(rest):
            ending = rest
    if ending:
        after = whatif.without_pods(ClusterState(snapshot, ()), [blocker.pod for blocker in ending]).snapshot
        pods = [{"pod": str(blocker.pod.key), "node": blocker.node} for blocker in ending]
        yield Remedy("end", {"pods": pods}), after, gang


def _asking_at_most(snapshot: Snapshot, gang: Gang, limits: Resources) -> Guess:
    smaller = {name: min(amount, limits.get(name, amount)) for name, amount in gang.min_resources.items()}
    changed = {name: amount for name, amount in smaller.items() if amount < gang.min_resources[name]}
    return Remedy("least", {"atMost": written(changed)}), snapshot, replace(gang, min_resources=smaller)
