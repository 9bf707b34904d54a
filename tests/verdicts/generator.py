"""Worlds from a seed: who holds which roles, and what they ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from .dice import Dice
from .grants import grants
from .model import AccessScenario
from .requests import case

CASES_PER_WORLD = 125


def worlds(seed: int, cases: int) -> Iterator[AccessScenario]:
    """Worlds that hold `cases` requests together. The first ones are the same however many are asked for."""
    for number in range(-(-cases // CASES_PER_WORLD)):
        dice = Dice(f"{seed}/{number}")
        held = grants(dice)
        count = min(CASES_PER_WORLD, cases - number * CASES_PER_WORLD)
        yield AccessScenario(held, tuple(case(dice, held) for _ in range(count)))


def fingerprint(made: Sequence[AccessScenario]) -> str:
    """Equal for equal worlds: verdicts that were recorded belong to exactly these requests."""
    digest = hashlib.sha256()
    for world in made:
        for part in (*world.grants, *world.cases):
            digest.update(f"{part}\n".encode())
    return digest.hexdigest()[:16]
