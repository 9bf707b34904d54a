"""What each queue uses of what it may, and who stands where in its line: for those who look at queues as a whole.

The order is the one in which a round serves the line (`decision.decide`), and the reasons are those of a round on this
snapshot. A unit that the next round places keeps its place in the line until it is placed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paddlecloud.local.scheduler.decision.attempt import Why
from paddlecloud.local.scheduler.decision.decide import decide
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.decision.session import Session
from paddlecloud.local.scheduler.state.shape import Resources
from paddlecloud.local.scheduler.state.snapshot import Pod, Queue, Snapshot
from paddlecloud.local.scheduler.state.units import Unit, lanes_of, units_of


@dataclass(frozen=True, slots=True)
class InLine:
    """`why` it does not start; None for a unit that the next round places."""

    unit: Unit
    position: int
    """From 1."""
    why: Why | None


@dataclass(frozen=True, slots=True)
class QueueReport:
    queue: Queue
    used: Resources
    """With what the queues below it use."""
    deserved: Resources
    share: float
    """The fullest of its deserved resources: 1 is all of it."""
    line: tuple[InLine, ...]


def queue_reports(snapshot: Snapshot, waiting: Iterable[Pod], *, policy: Policy = DEFAULT) -> list[QueueReport]:
    """Of every queue that exists, or that somebody waits in; by name."""
    units = units_of(waiting, snapshot.gangs)
    refused = {id(unit): found.why for found in decide(snapshot, units, policy=policy).refused for unit in found.units}
    ledger = Session(snapshot, lanes_of(units), policy).ledger
    lines: dict[str, list[Unit]] = {name: [] for name in snapshot.queues}
    for unit in units:
        lines.setdefault(unit.queue, []).append(unit)
    return [
        QueueReport(
            queue=ledger.get(name) or Queue(name),
            used=ledger.used(name),
            deserved=ledger.deserved(name) if snapshot.queues else {},
            share=ledger.share(name) if snapshot.queues else 0.0,
            line=tuple(
                InLine(unit, position, refused.get(id(unit)))
                for position, unit in enumerate(sorted(line, key=lambda unit: (-unit.priority, unit.order)), start=1)
            ),
        )
        for name, line in sorted(lines.items())
    ]
