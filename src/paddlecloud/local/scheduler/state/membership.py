"""PodGroups and their pods: who belongs to which, how far each member is, and what a gang still lacks.

A pod may name a group that does not exist yet, and a group may have no pods: either side is kept until both are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.state.snapshot import Gang, GroupKey, Pod, gang_view
from paddlecloud.local.scheduler.state.units import Unit


@dataclass(slots=True)
class Group:
    """A PodGroup, existing or only referred to, and its pods."""

    source: Object | None = None
    gang: Gang | None = None
    waiting: dict[str, Pod] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)  # uid → task
    tasks: Counter[str] = field(default_factory=Counter)  # how many of `placed` each task has
    phases: dict[str, str] = field(default_factory=dict)  # uid → phase, of every member
    counts: Counter[str] = field(default_factory=Counter)  # how many of `phases` each phase has
    why: str = ""  # the last refusal
    code: str = ""

    def note_placed(self, uid: str, task: str | None) -> None:
        """Of which task the pod with a node is; None: it has none, or not any more."""
        _move(self.placed, self.tasks, uid, task)

    def note_phase(self, uid: str, phase: str | None) -> None:
        """How far the pod is; None: it is no member any more."""
        _move(self.phases, self.counts, uid, phase)


def _move(entries: dict[str, str], counts: Counter[str], uid: str, value: str | None) -> None:
    """Enter a value, or take the entry out, and keep the counts of values true: none of them is zero."""
    before = entries.pop(uid, None)
    if before is not None:
        counts[before] -= 1
        if not counts[before]:
            del counts[before]
    if value is not None:
        entries[uid] = value
        counts[value] += 1


class Membership:
    """`changed` is called with a group whose waiting pods must be tried again."""

    def __init__(self, changed: Callable[[GroupKey], None]) -> None:
        self.groups: dict[GroupKey, Group] = {}
        self.gangs: dict[GroupKey, Gang] = {}  # of groups that exist
        self.touched: set[GroupKey] = set()  # groups whose status may have to be written
        self._changed = changed
        self._group_of: dict[str, GroupKey] = {}  # by uid
        self._priorities: dict[str, int] = {}  # of PriorityClasses

    def unit(self, key: GroupKey) -> Unit | None:
        """The members that wait, to be placed together."""
        group = self.groups.get(key)
        if group is None or not group.waiting:
            return None
        return Unit(tuple(group.waiting.values()), self.gangs.get(key), None if group.gang else key)

    # Pods

    def group_of(self, uid: str) -> GroupKey | None:
        return self._group_of.get(uid)

    def enlist(self, uid: str, key: GroupKey | None) -> None:
        """The pod belongs to this group now: labels and annotations may change."""
        self.leave(uid)
        if key is not None:
            self._group_of[uid] = key
            self.groups.setdefault(key, Group())

    def leave(self, uid: str) -> None:
        key = self._group_of.pop(uid, None)
        if key is None:
            return
        group = self.groups[key]
        group.waiting.pop(uid, None)
        group.note_phase(uid, None)
        group.note_placed(uid, None)
        self.touched.add(key)
        self._recount(key, group)
        self._drop_if_empty(key)

    def note_phase(self, uid: str, phase: str) -> None:
        key = self._group_of.get(uid)
        if key is not None:
            group = self.groups[key]
            if group.phases.get(uid) != phase:
                group.note_phase(uid, phase)
                self.touched.add(key)

    def waits(self, pod: Pod, key: GroupKey) -> None:
        self.groups[key].waiting[pod.uid] = pod
        self._changed(key)

    def waits_no_more(self, uid: str, key: GroupKey) -> None:
        self.groups[key].waiting.pop(uid, None)
        self._changed(key)

    def placed(self, pod: Pod, key: GroupKey) -> None:
        group = self.groups[key]
        group.note_placed(pod.uid, pod.task)
        self._recount(key, group)

    def displaced(self, uid: str, key: GroupKey) -> None:
        if (group := self.groups.get(key)) is not None:
            group.note_placed(uid, None)
            self._recount(key, group)

    # Groups

    def on_group(self, old: Object | None, new: Object | None) -> bool:
        """Whether pods that have a node count for another queue now."""
        obj = new or old
        assert obj is not None
        key = gang_view(obj).key
        group = self.groups.setdefault(key, Group())
        former = group.gang
        group.source = new
        group.gang = self._gang(new) if new is not None else None
        self.touched.add(key)
        moved = (former.queue if former else None) != (group.gang.queue if group.gang else None)
        self._recount(key, group)
        self._drop_if_empty(key)
        return moved and bool(group.placed)

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

    def _gang(self, obj: Object) -> Gang:
        name = (obj.get("spec") or {}).get("priorityClassName")
        return gang_view(obj, priority=self._priorities.get(name) if name else None)

    def _recount(self, key: GroupKey, group: Group) -> None:
        """Keep what the gang says of its members true; its waiting pods are judged anew if that changed."""
        gang = group.gang
        before = self.gangs.get(key)
        if gang is None:
            self.gangs.pop(key, None)
        elif len(group.placed) != gang.placed or gang.min_tasks:
            gang = replace(gang, placed=len(group.placed), placed_tasks=dict(group.tasks))
            group.gang = gang
        if gang is not None:
            self.gangs[key] = gang
        if group.waiting and before != gang:
            self._changed(key)

    def _drop_if_empty(self, key: GroupKey) -> None:
        group = self.groups.get(key)
        if group is not None and group.source is None and not group.phases and not group.waiting:
            del self.groups[key]
            self.gangs.pop(key, None)
