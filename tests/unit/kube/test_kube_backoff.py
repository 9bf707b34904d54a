"""Waits between attempts: doubling, capped, and without overflow after any number of failures."""

from __future__ import annotations

import pytest

from paddlecloud.kube.backoff import exponential


@pytest.mark.parametrize(
    ("failures", "base", "cap", "seconds"),
    [(0, 10.0, 300.0, 10.0), (1, 10.0, 300.0, 20.0), (4, 10.0, 300.0, 160.0), (5, 10.0, 300.0, 300.0)],
)
def test_each_failure_doubles_the_wait_up_to_the_cap(failures: int, base: float, cap: float, seconds: float) -> None:
    assert exponential(failures, base=base, cap=cap) == seconds


def test_what_has_failed_for_years_waits_as_long_as_the_cap() -> None:
    assert exponential(10**6, base=0.005, cap=60.0) == 60.0
