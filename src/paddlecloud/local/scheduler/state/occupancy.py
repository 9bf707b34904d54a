"""Which pods have which node, and what they take: of each node, of all, by priority.

Pods may stand on a node whose object is not known, or no more; they count for it as soon as it is. Every change costs
as much as the pod or node it is about: the nodes of a snapshot are made anew only where something changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paddlecloud.kube.quantity import total
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.state.shape import Resources, add, subtract
from paddlecloud.local.scheduler.state.snapshot import Node, Pod, node_view


class Occupancy:
    def __init__(self) -> None:
        self._bare: dict[str, Node] = {}  # the nodes as their objects describe them, nothing on them
        self._built: dict[str, Node] = {}  # and with their pods, except for those in `_stale`
        self._stale: set[str] = set()
        self._on: dict[str, dict[str, Pod]] = {}  # node → uid → pod
        self._used: dict[str, Resources] = {}
        self._place: dict[str, str] = {}  # uid → node
        self._by_priority: dict[int, Resources] = {}
        self._guards = 0  # pods that keep others away
        self._capacity: Resources | None = None

    def __contains__(self, uid: str) -> bool:
        return uid in self._place

    # What a snapshot takes from here

    def nodes(self) -> dict[str, Node]:
        for name in self._stale:
            bare = self._bare.get(name)
            if bare is None:
                self._built.pop(name, None)
            else:
                self._built[name] = bare.holding(tuple(self._on.get(name, {}).values()), dict(self._used.get(name, {})))
        self._stale.clear()
        return dict(self._built)

    def pods(self) -> Iterator[Pod]:
        for pods in self._on.values():
            yield from pods.values()

    @property
    def guarded(self) -> bool:
        return self._guards > 0

    @property
    def lowest(self) -> int:
        """The least priority among the pods."""
        return min((priority for priority, used in self._by_priority.items() if used.get("pods")), default=0)

    # Changes

    def put(self, pod: Pod, node: str) -> bool:
        """The pod is on the node. Whether it was not there before; then it must be on no other."""
        uid = pod.uid
        if self._place.get(uid) == node:
            former = self._on[node][uid]
            self._on[node][uid] = pod
            if former.requests is not pod.requests:  # nearly never: requests cannot change while it runs
                self._used[node] = add(subtract(self._used[node], former.requests), pod.requests)
            self._stale.add(node)
            return False
        self._place[uid] = node
        self._on.setdefault(node, {})[uid] = pod
        self._used[node] = add(self._used.get(node, {}), pod.requests)
        self._stale.add(node)
        self._by_priority[pod.priority] = add(self._by_priority.get(pod.priority, {}), pod.requests)
        self._guards += _guards(pod)
        return True

    def is_on(self, uid: str, node: str) -> bool:
        return self._place.get(uid) == node

    def remove(self, uid: str) -> Pod | None:
        """The pod that had a node and has it no more; None if it had none."""
        node = self._place.pop(uid, None)
        if node is None:
            return None
        pod = self._on[node].pop(uid)
        if self._on[node]:
            self._used[node] = subtract(self._used[node], pod.requests)
        else:
            del self._on[node], self._used[node]
        self._stale.add(node)
        self._by_priority[pod.priority] = subtract(self._by_priority[pod.priority], pod.requests)
        self._guards -= _guards(pod)
        return pod

    def on_node(self, old: Object | None, new: Object | None) -> bool:
        """Whether the change may have opened room: a node came, or became another."""
        if new is None:
            if old is not None:
                self._bare.pop(old["metadata"]["name"], None)
                self._stale.add(old["metadata"]["name"])
                self._capacity = None
            return False
        view = node_view(new)
        known = self._bare.get(view.name)
        if known is not None and _same(known, view):
            return False
        self._bare[view.name] = view
        self._stale.add(view.name)
        self._capacity = None
        return True

    # Sums

    def capacity(self) -> Resources:
        """What the nodes that take pods have in all."""
        if self._capacity is None:
            usable = (node for node in self._bare.values() if node.ready and not node.unschedulable)
            self._capacity = total(node.allocatable for node in usable)
        return self._capacity

    def free_for(self, priority: int) -> Resources:
        """What could be had in all by pods of this priority, if those that matter less were made to leave."""
        free: Mapping[str, int] = self.capacity()
        for other, used in self._by_priority.items():
            if other >= priority:
                free = subtract(free, used)
        return free


def _guards(pod: Pod) -> bool:
    return pod.shape.pod_affinity is not None and bool(pod.shape.pod_affinity.apart)


def _same(a: Node, b: Node) -> bool:
    return (
        a.labels == b.labels
        and a.taints == b.taints
        and a.unschedulable == b.unschedulable
        and a.ready == b.ready
        and a.allocatable == b.allocatable
    )
