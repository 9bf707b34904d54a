"""A rate limit for writes that only inform people: a burst at once, then so many a second."""

from __future__ import annotations

from paddlecloud.kube.clock import Clock


class Allowance:
    def __init__(self, clock: Clock, *, burst: float, rate: float) -> None:
        self.rate = rate
        self._clock = clock
        self._burst = burst
        self._left = burst
        self._at = clock.monotonic()

    def take(self) -> bool:
        """Whether one more may go out now."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self.rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
