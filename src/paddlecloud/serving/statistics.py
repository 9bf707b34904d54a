"""What a model has computed and how long it took, counted as Triton counts it (its statistics extension).

A duration of requests is the sum over requests: a batch of four that runs for 1 ms adds 4 ms to `compute_infer`. Those
of `batch_stats` are sums over runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Durations:
    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        self.count += count
        self.ns += ns

    def as_json(self) -> dict[str, int]:
        return {"count": self.count, "ns": self.ns}


@dataclass(slots=True)
class ModelRun:
    """One run of a model, in nanoseconds of one clock."""

    began: int
    joined: int
    """When the inputs of its requests were one batch."""
    computed: int
    ended: int

    @property
    def stages(self) -> dict[str, int]:
        return {
            "compute_input": self.joined - self.began,
            "compute_infer": self.computed - self.joined,
            "compute_output": self.ended - self.computed,
        }


STAGES = ("compute_input", "compute_infer", "compute_output")
REQUESTS = ("success", "fail", "queue", *STAGES, "cache_hit", "cache_miss")
"""Answers are not cached here: the last two stay 0."""


def _of(names: Sequence[str]) -> Callable[[], dict[str, Durations]]:
    return lambda: {name: Durations() for name in names}


@dataclass(slots=True)
class Statistics:
    """Of one version of a model, from the moment it was loaded."""

    rows: int = 0
    runs: int = 0
    last: int = 0
    """Milliseconds since the epoch; 0 before the first run."""
    requests: dict[str, Durations] = field(default_factory=_of(REQUESTS))
    batches: dict[int, dict[str, Durations]] = field(default_factory=dict)
    """By the number of rows that ran together."""

    def succeeded(self, rows: int, arrived: Sequence[int], run: ModelRun) -> None:
        """A batch of requests, given by when each of them arrived."""
        self.rows += rows
        self.runs += 1
        self.last = int(time.time() * 1000)
        for moment in arrived:
            self.requests["success"].add(run.ended - moment)
            self.requests["queue"].add(run.began - moment)
        batch = self.batches.setdefault(rows, _of(STAGES)())
        for stage, ns in run.stages.items():
            self.requests[stage].add(ns * len(arrived), len(arrived))
            batch[stage].add(ns)

    def failed(self, arrived: int, ended: int) -> None:
        self.requests["fail"].add(ended - arrived)

    def as_json(self) -> dict[str, Any]:
        return {
            "last_inference": self.last,
            "inference_count": self.rows,
            "execution_count": self.runs,
            "inference_stats": {name: found.as_json() for name, found in self.requests.items()},
            "batch_stats": [
                {"batch_size": rows, **{stage: found.as_json() for stage, found in stages.items()}}
                for rows, stages in sorted(self.batches.items())
            ],
        }
