"""Drawing from a seed. The same seed gives the same draws on every version of Python: only `random()` is used."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """The few ways to draw that a generator needs."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def one(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def some(self, options: Sequence[T], most: int = 3) -> tuple[T, ...]:
        """One to `most` different options, in the order given."""
        count, left = 1 + self.below(min(most, len(options))), list(options)
        chosen = [left.pop(self.below(len(left))) for _ in range(count)]
        return tuple(option for option in options if option in chosen)
