"""A cluster with one thing changed: what explanations are checked on before they are given. Pure.

Each function takes a `Moment` and returns another; nothing is done to the cluster. `starts` asks the scheduler itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from paddlecloud.kube.quantity import total
from paddlecloud.local.scheduler.decision.decide import decide
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.state.shape import Resources, Shape, Toleration, subtract
from paddlecloud.local.scheduler.state.snapshot import GroupKey, Node, Pod, Queue, Snapshot
from paddlecloud.local.scheduler.state.units import units_of


@dataclass(frozen=True, slots=True)
class Moment:
    """What is there and what waits."""

    snapshot: Snapshot
    waiting: tuple[Pod, ...]


def starts(moment: Moment, uids: frozenset[str], *, needed: int, policy: Policy = DEFAULT) -> bool:
    """Whether the next round places at least `needed` of these pods, or makes room for them."""
    result = decide(moment.snapshot, units_of(moment.waiting, moment.snapshot.gangs), policy=policy)
    placed = sum(1 for pod, _ in result.placements if pod.uid in uids)
    nominated = sum(1 for pod, _ in result.nominations if pod.uid in uids)
    return max(placed, nominated) >= max(1, needed)


def without_pods(moment: Moment, pods: Iterable[Pod]) -> Moment:
    """As if these had ended."""
    gone = {pod.uid: pod for pod in pods}
    snapshot = moment.snapshot
    nodes = dict(snapshot.nodes)
    for name, node in nodes.items():
        kept = tuple(pod for pod in node.pods if pod.uid not in gone)
        if len(kept) != len(node.pods):
            nodes[name] = node.holding(kept, total(pod.requests for pod in kept))
    gangs, allocated = dict(snapshot.gangs), dict(snapshot.allocated)
    for pod in gone.values():
        if pod.group in gangs and pod.group is not None:
            gang = gangs[pod.group]
            tasks = {**gang.placed_tasks, pod.task: gang.placed_tasks.get(pod.task, 0) - 1}
            gangs[pod.group] = replace(gang, placed=gang.placed - 1, placed_tasks=tasks)
        if snapshot.queues:
            queue = snapshot.queue_of(pod)
            allocated[queue] = subtract(allocated.get(queue, {}), pod.requests)
    return Moment(replace(snapshot, nodes=nodes, gangs=gangs, allocated=allocated), moment.waiting)


def with_placed(moment: Moment, change: Callable[[Pod], Pod]) -> Moment:
    """As if pods on nodes were others, of the same size."""
    nodes = {name: replace(node, pods=tuple(map(change, node.pods))) for name, node in moment.snapshot.nodes.items()}
    return Moment(replace(moment.snapshot, nodes=nodes), moment.waiting)


def with_shapes(moment: Moment, uids: frozenset[str], change: Callable[[Shape], Shape]) -> Moment:
    """As if these waiting pods asked for something else. Equal shapes stay one object, as lanes need them to be."""
    changed: dict[Shape, Shape] = {}

    def renewed(pod: Pod) -> Pod:
        if pod.uid not in uids:
            return pod
        if pod.shape not in changed:
            changed[pod.shape] = change(pod.shape)
        return replace(pod, shape=changed[pod.shape])

    return Moment(moment.snapshot, tuple(map(renewed, moment.waiting)))


def asking_at_most(limits: Resources) -> Callable[[Shape], Shape]:
    def change(shape: Shape) -> Shape:
        smaller = {name: min(amount, limits.get(name, amount)) for name, amount in shape.requests.items()}
        return replace(shape, requests={name: amount for name, amount in smaller.items() if amount > 0})

    return change


def tolerating(key: str, value: str, effect: str) -> Callable[[Shape], Shape]:
    toleration = Toleration(key, not value, value, effect)

    def change(shape: Shape) -> Shape:
        return replace(shape, tolerations=(*shape.tolerations, toleration))

    return change


def with_priority(moment: Moment, uids: frozenset[str], priority: int) -> Moment:
    waiting = tuple(
        replace(pod, priority=priority, may_preempt=True) if pod.uid in uids else pod for pod in moment.waiting
    )
    groups = {pod.group for pod in waiting if pod.uid in uids and pod.group is not None}
    gangs = {
        key: replace(gang, priority=priority) if key in groups and gang.priority is not None else gang
        for key, gang in moment.snapshot.gangs.items()
    }
    return Moment(replace(moment.snapshot, gangs=gangs, lowest=None), waiting)


def with_node(moment: Moment, node: Node) -> Moment:
    """As if the node were there, in place of one of that name if there is."""
    nodes = {**moment.snapshot.nodes, node.name: node}
    return Moment(replace(moment.snapshot, nodes=nodes), moment.waiting)


def with_min_member(moment: Moment, key: GroupKey, least: int) -> Moment:
    gangs: Mapping[GroupKey, object] = moment.snapshot.gangs
    assert key in gangs
    changed = {**moment.snapshot.gangs, key: replace(moment.snapshot.gangs[key], min_member=least)}
    return Moment(replace(moment.snapshot, gangs=changed), moment.waiting)


def with_queue(moment: Moment, queue: Queue) -> Moment:
    queues = {**moment.snapshot.queues, queue.name: queue}
    return Moment(replace(moment.snapshot, queues=queues), moment.waiting)


def with_more_pods(moment: Moment, like: Pod, count: int) -> Moment:
    """As if `count` more pods like one that waits had been made."""
    more = tuple(
        replace(like, uid=f"{like.uid}/{number}", key=like.key._replace(name=f"{like.key.name}-{number}"))
        for number in range(count)
    )
    return Moment(moment.snapshot, (*moment.waiting, *more))
