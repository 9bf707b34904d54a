"""How long to wait before the next attempt: doubling from a base up to a cap."""

from __future__ import annotations

import random

_ENOUGH = 64
"""2^64 is past any cap; the bound keeps the number small when something fails for years."""


def exponential(failures: int, *, base: float, cap: float) -> float:
    """`base`·2^`failures` seconds, at most `cap`. After the first failure `failures` is 0."""
    return min(cap, base * 2.0 ** min(failures, _ENOUGH))


class Backoff:
    """Exponential waits, each stretched by up to its own length so that clients spread out."""

    def __init__(self, rng: random.Random, *, base: float = 0.2, cap: float = 30.0) -> None:
        self._rng = rng
        self._base = base
        self._cap = cap
        self._failures = 0

    def next(self) -> float:
        wait = exponential(self._failures, base=self._base, cap=self._cap)
        self._failures += 1
        return wait * (1.0 + self._rng.random())

    def reset(self) -> None:
        self._failures = 0
