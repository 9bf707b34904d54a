"""What a simulation comes to: how long jobs waited, how much of the nodes was used, who never got through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paddlecloud.kube.quantity import Amount, parse
from paddlecloud.local.scheduler.state.shape import Resources


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the jobs of one queue or class waited for their first start."""

    jobs: int
    mean: float
    median: float
    p95: float
    longest: float

    @staticmethod
    def of(waits: Sequence[float]) -> Waits:
        if not waits:
            return Waits(0, 0.0, 0.0, 0.0, 0.0)
        ordered = sorted(waits)
        last = len(ordered) - 1
        return Waits(
            len(ordered),
            sum(ordered) / len(ordered),
            ordered[len(ordered) // 2],
            ordered[min(last, int(len(ordered) * 0.95))],
            ordered[-1],
        )

    @staticmethod
    def by(waits: Mapping[str, Sequence[float]]) -> dict[str, Waits]:
        return {name: Waits.of(seconds) for name, seconds in sorted(waits.items())}


@dataclass(slots=True)
class Report:
    makespan: float = 0.0
    finished: int = 0
    evictions: int = 0
    rounds: int = 0
    by_queue: dict[str, Waits] = field(default_factory=dict)
    by_class: dict[str, Waits] = field(default_factory=dict)
    utilisation: dict[str, float] = field(default_factory=dict)
    """The part of each resource that was used, over the whole time."""
    unfinished: list[tuple[str, str]] = field(default_factory=list)
    """(job, why it never started or ended)."""


class Usage:
    """What placed pods use now, and what they have used: amounts times seconds."""

    def __init__(self) -> None:
        self._used: dict[str, Amount] = {}
        self._area: dict[str, float] = {}

    def take(self, requests: Mapping[str, str]) -> None:
        self._change(requests, 1)

    def give_back(self, requests: Mapping[str, str]) -> None:
        self._change(requests, -1)

    def _change(self, requests: Mapping[str, str], sign: int) -> None:
        for name, text in requests.items():
            self._used[name] = self._used.get(name, 0) + sign * parse(text)

    def pass_time(self, seconds: float) -> None:
        for name, amount in self._used.items():
            self._area[name] = self._area.get(name, 0.0) + amount * seconds

    def utilisation(self, capacity: Resources, seconds: float) -> dict[str, float]:
        if not seconds:
            return {}
        known = {name: area for name, area in sorted(self._area.items()) if capacity.get(name)}
        return {name: area / (capacity[name] * seconds) for name, area in known.items()}
