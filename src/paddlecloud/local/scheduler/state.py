"""What the scheduler keeps between rounds: usage of nodes, members of gangs, lanes of waiting units.

Every change of an object costs as much as that object, never as the cluster: `snapshot` and `due` rebuild only what
changed since they were last asked. A pod that was just bound is *assumed* on its node until the cache shows it there,
so that the next round neither places it twice nor forgets what it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from paddlecloud.kube.quantity import total
from paddlecloud.kube.resource import Key, Object, key_of

from .shape import Resources, add, subtract
from .snapshot import (
    OVER,
    Budget,
    Gang,
    GroupKey,
    Node,
    Pod,
    Queue,
    Snapshot,
    budget_view,
    gang_view,
    node_view,
    pod_view,
    queue_view,
)
from .units import Lane, Unit
from .waiting import Moment, UnitId, WaitingRoom

NAMES = frozenset(("default-scheduler", "volcano", "paddlecloud"))
"""Scheduler names this one answers to: on one machine they are the same program."""


@dataclass(slots=True)
class Group:
    """A PodGroup, existing or only referred to, and its pods."""

    source: Object | None = None
    gang: Gang | None = None
    waiting: dict[str, Pod] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)  # uid → task
    phases: dict[str, str] = field(default_factory=dict)  # uid → phase, of every member
    why: str = ""  # the last refusal
    code: str = ""


class State:
    def __init__(self) -> None:
        self._bare: dict[str, Node] = {}
        self._on: dict[str, dict[str, Pod]] = {}  # node, also one we do not know → uid → pod
        self._used: dict[str, Resources] = {}
        self._built: dict[str, Node] = {}
        self._stale: set[str] = set()
        self._place: dict[str, str] = {}  # uid → node
        self._assumed: dict[str, str] = {}
        self._leaving: set[str] = set()  # evicted by us, until the cache says so
        self._nominated: dict[str, str] = {}
        self._seen: dict[str, Object] = {}  # uid → the object last taken in
        self.groups: dict[GroupKey, Group] = {}
        self._group_of: dict[str, GroupKey] = {}
        self._gangs: dict[GroupKey, Gang] = {}
        self._queues: dict[str, Queue] = {}
        self._allocated: dict[str, Resources] | None = {}
        self._budgets: dict[Key, Budget] = {}
        self._priorities: dict[str, int] = {}
        self._guards = 0  # placed pods that keep others away
        self._by_priority: dict[int, Resources] = {}  # what placed pods take in all
        self._capacity: Resources | None = None
        self.touched: set[GroupKey] = set()  # groups whose status may have to be written
        self.waiting: dict[str, Pod] = {}
        self._room = WaitingRoom()
        self._opened = 0  # how often something made room for somebody
        self._arrivals = 0  # how often a pod got a node

    # What a round is decided on

    def snapshot(self) -> Snapshot:
        for name in self._stale:
            bare = self._bare.get(name)
            if bare is None:
                self._built.pop(name, None)
            else:
                self._built[name] = bare.holding(tuple(self._on.get(name, {}).values()), dict(self._used.get(name, {})))
        self._stale.clear()
        return Snapshot(
            nodes=dict(self._built),
            gangs=dict(self._gangs),
            queues=dict(self._queues),
            allocated=dict(self._allocations()) if self._queues else {},
            budgets=tuple(self._budgets.values()),
            guarded=self._guards > 0,
            lowest=min((priority for priority, used in self._by_priority.items() if used.get("pods")), default=0),
        )

    def due(self) -> list[Lane]:
        """The lanes worth trying now."""
        strict = frozenset(queue.name for queue in self._queues.values() if queue.fifo)
        self._room.refresh(self._unit)
        return self._room.due(self._moment, strict)

    def refused(self, lane: Lane) -> None:
        """Nothing of this lane fits until something opens up."""
        self._room.refused(lane, self._moment)

    @property
    def _moment(self) -> Moment:
        return Moment(self._opened, self._arrivals)

    def _unit(self, unit_id: UnitId) -> Unit | None:
        if isinstance(unit_id, str):
            pod = self.waiting.get(unit_id)
            return Unit((pod,)) if pod is not None else None
        group = self.groups.get(unit_id)
        if group is None or not group.waiting:
            return None
        return Unit(tuple(group.waiting.values()), self._gangs.get(unit_id), None if group.gang else unit_id)

    # News of pods

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or new["metadata"].get("uid") != old["metadata"].get("uid")):
            self._forget_pod(str(old["metadata"].get("uid")))
        if new is not None:
            self._take_in(new)

    def _take_in(self, obj: Object) -> None:
        uid = str(obj["metadata"].get("uid"))
        before = self._seen.get(uid)
        self._seen[uid] = obj
        if before is not None and _same_for_us(before, obj):
            self._count_phase(uid, obj)
            return
        assumed = self._assumed.get(uid)
        if assumed is not None and (obj["spec"].get("nodeName") or phase_of(obj) in OVER):
            del self._assumed[uid]
            assumed = None
        if obj["metadata"].get("deletionTimestamp"):
            self._leaving.discard(uid)
        pod = self._view(obj)
        self._enlist(uid, pod)
        self._count_phase(uid, obj)
        if phase_of(obj) in OVER:
            self._clear(uid)
        elif pod.node or assumed:
            self._put(pod, pod.node or assumed or "")
        elif _is_ours(obj) and not pod.leaving:
            self._wait(pod)
        else:
            self._clear(uid)

    def _view(self, obj: Object) -> Pod:
        pod = pod_view(obj)
        if pod.uid in self._leaving:
            pod = replace(pod, leaving=True)
        if pod.uid in self._nominated and not pod.node:
            if pod.nominated == self._nominated[pod.uid]:
                del self._nominated[pod.uid]
            else:
                pod = replace(pod, nominated=self._nominated[pod.uid])
        return pod

    def _enlist(self, uid: str, pod: Pod) -> None:
        """Membership of a group, which labels and annotations may change."""
        known = self._group_of.get(uid)
        if known == pod.group:
            return
        if known is not None:
            self._leave_group(uid)
        if pod.group is not None:
            self._group_of[uid] = pod.group
            self.groups.setdefault(pod.group, Group())

    def _count_phase(self, uid: str, obj: Object) -> None:
        key = self._group_of.get(uid)
        if key is not None:
            group = self.groups[key]
            phase = phase_of(obj)
            if group.phases.get(uid) != phase:
                group.phases[uid] = phase
                self.touched.add(key)

    def _put(self, pod: Pod, node: str) -> None:
        uid = pod.uid
        where = self._place.get(uid)
        if where == node:
            former = self._on[node][uid]
            self._on[node][uid] = pod
            if former.requests is not pod.requests:  # nearly never: requests cannot change while it runs
                self._used[node] = add(subtract(self._used[node], former.requests), pod.requests)
            self._stale.add(node)
            return
        self._clear(uid)
        self._place[uid] = node
        self._on.setdefault(node, {})[uid] = pod
        self._used[node] = add(self._used.get(node, {}), pod.requests)
        self._stale.add(node)
        self._arrivals += 1
        self._by_priority[pod.priority] = add(self._by_priority.get(pod.priority, {}), pod.requests)
        if pod.shape.social is not None and pod.shape.social.apart:
            self._guards += 1
        if self._allocated is not None:
            queue = self._queue_of(pod)
            self._allocated[queue] = add(self._allocated.get(queue, {}), pod.requests)
        if pod.group is not None:
            group = self.groups[pod.group]
            group.placed[uid] = pod.task
            self._recount(pod.group, group)

    def _wait(self, pod: Pod) -> None:
        if pod.uid in self._place:
            self._clear(pod.uid)
        if pod.group is None:
            self.waiting[pod.uid] = pod
            self._room.changed(pod.uid)
        else:
            self.waiting[pod.uid] = pod
            self.groups[pod.group].waiting[pod.uid] = pod
            self._room.changed(pod.group)

    def _clear(self, uid: str) -> None:
        """The pod neither waits nor takes room."""
        waited = self.waiting.pop(uid, None)
        if waited is not None:
            if waited.group is None:
                self._room.changed(uid)
            else:
                self.groups[waited.group].waiting.pop(uid, None)
                self._room.changed(waited.group)
        node = self._place.pop(uid, None)
        if node is None:
            return
        pod = self._on[node].pop(uid)
        if self._on[node]:
            self._used[node] = subtract(self._used[node], pod.requests)
        else:
            del self._on[node], self._used[node]
        self._stale.add(node)
        self._opened += 1
        self._by_priority[pod.priority] = subtract(self._by_priority[pod.priority], pod.requests)
        if pod.shape.social is not None and pod.shape.social.apart:
            self._guards -= 1
        if self._allocated is not None:
            queue = self._queue_of(pod)
            self._allocated[queue] = subtract(self._allocated.get(queue, {}), pod.requests)
        if pod.group is not None and (group := self.groups.get(pod.group)) is not None:
            group.placed.pop(uid, None)
            self._recount(pod.group, group)

    def _forget_pod(self, uid: str) -> None:
        self._clear(uid)
        self._leave_group(uid)
        self._seen.pop(uid, None)
        self._assumed.pop(uid, None)
        self._leaving.discard(uid)
        self._nominated.pop(uid, None)

    def _leave_group(self, uid: str) -> None:
        key = self._group_of.pop(uid, None)
        if key is None:
            return
        group = self.groups[key]
        group.phases.pop(uid, None)
        group.placed.pop(uid, None)
        group.waiting.pop(uid, None)
        self.touched.add(key)
        self._recount(key, group)
        self._drop_if_empty(key)

    # What we did ourselves

    def assume(self, pod: Pod, node: str) -> None:
        self._assumed[pod.uid] = node
        self._nominated.pop(pod.uid, None)
        self._put(replace(pod, node=node), node)

    def give_up(self, uid: str) -> None:
        """A binding failed: the pod is again what its object says."""
        if self._assumed.pop(uid, None) is not None and (obj := self._seen.pop(uid, None)) is not None:
            self._clear(uid)
            self._take_in(obj)

    def evicted(self, uid: str) -> None:
        self._leaving.add(uid)
        self._renew(uid)

    def spared(self, uid: str) -> None:
        """An eviction failed."""
        self._leaving.discard(uid)
        self._renew(uid)

    def nominate(self, uid: str, node: str) -> None:
        self._nominated[uid] = node
        self._renew(uid)

    def _renew(self, uid: str) -> None:
        if (obj := self._seen.pop(uid, None)) is not None:
            self._take_in(obj)

    def source(self, uid: str) -> Object | None:
        return self._seen.get(uid)

    # News of everything else

    def on_node(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._bare.pop(old["metadata"]["name"], None)
                self._stale.add(old["metadata"]["name"])
                self._capacity = None
            return
        view = node_view(new)
        known = self._bare.get(view.name)
        if known is not None and _same_node(known, view):
            return
        self._bare[view.name] = view
        self._stale.add(view.name)
        self._capacity = None
        self._opened += 1

    def on_group(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        key = gang_view(obj).key
        group = self.groups.setdefault(key, Group())
        former = group.gang
        group.source = new
        group.gang = self._gang(new) if new is not None else None
        self.touched.add(key)
        if (former.queue if former else None) != (group.gang.queue if group.gang else None) and group.placed:
            self._allocated = None  # its members count for another queue now
        self._recount(key, group)
        self._drop_if_empty(key)

    def _gang(self, obj: Object) -> Gang:
        name = (obj.get("spec") or {}).get("priorityClassName")
        return gang_view(obj, priority=self._priorities.get(name) if name else None)

    def _recount(self, key: GroupKey, group: Group) -> None:
        """Keep what the gang says of its members true; its waiting pods are judged anew if that changed."""
        gang = group.gang
        before = self._gangs.get(key)
        if gang is None:
            self._gangs.pop(key, None)
        elif len(group.placed) != gang.placed or gang.min_tasks:
            gang = replace(gang, placed=len(group.placed), placed_tasks=dict(Counter(group.placed.values())))
            group.gang = gang
        if gang is not None:
            self._gangs[key] = gang
        if group.waiting and before != gang:
            self._room.changed(key)

    def _drop_if_empty(self, key: GroupKey) -> None:
        group = self.groups.get(key)
        if group is not None and group.source is None and not group.phases and not group.waiting:
            del self.groups[key]
            self._gangs.pop(key, None)

    def on_queue(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._queues.pop(old["metadata"]["name"], None)
        else:
            view = queue_view(new)
            if self._queues.get(view.name) == view:
                return  # its status was written
            self._queues[view.name] = view
        self._opened += 1

    def on_budget(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        if new is None:
            self._budgets.pop(key_of(obj), None)
        else:
            self._budgets[key_of(obj)] = budget_view(new)
        self._opened += 1

    def on_priority_class(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        name = obj["metadata"]["name"]
        if new is None:
            self._priorities.pop(name, None)
        else:
            self._priorities[name] = int(new.get("value") or 0)
        for key, group in self.groups.items():
            if group.source is not None and (group.source.get("spec") or {}).get("priorityClassName") == name:
                group.gang = self._gang(group.source)
                self._recount(key, group)

    # Sums

    def capacity(self) -> Resources:
        """What the nodes that take pods have in all."""
        if self._capacity is None:
            usable = (node for node in self._bare.values() if node.ready and not node.unschedulable)
            self._capacity = total(node.allocatable for node in usable)
        return self._capacity

    def free_for(self, priority: int) -> Resources:
        """What could be had in all by pods of this priority, if those that matter less were made to leave."""
        free = self.capacity()
        for other, used in self._by_priority.items():
            if other >= priority:
                free = subtract(free, used)
        return free

    def queues(self) -> Mapping[str, Queue]:
        return self._queues

    def allocated(self, queue: str) -> Resources:
        return self._allocations().get(queue, {})

    def _queue_of(self, pod: Pod) -> str:
        gang = self._gangs.get(pod.group) if pod.group else None
        return gang.queue if gang else pod.queue or "default"

    def _allocations(self) -> dict[str, Resources]:
        if self._allocated is None:
            fresh: dict[str, Resources] = {}
            for pods in self._on.values():
                for pod in pods.values():
                    queue = self._queue_of(pod)
                    fresh[queue] = add(fresh.get(queue, {}), pod.requests)
            self._allocated = fresh
        return self._allocated


def phase_of(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase") or "Pending")


def _is_ours(obj: Object) -> bool:
    spec = obj["spec"]
    return spec.get("schedulerName", "default-scheduler") in NAMES and not spec.get("schedulingGates")


_SPEC_FIELDS = ("nodeName", "schedulingGates", "tolerations")
"""All that may change in the spec of a pod and that a scheduler reads."""


def _same_for_us(old: Object, new: Object) -> bool:
    """Status details of pods change nothing for anybody who waits."""
    a, b = old["metadata"], new["metadata"]
    before, after = old.get("status") or {}, new.get("status") or {}
    return (
        all(old["spec"].get(name) == new["spec"].get(name) for name in _SPEC_FIELDS)
        and bool(a.get("deletionTimestamp")) == bool(b.get("deletionTimestamp"))
        and (phase_of(old) in OVER) == (phase_of(new) in OVER)
        and before.get("nominatedNodeName") == after.get("nominatedNodeName")
        and a.get("labels") == b.get("labels")
        and a.get("annotations") == b.get("annotations")
    )


def _same_node(a: Node, b: Node) -> bool:
    return (
        a.labels == b.labels
        and a.taints == b.taints
        and a.unschedulable == b.unschedulable
        and a.ready == b.ready
        and a.allocatable == b.allocatable
    )
