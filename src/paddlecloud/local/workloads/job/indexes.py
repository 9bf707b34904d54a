"""Sets of completion indexes as a status writes them: `0-3,5,7-8`. Pure.

They are kept as ranges, so that a status costs no more than its text, also a forged one (`0-999999999`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LABEL = "batch.kubernetes.io/job-completion-index"
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", re.ASCII)


class IndexRange(NamedTuple):
    first: int
    end: int
    """The index behind the last."""


class Indexes:
    def __init__(self, ranges: Iterable[IndexRange] = ()) -> None:
        self._ranges: list[IndexRange] = []
        for each in sorted(each for each in ranges if each.first < each.end):
            if self._ranges and each.first <= self._ranges[-1].end:
                each = IndexRange(self._ranges[-1].first, max(each.end, self._ranges.pop().end))
            self._ranges.append(each)

    @staticmethod
    def of(indexes: Iterable[int], *, below: int) -> Indexes:
        return Indexes(IndexRange(index, index + 1) for index in indexes if index < below)

    @staticmethod
    def parse(text: str, *, below: int) -> Indexes:
        """What is no range of indexes was not written by a controller, and counts for nothing."""
        found = (match.groups() for part in text.split(",") if (match := _RANGE.fullmatch(part)))
        return Indexes(IndexRange(int(first), min(int(last or first) + 1, below)) for first, last in found)

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes([*self._ranges, *other._ranges])

    def __and__(self, other: Indexes) -> Indexes:
        both: list[IndexRange] = []
        ours, theirs = list(reversed(self._ranges)), list(reversed(other._ranges))
        while ours and theirs:
            both.append(IndexRange(max(ours[-1].first, theirs[-1].first), min(ours[-1].end, theirs[-1].end)))
            (ours if ours[-1].end <= theirs[-1].end else theirs).pop()
        return Indexes(both)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexes) and self._ranges == other._ranges

    def __hash__(self) -> int:
        return hash(tuple(self._ranges))

    def __len__(self) -> int:
        return sum(each.end - each.first for each in self._ranges)

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self._ranges, index, key=lambda each: each.first)
        return at > 0 and index < self._ranges[at - 1].end

    def missing(self, *, below: int) -> Iterator[int]:
        """The indexes that are not in the set, the lowest first."""
        start = 0
        for each in (*self._ranges, IndexRange(below, below)):
            yield from range(start, min(each.first, below))
            start = each.end

    def __str__(self) -> str:
        """Neighbours are joined by a comma, three and more by a dash, as Kubernetes writes them."""
        return ",".join(
            f"{first}-{end - 1}" if end - first > 2 else ",".join(map(str, range(first, end)))
            for first, end in self._ranges
        )
