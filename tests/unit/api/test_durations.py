"""Durations as people write them."""

from __future__ import annotations

import pytest

from paddlecloud.api.durations import GO, WITH_DAYS, seconds_of


@pytest.mark.parametrize(
    ("text", "units", "seconds"),
    [
        ("90s", GO, 90),
        ("1h30m", GO, 5400),
        ("1.5h", GO, 5400),
        ("500ms", GO, 0.5),
        ("1m1ms", GO, 60.001),
        ("2d", WITH_DAYS, 172800),
        ("2d", GO, None),
        ("1w", WITH_DAYS, None),
        ("", GO, None),
        ("90", GO, None),
        ("s", GO, None),
        (" 90s", GO, None),
        ("90s ", GO, None),
        ("1h 30m", GO, None),
        ("-1s", GO, None),
        ("1.s", GO, None),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, units: tuple[str, ...], seconds: float | None) -> None:
    assert seconds_of(text, units) == seconds
