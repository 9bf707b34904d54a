"""Sets of completion indexes as a status writes them: `0-3,5,7-8`. Pure.

They are kept as runs, so that a status costs no more than its text, also a forged one (`0-999999999`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LABEL = "batch.kubernetes.io/job-completion-index"
_RUN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", re.ASCII)


class IndexRange(NamedTuple):
    first: int
    end: int
    """The index behind the last."""


class Indexes:
    def __init__(self, runs: Iterable[IndexRange] = ()) -> None:
        self._runs: list[IndexRange] = []
        for run in sorted(run for run in runs if run.first < run.end):
            if self._runs and run.first <= self._runs[-1].end:
                run = IndexRange(self._runs[-1].first, max(run.end, self._runs.pop().end))
            self._runs.append(run)

    @staticmethod
    def of(indexes: Iterable[int], *, below: int) -> Indexes:
        return Indexes(IndexRange(index, index + 1) for index in indexes if index < below)

    @staticmethod
    def parse(text: str, *, below: int) -> Indexes:
        """What is no run of indexes was not written by a controller, and counts for nothing."""
        found = (match.groups() for part in text.split(",") if (match := _RUN.fullmatch(part)))
        return Indexes(IndexRange(int(first), min(int(last or first) + 1, below)) for first, last in found)

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes([*self._runs, *other._runs])

    def __and__(self, other: Indexes) -> Indexes:
        both: list[IndexRange] = []
        ours, theirs = list(reversed(self._runs)), list(reversed(other._runs))
        while ours and theirs:
            both.append(IndexRange(max(ours[-1].first, theirs[-1].first), min(ours[-1].end, theirs[-1].end)))
            (ours if ours[-1].end <= theirs[-1].end else theirs).pop()
        return Indexes(both)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexes) and self._runs == other._runs

    def __hash__(self) -> int:
        return hash(tuple(self._runs))

    def __len__(self) -> int:
        return sum(run.end - run.first for run in self._runs)

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self._runs, index, key=lambda run: run.first)
        return at > 0 and index < self._runs[at - 1].end

    def missing(self, *, below: int) -> Iterator[int]:
        """The indexes that are not in the set, the lowest first."""
        start = 0
        for run in (*self._runs, IndexRange(below, below)):
            yield from range(start, min(run.first, below))
            start = run.end

    def __str__(self) -> str:
        """Neighbours are joined by a comma, three and more by a dash, as Kubernetes writes them."""
        return ",".join(
            f"{first}-{end - 1}" if end - first > 2 else ",".join(map(str, range(first, end)))
            for first, end in self._runs
        )
