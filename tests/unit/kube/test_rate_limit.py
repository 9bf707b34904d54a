"""Token buckets: a burst at once, then so many a second."""

from __future__ import annotations

from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.rate_limit import RateLimit, RateLimits


def test_after_a_burst_so_many_a_second() -> None:
    clock = FakeClock()
    limit = RateLimit(clock, burst=2, rate=1)
    assert [limit.take() for _ in range(3)] == [True, True, False]
    clock._now += 1.0
    assert [limit.take() for _ in range(2)] == [True, False]


def test_what_is_refused_does_not_count() -> None:
    clock = FakeClock()
    limit = RateLimit(clock, burst=1, rate=1)
    assert [limit.take() for _ in range(3)] == [True, False, False]
    clock._now += 0.5
    assert not limit.take()
    clock._now += 0.5
    assert limit.take()


def test_each_key_has_its_own_limit_and_the_one_unused_for_longest_is_forgotten() -> None:
    limits: RateLimits[str] = RateLimits(FakeClock(), burst=1, rate=1, kept=2)
    assert [limits.take(key) for key in ("a", "b", "a", "b")] == [True, True, False, False]
    assert limits.take("c")
    assert limits.take("a"), "a was forgotten when c came"
