"""A cluster with one thing changed: what explanations are checked on before they are given. Pure.

Each function takes a `ClusterState` and returns another; nothing is done to the cluster. `starts` asks the scheduler
itself.
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
class ClusterState:
    """The nodes, pods and queues of a cluster, and the pods that wait."""

    snapshot: Snapshot
    waiting: tuple[Pod, ...]


def starts(cluster: ClusterState, uids: frozenset[str], *, needed: int, policy: Policy = DEFAULT) -> bool:
    """Whether the next round places at least `needed` of these pods, or makes room for them."""
    result = decide(cluster.snapshot, units_of(cluster.waiting, cluster.snapshot.gangs), policy=policy)
    placed = sum(1 for pod, _ in result.placements if pod.uid in uids)
    nominated = sum(1 for pod, _ in result.nominations if pod.uid in uids)
    return max(placed, nominated) >= max(1, needed)


def without_pods(cluster: ClusterState, pods: Iterable[Pod]) -> ClusterState:
    """As if these had ended."""
    gone = {pod.uid: pod for pod in pods}
    snapshot = cluster.snapshot
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
    return ClusterState(replace(snapshot, nodes=nodes, gangs=gangs, allocated=allocated), cluster.waiting)


def with_placed(cluster: ClusterState, change: Callable[[Pod], Pod]) -> ClusterState:
    """As if pods on nodes were others, of the same size."""
    nodes = {name: replace(node, pods=tuple(map(change, node.pods))) for name, node in cluster.snapshot.nodes.items()}
    return ClusterState(replace(cluster.snapshot, nodes=nodes), cluster.waiting)


def with_shapes(cluster: ClusterState, uids: frozenset[str], change: Callable[[Shape], Shape]) -> ClusterState:
    """As if these waiting pods asked for something else. Equal shapes stay one object, as lanes need them to be."""
    changed: dict[Shape, Shape] = {}

    def renewed(pod: Pod) -> Pod:
        if pod.uid not in uids:
            return pod
        if pod.shape not in changed:
            changed[pod.shape] = change(pod.shape)
        return replace(pod, shape=changed[pod.shape])

    return ClusterState(cluster.snapshot, tuple(map(renewed, cluster.waiting)))


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


def with_priority(cluster: ClusterState, uids: frozenset[str], priority: int) -> ClusterState:
    waiting = tuple(
        replace(pod, priority=priority, may_preempt=True) if pod.uid in uids else pod for pod in cluster.waiting
    )
    groups = {pod.group for pod in waiting if pod.uid in uids and pod.group is not None}
    gangs = {
        key: replace(gang, priority=priority) if key in groups and gang.priority is not None else gang
        for key, gang in cluster.snapshot.gangs.items()
    }
    return ClusterState(replace(cluster.snapshot, gangs=gangs, lowest=None), waiting)


def with_node(cluster: ClusterState, node: Node) -> ClusterState:
    """As if the node were there, in place of one of that name if there is."""
    nodes = {**cluster.snapshot.nodes, node.name: node}
    return ClusterState(replace(cluster.snapshot, nodes=nodes), cluster.waiting)


def with_min_member(cluster: ClusterState, key: GroupKey, least: int) -> ClusterState:
    gangs: Mapping[GroupKey, object] = cluster.snapshot.gangs
    assert key in gangs
    changed = {**cluster.snapshot.gangs, key: replace(cluster.snapshot.gangs[key], min_member=least)}
    return ClusterState(replace(cluster.snapshot, gangs=changed), cluster.waiting)


def with_queue(cluster: ClusterState, queue: Queue) -> ClusterState:
    queues = {**cluster.snapshot.queues, queue.name: queue}
    return ClusterState(replace(cluster.snapshot, queues=queues), cluster.waiting)


def with_more_pods(cluster: ClusterState, like: Pod, count: int) -> ClusterState:
    """As if `count` more pods like one that waits had been made."""
    more = tuple(
        replace(like, uid=f"{like.uid}/{number}", key=like.key._replace(name=f"{like.key.name}-{number}"))
        for number in range(count)
    )
    return ClusterState(cluster.snapshot, (*cluster.waiting, *more))
