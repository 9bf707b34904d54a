"""One scheduling round as a pure function: a snapshot and what waits in, placements and refusals out.

Queues take turns, the one with the smallest part of its share first; in a queue the highest priority goes first, then
the oldest. A gang is placed whole or not at all. What finds no room may take it from what matters less (`preempt`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from paddlecloud.kube.resource import Key
from paddlecloud.local.scheduler.decision.attempt import Attempt, Why
from paddlecloud.local.scheduler.decision.preempt import Eviction, Rescue, make_room
from paddlecloud.local.scheduler.decision.queues import unserved
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.decision.session import Session
from paddlecloud.local.scheduler.state.snapshot import Pod, Snapshot
from paddlecloud.local.scheduler.state.units import Lane, Unit, lanes_of

PREEMPTING = "Preempting"


@dataclass(frozen=True, slots=True)
class RefusedUnits:
    """The units of a lane from `first` on, all for the same reason."""

    lane: Lane
    first: int
    why: Why

    @property
    def units(self) -> Sequence[Unit]:
        return self.lane.units[self.first :]


@dataclass(slots=True)
class Round:
    placements: list[tuple[Pod, str]] = field(default_factory=list)
    refused: list[RefusedUnits] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    nominations: list[tuple[Pod, str]] = field(default_factory=list)

    def why(self, pod: Pod) -> Why | None:
        """The refusal of one pod, for those who ask about few."""
        for refused in self.refused:
            for unit in refused.units:
                if any(other.uid == pod.uid for other in unit.pods):
                    return refused.why
        return None


def decide(snapshot: Snapshot, waiting: Iterable[Lane | Unit], *, policy: Policy = DEFAULT) -> Round:
    """`waiting` may be lanes, or plain units from which lanes are made."""
    items = list(waiting)
    lanes = [item for item in items if isinstance(item, Lane)]
    lanes += lanes_of(item for item in items if isinstance(item, Unit))
    return _Decision(Session(snapshot, lanes, policy)).run(lanes)


_Entry = tuple[int, tuple[str, Key], int, int]
"""Where a lane stands in its queue's line: (-priority, order of its first unit, lane, index of that unit)."""


class _Decision:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._ledger = session.ledger
        self._result = Round()

    def run(self, lanes: Sequence[Lane]) -> Round:
        lines: dict[str, list[_Entry]] = {}
        for index, lane in enumerate(lanes):
            head = lane.units[0]
            lines.setdefault(head.queue, []).append((-head.priority, head.order, index, 0))
        for line in lines.values():
            heapq.heapify(line)
        turns = [self._turn(name) for name in lines]
        heapq.heapify(turns)
        while turns:
            *_, name = heapq.heappop(turns)
            if self._serve(lines[name], lanes) and lines[name]:
                heapq.heappush(turns, self._turn(name))
        return self._result

    def _turn(self, name: str) -> tuple[int, float, str]:
        queue = self._ledger.get(name)
        return (-queue.priority if queue else 0, self._ledger.share(name) if self._ledger.queues else 0.0, name)

    def _serve(self, line: list[_Entry], lanes: Sequence[Lane]) -> bool:
        """Try the first of a queue's line. False when a strict queue must not go on."""
        priority, _, lane_index, index = heapq.heappop(line)
        lane = lanes[lane_index]
        unit = lane.units[index]
        why = self._try(unit)
        alone = why is None or why.code == PREEMPTING or _labels_matter(why)
        if why is not None:
            refused = RefusedUnits(Lane((unit,), lane.signature), 0, why) if alone else RefusedUnits(lane, index, why)
            self._result.refused.append(refused)
        if alone and index + 1 < len(lane.units):
            heapq.heappush(line, (priority, lane.units[index + 1].order, lane_index, index + 1))
        queue = self._ledger.queues.get(unit.queue)
        return why is None or queue is None or not queue.fifo

    # One unit

    def _try(self, unit: Unit) -> Why | None:
        why = _incomplete(unit)
        if why is None and (found := unserved(self._ledger.queues, unit.queue)) is not None:
            why = Why(*found)
        if why is not None:
            return why
        attempt = Attempt(self._session)
        why = attempt.place(unit)
        if why is None:
            self._keep(unit, attempt)
            return None
        attempt.undo()
        rescue = make_room(self._session, unit) if self._session.policy.preempt else None
        if rescue is None:
            return why
        return self._reserve(unit, rescue, why)

    def _keep(self, unit: Unit, attempt: Attempt) -> None:
        """What a gang has beyond its least number may be left over: those pods go on waiting, with a reason."""
        self._result.placements += attempt.placements
        left = len(unit.pods) - len(attempt.placements)
        if not left or unit.gang is None:
            return
        tasks = Counter(pod.task for pod, _ in attempt.placements)
        placed = {task: unit.gang.placed_tasks.get(task, 0) + count for task, count in tasks.items()}
        gang = replace(
            unit.gang,
            placed=unit.gang.placed + len(attempt.placements),
            placed_tasks={**unit.gang.placed_tasks, **placed},
        )
        uids = {pod.uid for pod, _ in attempt.placements}
        rest = Unit(tuple(pod for pod in unit.pods if pod.uid not in uids), gang)
        attempt = Attempt(self._session)
        why = attempt.place(rest)
        if why is not None:
            attempt.undo()
            self._result.refused.append(RefusedUnits(Lane((rest,)), 0, why))

    def _reserve(self, unit: Unit, rescue: Rescue, why: Why) -> Why:
        """Keep the room for the unit while others leave it: nobody after it in this round may have it."""
        for pod, node in rescue.placements:
            self._session.place(replace(pod, promised=True), node, unit.queue)
        self._result.evictions += rescue.evictions
        self._result.nominations += rescue.placements
        names = ", ".join(str(eviction.pod.key) for eviction in rescue.evictions[:3])
        more = len(rescue.evictions) - 3
        leaving = f"{names}{f' and {more} more' if more > 0 else ''}" if names else "pods that are leaving"
        return replace(why, code=PREEMPTING, message=f"{why.message} Room is being made: {leaving} must go")


def _incomplete(unit: Unit) -> Why | None:
    if unit.absent is not None:
        return Why("NoPodGroup", f"waiting for PodGroup {unit.absent.name}: it does not exist yet")
    gang = unit.gang
    if gang is None:
        return None
    there = len(unit.pods) + gang.placed
    if there < gang.min_member:
        text = f"gang {gang.key.name} needs {gang.min_member} pods at once, {there} exist"
        return Why("GangIncomplete", text, fitting=gang.placed)
    if gang.min_tasks:
        tasks = Counter(pod.task for pod in unit.pods)
        for task, least in gang.min_tasks.items():
            have = tasks[task] + gang.placed_tasks.get(task, 0)
            if have < least:
                text = f"gang {gang.key.name} needs {least} pods of task {task} at once, {have} exist"
                return Why("GangIncomplete", text, fitting=gang.placed)
    return None


def _labels_matter(why: Why) -> bool:
    """Whether the next unit of the lane may fare better because placed pods mind this one's labels."""
    return any(refusal.rule == "guarded" for refusal in why.by_node.values())
