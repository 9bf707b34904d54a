"""Averages over the last seconds of what gateways report: one bucket a second, no sample kept longer than needed."""

from __future__ import annotations

import math


class Window:
    """Sums per second. A second without a report counts as zero; before the first report there is no average."""

    def __init__(self, span: float) -> None:
        self._size = max(1, math.ceil(span))
        self._sums: dict[int, float] = {}
        self._first: int | None = None

    def add(self, now: float, value: float) -> None:
        second = int(now)
        if self._first is None:
            self._first = second
        self._sums[second] = self._sums.get(second, 0.0) + value
        for old in [s for s in self._sums if s <= second - self._size - 1]:
            del self._sums[old]

    def average(self, now: float, span: float) -> float | None:
        """Over the last `span` seconds, or since the first report if that is less."""
        if self._first is None:
            return None
        second = int(now)
        if second not in self._sums:
            second -= 1  # this one is not over, and has no report yet
        length = max(1, min(math.ceil(span), second - self._first + 1, self._size))
        return sum(self._sums.get(second - back, 0.0) for back in range(length)) / length
