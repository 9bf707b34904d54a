"""What the scheduler keeps between rounds: which pods wait, where the others are, and what it did itself.

Every change of an object costs as much as that object, never as the cluster: `snapshot` and `due` rebuild only what
changed since they were last asked. A pod that was just bound is *assumed* on its node until the cache shows it there,
so that the next round neither places it twice nor forgets what it takes. Who is where is kept by `Occupancy`, who
belongs together by `Membership`, what queues use by `QueueUse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paddlecloud.kube.pods import is_finished, phase_of
from paddlecloud.kube.resource import Key, Object, key_of
from paddlecloud.local.scheduler.state.membership import Group, Membership
from paddlecloud.local.scheduler.state.occupancy import Occupancy
from paddlecloud.local.scheduler.state.queue_use import QueueUse
from paddlecloud.local.scheduler.state.shape import Resources
from paddlecloud.local.scheduler.state.snapshot import (
    DEFAULT_QUEUE,
    Budget,
    GroupKey,
    Pod,
    Queue,
    Snapshot,
    budget_view,
    pod_view,
)
from paddlecloud.local.scheduler.state.units import Lane, Unit
from paddlecloud.local.scheduler.state.waiting import Counters, UnitId, WaitingRoom

NAMES = frozenset(("default-scheduler", "volcano", "paddlecloud"))
"""Scheduler names this one answers to: on one machine they are the same program."""


class State:
    def __init__(self) -> None:
        self.waiting: dict[str, Pod] = {}  # by uid
        self._room = WaitingRoom()
        self._members = Membership(self._room.changed)
        self._nodes = Occupancy()
        self._queues = QueueUse(self._queue_of, self._nodes.pods)
        self._budgets: dict[Key, Budget] = {}
        self._seen: dict[str, Object] = {}  # uid → the object last taken in
        self._assumed: dict[str, str] = {}  # uid → node, until the cache says so
        self._leaving: set[str] = set()  # evicted by us, until the cache says so
        self._nominated: dict[str, str] = {}  # uid → node, until the cache says so
        self._opened = 0  # how often something made room for somebody
        self._arrivals = 0  # how often a pod got a node

    # What a round is decided on

    def snapshot(self) -> Snapshot:
        queues = self._queues.queues
        return Snapshot(
            nodes=self._nodes.nodes(),
            gangs=dict(self._members.gangs),
            queues=dict(queues),
            allocated=dict(self._queues.allocated()) if queues else {},
            budgets=tuple(self._budgets.values()),
            guarded=self._nodes.guarded,
            lowest=self._nodes.lowest,
        )

    def due(self) -> list[Lane]:
        """The lanes worth trying now."""
        strict = frozenset(queue.name for queue in self._queues.queues.values() if queue.fifo)
        self._room.refresh(self._unit)
        return self._room.due(self._moment, strict)

    def refused(self, lane: Lane) -> None:
        """Nothing of this lane fits until something opens up."""
        self._room.refused(lane, self._moment)

    @property
    def _moment(self) -> Counters:
        return Counters(self._opened, self._arrivals)

    def _unit(self, unit_id: UnitId) -> Unit | None:
        if not isinstance(unit_id, str):
            return self._members.unit(unit_id)
        pod = self.waiting.get(unit_id)
        return Unit((pod,)) if pod is not None else None

    # News of pods

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or new["metadata"].get("uid") != old["metadata"].get("uid")):
            self._forget(str(old["metadata"].get("uid")))
        if new is not None:
            self._take_in(new)

    def _take_in(self, obj: Object) -> None:
        uid = str(obj["metadata"].get("uid"))
        before = self._seen.get(uid)
        self._seen[uid] = obj
        if before is not None and _same_for_us(before, obj):
            self._members.note_phase(uid, phase_of(obj))
            return
        assumed = self._assumed.get(uid)
        if assumed is not None and (obj["spec"].get("nodeName") or is_finished(obj)):
            del self._assumed[uid]
            assumed = None
        if obj["metadata"].get("deletionTimestamp"):
            self._leaving.discard(uid)
        pod = self._view(obj)
        if self._members.group_of(uid) != pod.group:
            self._clear(uid)  # for its old group; it is put where it belongs below
            self._members.enlist(uid, pod.group)
        self._members.note_phase(uid, phase_of(obj))
        if is_finished(obj):
            self._clear(uid)
        elif pod.node or assumed:
            self._put(pod, pod.node or assumed or "")
        elif _is_ours(obj) and not pod.leaving:
            self._wait(pod)
        else:
            self._clear(uid)

    def _view(self, obj: Object) -> Pod:
        """The pod as its object describes it, with what we wrote in the meantime."""
        pod = pod_view(obj)
        if pod.uid in self._leaving:
            pod = replace(pod, leaving=True)
        if pod.uid in self._nominated and not pod.node:
            if pod.nominated == self._nominated[pod.uid]:
                del self._nominated[pod.uid]
            else:
                pod = replace(pod, nominated=self._nominated[pod.uid])
        return pod

    def _put(self, pod: Pod, node: str) -> None:
        """The pod has a node."""
        if not self._nodes.is_on(pod.uid, node):
            self._clear(pod.uid)
        if not self._nodes.put(pod, node):
            return
        self._arrivals += 1
        self._queues.put(pod)
        if pod.group is not None:
            self._members.placed(pod, pod.group)

    def _wait(self, pod: Pod) -> None:
        """The pod has no node and wants one."""
        if pod.uid in self._nodes:
            self._clear(pod.uid)
        self.waiting[pod.uid] = pod
        if pod.group is None:
            self._room.changed(pod.uid)
        else:
            self._members.waits(pod, pod.group)

    def _clear(self, uid: str) -> None:
        """The pod neither waits nor takes room."""
        waited = self.waiting.pop(uid, None)
        if waited is not None:
            if waited.group is None:
                self._room.changed(uid)
            else:
                self._members.waits_no_more(uid, waited.group)
        pod = self._nodes.remove(uid)
        if pod is None:
            return
        self._opened += 1
        self._queues.remove(pod)
        if pod.group is not None:
            self._members.displaced(uid, pod.group)

    def _forget(self, uid: str) -> None:
        self._clear(uid)
        self._members.leave(uid)
        self._seen.pop(uid, None)
        self._assumed.pop(uid, None)
        self._leaving.discard(uid)
        self._nominated.pop(uid, None)

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

    # News of everything else

    def on_node(self, old: Object | None, new: Object | None) -> None:
        self._opened += self._nodes.on_node(old, new)

    def on_group(self, old: Object | None, new: Object | None) -> None:
        if self._members.on_group(old, new):
            self._queues.count_anew()

    def on_priority_class(self, old: Object | None, new: Object | None) -> None:
        self._members.on_priority_class(old, new)

    def on_queue(self, old: Object | None, new: Object | None) -> None:
        self._opened += self._queues.on_queue(old, new)

    def on_budget(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        if new is None:
            self._budgets.pop(key_of(obj), None)
        else:
            self._budgets[key_of(obj)] = budget_view(new)
        self._opened += 1

    # Status of groups and queues

    @property
    def groups(self) -> Mapping[GroupKey, Group]:
        return self._members.groups

    @property
    def touched(self) -> set[GroupKey]:
        """Groups whose status may have to be written; the writer removes them."""
        return self._members.touched

    def capacity(self) -> Resources:
        return self._nodes.capacity()

    def free_for(self, priority: int) -> Resources:
        return self._nodes.free_for(priority)

    def queues(self) -> Mapping[str, Queue]:
        return self._queues.queues

    def allocated(self, queue: str) -> Resources:
        return self._queues.allocated().get(queue, {})

    def _queue_of(self, pod: Pod) -> str:
        gang = self._members.gangs.get(pod.group) if pod.group else None
        return gang.queue if gang else pod.queue or DEFAULT_QUEUE


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
        and is_finished(old) == is_finished(new)
        and before.get("nominatedNodeName") == after.get("nominatedNodeName")
        and a.get("labels") == b.get("labels")
        and a.get("annotations") == b.get("annotations")
    )
