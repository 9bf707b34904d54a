"""`bwlimit`: all threads together get so many bytes a second."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddlecloud.cache.sync.limiter import Limiter


class Time:
    """Passes only while somebody waits; threads that wait together wait at the same time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._lock = threading.Lock()

    def read(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        until = self.now + seconds
        with self._lock:
            self.now = max(self.now, until)


@pytest.mark.parametrize("threads", [1, 8])
def test_the_rate_holds_for_all_threads_together(threads: int) -> None:
    time = Time()
    limiter = Limiter(1_000_000, time.pause, time.read)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(limiter.take, [50_000] * 101))
    assert 5.0 <= round(time.now, 6) <= 5.1, "100 pieces have had their time, and the last one may go"


def test_what_was_not_used_is_not_saved_up() -> None:
    time = Time()
    limiter = Limiter(1_000, time.pause, time.read)
    time.now = 60.0
    limiter.take(500)
    assert time.now == 60.0
    limiter.take(500)
    assert time.now == 60.5
