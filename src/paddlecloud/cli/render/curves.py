"""Curves as text: their last value, their bounds, and their shape in a line of blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
NOT_A_NUMBER = "·"
WIDTH = 32


def sparkline(values: Sequence[float], width: int = WIDTH) -> str:
    """The means of equal parts of the values, between their least and their greatest; `·` where there is no number."""
    parts = min(width, len(values))
    bounds = [part * len(values) // parts for part in range(parts + 1)] if parts else []
    means = [_mean(values[begin:end]) for begin, end in itertools.pairwise(bounds)]
    known = [mean for mean in means if mean is not None]
    if not known:
        return NOT_A_NUMBER * parts
    least, greatest = min(known), max(known)
    return "".join(NOT_A_NUMBER if mean is None else BLOCKS[_height(mean, least, greatest)] for mean in means)


def short(value: float) -> str:
    return f"{value:.4g}"


def least_and_greatest(values: Sequence[float]) -> tuple[float, float]:
    """Of the finite ones; not a number where there is none."""
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (math.nan, math.nan)


def _mean(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(value / len(finite) for value in finite) if finite else None


def _height(value: float, least: float, greatest: float) -> int:
    """Halves: the difference of two floats may be none."""
    span = greatest / 2 - least / 2
    return min(len(BLOCKS) - 1, int((value / 2 - least / 2) / span * len(BLOCKS))) if span else len(BLOCKS) // 2 - 1
