"""Large objects are looked at now and then, small ones at once."""

from __future__ import annotations

import pytest

from paddlecloud.local.workloads.pace import PER_SECOND, SMALL, rest


def test_small_objects_never_wait_and_large_ones_as_long_as_they_are_large() -> None:
    assert rest(SMALL) == 0.0
    assert rest(1000) == pytest.approx(1000 / PER_SECOND)
