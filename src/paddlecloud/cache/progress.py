"""How far a piece of work is. Many threads add to it, one reads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from paddlecloud.cache.errors import Cancelled

WINDOW = 10.0
"""Seconds over which the rate is taken."""
EXAMPLES = 20


class Progress:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._marks: deque[tuple[float, int]] = deque([(clock(), 0)])
        self.files = self.files_total = self.bytes = self.bytes_total = self.failed = self.skipped = self.deleted = 0
        self.only_here = 0
        """Files of the set that the source does not have, after a sync that left them there."""
        self.failures: list[str] = []
        """The first few, in words."""

    def expect(self, size: int, files: int = 1) -> None:
        with self._lock:
            self.files_total += files
            self.bytes_total += size

    def done(self, size: int, *, skipped: bool = False) -> None:
        with self._lock:
            self.files += 1
            self.skipped += skipped
            if skipped:
                self.bytes_total -= size  # what was there already says nothing about the rate
            else:
                self._moved(size)

    def report(self, *, files: int, skipped: int = 0, size: int = 0) -> None:
        """Take over what another program counted."""
        with self._lock:
            self.files += files
            self.skipped += skipped
            self._moved(size)

    def fail(self, text: str) -> None:
        with self._lock:
            self.failed += 1
            if len(self.failures) < EXAMPLES:
                self.failures.append(text)

    def _moved(self, size: int) -> None:
        self.bytes += size
        now = self._clock()
        if now - self._marks[-1][0] >= 0.5:
            self._marks.append((now, self.bytes))
            while len(self._marks) > 2 and now - self._marks[1][0] > WINDOW:
                self._marks.popleft()

    def shown(self) -> dict[str, Any]:
        """As the API returns it."""
        with self._lock:
            since, before = self._marks[0]
            rate = (self.bytes - before) / max(self._clock() - since, 0.001)
            left = (self.bytes_total - self.bytes) / rate if rate >= 1 else None
            return {
                "files": self.files,
                "filesTotal": self.files_total,
                "bytes": self.bytes,
                "bytesTotal": self.bytes_total,
                "bytesPerSecond": int(rate),
                "secondsLeft": None if left is None else int(left),
                "skipped": self.skipped,
                "deleted": self.deleted,
                "onlyHere": self.only_here,
                "failed": self.failed,
            }


class Task:
    """What a piece of work is given: where to report its progress, and whether to go on."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.notices: list[str] = []
        self.coverage: dict[str, Any] | None = None
        self._end = threading.Event()

    def cancel(self) -> None:
        self._end.set()

    @property
    def cancelled(self) -> bool:
        return self._end.is_set()

    def check(self) -> None:
        if self._end.is_set():
            raise Cancelled

    def pause(self, seconds: float) -> None:
        """Sleep, unless somebody ends the work."""
        if self._end.wait(seconds):
            raise Cancelled

    def cover(self, planned: int, missing: list[str], *, cached: int | None = None) -> None:
        """`cached` where it is known better than by counting those that are missing."""
        known = planned - len(missing) if cached is None else cached
        self.coverage = {"planned": planned, "cached": known, "missing": missing[:EXAMPLES]}
