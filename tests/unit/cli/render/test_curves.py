"""Curves in a terminal."""

from __future__ import annotations

import math

import pytest

from paddlecloud.cli.render.curves import least_and_greatest, sparkline


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([1.0], "▄"),
        ([2.0, 2.0, 2.0], "▄▄▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([7, 0], "█▁"),
        ([0, math.nan, 1], "▁·█"),
        ([math.inf, -math.inf], "··"),
        ([1e308, -1e308, 1e308], "█▁█"),
        ([*range(800)], "▁▂▃▄▅▆▇█"),
    ],
)
def test_a_curve_has_the_shape_of_its_values(values: list[float], line: str) -> None:
    assert sparkline(values, 8) == line


def test_bounds_are_of_what_is_a_number() -> None:
    assert least_and_greatest([math.nan, 3, -1, math.inf]) == (-1, 3)
    assert all(map(math.isnan, least_and_greatest([math.nan])))
