"""The suffix of names that servers and controllers generate."""

from __future__ import annotations

import random

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes: no words, no misreading (apimachinery/pkg/util/rand/rand.go, alphanums)."""

SUFFIX_LENGTH = 5
"""`randomLength` of apiserver/pkg/storage/names/generate.go."""

_CHANCE = random.SystemRandom()


def suffix() -> str:
    """For clients that name objects themselves, as the server would for `generateName`."""
    return "".join(_CHANCE.choices(ALPHABET, k=SUFFIX_LENGTH))
