"""Large objects are looked at now and then, small ones at once."""

from __future__ import annotations

import pytest

from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.workloads.pace import PER_SECOND, SMALL, Pace


async def test_small_objects_never_wait_and_large_ones_as_long_as_they_are_large() -> None:
    clock = FakeClock()
    pace: Pace[str] = Pace(clock)
    pace.note("small", SMALL)
    assert pace.wait("small") is None
    assert pace.wait("large") is None
    pace.note("large", 1000)
    assert pace.wait("large") == pytest.approx(1000 / PER_SECOND)
    await clock.advance(1000 / PER_SECOND)
    assert pace.wait("large") is None
    pace.note("large", 1000)
    pace.forget("large")
    assert pace.wait("large") is None
