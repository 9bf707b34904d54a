"""What a gateway process counts of one revision, and the report it sends every second."""

from __future__ import annotations

import bisect
from typing import Any

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the latency buckets in seconds; the last bucket is everything above."""


class Stats:
    """Counts since the last report, and the time integral of the requests in progress."""

    __slots__ = ("_area", "_codes", "_latencies", "_since", "_sum", "began", "inside", "touched")

    def __init__(self, now: float) -> None:
        self.inside = 0
        self.began = now
        self.touched = False
        self._since = now
        self._area = 0.0
        self._sum = 0.0
        self._codes: dict[int, int] = {}
        self._latencies = [0] * (len(BOUNDS) + 1)

    def enter(self, now: float) -> None:
        self._area += self.inside * (now - self._since)
        self._since = now
        self.inside += 1
        self.touched = True

    def leave(self, now: float, status: int, seconds: float) -> None:
        """`status` 0 is for a client that went away before it was answered."""
        self._area += self.inside * (now - self._since)
        self._since = now
        self.inside -= 1
        self._codes[status] = self._codes.get(status, 0) + 1
        self._latencies[bisect.bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    def report(self, now: float) -> dict[str, Any] | None:
        """Everything since the last report; None when nothing happened and nothing is in progress."""
        if not self.touched and not self.inside:
            self.began = self._since = now
            return None
        self._area += self.inside * (now - self._since)
        self._since = now
        span = max(now - self.began, 1e-6)
        answer = {
            "concurrency": self._area / span,
            "inside": self.inside,
            "span": span,
            "codes": {str(code): count for code, count in self._codes.items()},
            "latencies": self._latencies,
            "seconds": self._sum,
        }
        self.began = now
        self.touched = bool(self.inside)
        self._area = self._sum = 0.0
        self._codes = {}
        self._latencies = [0] * (len(BOUNDS) + 1)
        return answer
