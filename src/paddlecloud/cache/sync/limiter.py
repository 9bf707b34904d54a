"""So many bytes a second for all threads of a sync together (`bwlimit`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Limiter:
    """`rate` is in bytes a second. `pause` waits; it may raise to end the work instead."""

    def __init__(
        self, rate: float, pause: Callable[[float], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock()

    def take(self, size: int) -> None:
        """Wait until the bytes that were taken before have had their time. The first ones are for nothing."""
        with self._lock:
            now = self._clock()
            begin = max(now, self._free_at)
            self._free_at = begin + size / self._rate
        if begin > now:
            self._pause(begin - now)
