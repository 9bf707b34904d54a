"""The lanes of waiting units, kept in order while units come, change and go, and which of them are worth trying.

A lane that was refused is tried again only when something opened up: a pod left, a node came or changed, a queue or
group changed. More pods on nodes can only help pods that look for company; their lanes are tried after arrivals too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from paddlecloud.local.scheduler.state.snapshot import GroupKey
from paddlecloud.local.scheduler.state.units import Lane, Signature, Unit, signature

UnitId = str | GroupKey
"""The uid of a pod that stands alone, or its group."""


class Counters(NamedTuple):
    """Two counters that only grow."""

    opened: int
    arrivals: int


NEVER = Counters(-1, -1)


@dataclass(slots=True)
class _Line:
    units: dict[UnitId, Unit] = field(default_factory=dict)
    lane: Lane | None = None  # the units in order, while nothing changed
    tried: Counters = NEVER
    pod_affinity: bool = False


class WaitingRoom:
    def __init__(self) -> None:
        self._lines: dict[Signature, _Line] = {}
        self._line_of: dict[UnitId, Signature] = {}
        self._dirty: set[UnitId] = set()

    def changed(self, unit_id: UnitId) -> None:
        self._dirty.add(unit_id)

    def refresh(self, make: Callable[[UnitId], Unit | None]) -> None:
        """Put changed units where they belong now; `make` gives a unit as it is, or None if it waits no longer."""
        for unit_id in self._dirty:
            self._leave(unit_id)
            unit = make(unit_id)
            if unit is None:
                continue
            kind = signature(unit)
            line = self._lines.get(kind)
            if line is None:
                line = self._lines[kind] = _Line(
                    pod_affinity=any(pod.shape.pod_affinity is not None for pod in unit.pods)
                )
            line.units[unit_id] = unit
            line.lane = None
            line.tried = NEVER
            self._line_of[unit_id] = kind
        self._dirty.clear()

    def _leave(self, unit_id: UnitId) -> None:
        kind = self._line_of.pop(unit_id, None)
        if kind is None:
            return
        line = self._lines[kind]
        del line.units[unit_id]
        line.lane = None
        if not line.units:
            del self._lines[kind]

    def due(self, now: Counters, strict: frozenset[str]) -> list[Lane]:
        """Lanes to try. Those of strict queues always, since they hold up others, and those that room is made for."""
        found = []
        for kind, line in self._lines.items():
            head = next(iter(line.units.values()))
            stale = line.tried != now if line.pod_affinity else line.tried.opened != now.opened
            if not (stale or head.nominated or head.queue in strict):
                continue
            if line.lane is None:
                line.lane = Lane(tuple(sorted(line.units.values(), key=lambda unit: unit.order)), kind)
            found.append(line.lane)
        return found

    def refused(self, lane: Lane, now: Counters) -> None:
        if (line := self._lines.get(lane.signature)) is not None:
            line.tried = now
