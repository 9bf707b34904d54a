"""How often something may happen: a burst at once, then so many a second. Token buckets, one or one for each key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from paddlecloud.kube.clock import Clock

K = TypeVar("K", bound=Hashable)


class _Bucket(NamedTuple):
    tokens: float
    at: float


class RateLimits(Generic[K]):
    """Each key has its own; of more than `kept` keys the one that was not used for longest is forgotten."""

    def __init__(self, clock: Clock, *, burst: float, rate: float, kept: int) -> None:
        self._clock = clock
        self._burst, self._rate, self._kept = burst, rate, kept
        self._buckets: OrderedDict[K, _Bucket] = OrderedDict()

    def take(self, key: K) -> bool:
        """Whether one more may happen now; it counts if it may."""
        now = self._clock.monotonic()
        bucket = self._buckets.pop(key, _Bucket(self._burst, now))
        tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
        allowed = tokens >= 1
        self._buckets[key] = _Bucket(tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > self._kept:
            self._buckets.popitem(last=False)
        return allowed


class RateLimit:
    """Of one thing."""

    def __init__(self, clock: Clock, *, burst: float, rate: float) -> None:
        self.rate = rate
        self._limits: RateLimits[None] = RateLimits(clock, burst=burst, rate=rate, kept=1)

    def take(self) -> bool:
        return self._limits.take(None)
