"""The shuffle of `numpy.random.RandomState(seed)`, without numpy.

Paddle shuffles an epoch with `RandomState(epoch).shuffle(list)`. numpy keeps that stream frozen for ever, and Python's
own `random.Random` is the same generator (MT19937) behind another way of seeding. So the order of an epoch needs
nothing but the standard library: planners, cache servers and training programs all have it. A million items take
about half a CPU-second. Where the program has numpy loaded anyway, as every training does, numpy itself is asked: it
gives the same order in a twentieth of the time.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator

_WORDS = 624
"""Words of state of the generator."""
_CHUNK = 4096
"""Words drawn at a time: one call per chunk instead of one per item."""


def shuffle(items: list[int], seed: int) -> None:
    """Shuffle in place, exactly as `numpy.random.RandomState(seed).shuffle(items)` does."""
    if (numpy := sys.modules.get("numpy")) is not None:
        order = numpy.array(items)
        numpy.random.RandomState(seed).shuffle(order)
        items[:] = order.tolist()
        return
    words = _words(seed)
    last = len(items) - 1
    while last > 0:
        # numpy draws a number in [0, last] by masking 32 random bits and drawing again while that is too large.
        mask = (1 << last.bit_length()) - 1
        smallest = mask >> 1
        for word in words:
            chosen = word & mask
            if chosen <= last:
                items[last], items[chosen] = items[chosen], items[last]
                last -= 1
                if last <= smallest:
                    break


def _words(seed: int) -> Iterator[int]:
    source = random.Random()  # noqa: S311 - an order to reproduce, not a secret
    source.setstate((3, (*_seeded(seed), _WORDS), None))
    while True:
        yield from struct.unpack(f"<{_CHUNK}I", source.randbytes(4 * _CHUNK))


def _seeded(seed: int) -> Iterator[int]:
    """The state numpy starts from (Knuth's initialiser); Python's own seeding scrambles it once more."""
    if not 0 <= seed < 1 << 32:
        raise ValueError(f"a seed is between 0 and 4294967295, not {seed}: numpy takes no other")
    word = seed
    for number in range(1, _WORDS + 1):
        yield word
        word = (1812433253 * (word ^ word >> 30) + number) & 0xFFFFFFFF
