"""Clairvoyant eviction: when the reads to come are known, the sample to drop is the one needed last.

That is Bélády's rule, optimal for samples of one size and usually unreachable; here the sampler's plan makes it plain
bookkeeping. `Clairvoyant` is the bookkeeping alone: it holds no files. The simulator and the prefetcher of training
programs drive the same class, so what is predicted is what is done.

Positions count a node's reads from the beginning of the plan. `NEVER` stands for a use beyond what is planned.
"""

from __future__ import annotations

import heapq
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

NEVER = sys.maxsize


def next_uses(reads: Sequence[int]) -> tuple[array[int], dict[int, int]]:
    """For each position, that of the next read of the same sample; and where each sample is first read."""
    following = array("q", bytes(8 * len(reads)))
    upcoming: dict[int, int] = {}
    for position in range(len(reads) - 1, -1, -1):
        sample = reads[position]
        following[position] = upcoming.get(sample, NEVER)
        upcoming[sample] = position
    return following, upcoming


class Clairvoyant:
    """What a cache of `capacity` bytes should hold.

    Invariants: `used` is the sum of the sizes held and never above `capacity`; every sample held has a live entry
    in the heap, (-next use, sample), and stale ones are recognised by disagreeing with `_uses`.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self._uses: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._farthest: list[tuple[int, int]] = []

    def __contains__(self, sample: int) -> bool:
        return sample in self._uses

    def __len__(self) -> int:
        return len(self._uses)

    def __iter__(self) -> Iterator[int]:
        return iter(self._uses)

    def use(self, sample: int, following: int) -> None:
        """A sample held was read; its next use is at `following`."""
        self._uses[sample] = following
        self._push(sample, following)

    def admit(self, sample: int, size: int, use: int) -> list[int] | None:
        """Take a sample that is wanted at `use` in; returns what had to go for it.

        None, and nothing changes, when all that could go is wanted sooner.
        """
        victims: dict[int, int] = {}
        room = self.capacity - self.used
        while room < size:
            entry = self._pop_farthest()
            if entry is None or -entry[0] <= use:
                for back in (*((key, victim) for victim, key in victims.items()), *([entry] if entry else [])):
                    heapq.heappush(self._farthest, back)
                return None
            if entry[1] not in victims:  # one that left and came back may have two entries that agree
                victims[entry[1]] = entry[0]
                room += self._sizes[entry[1]]
        for victim in victims:
            self.drop(victim)
        self._sizes[sample] = size
        self._uses[sample] = use
        self.used += size
        self._push(sample, use)
        return list(victims)

    def resize(self, sample: int, size: int) -> list[int] | None:
        """The size of a sample held turns out to be another. Returns what had to go; None if it had to go itself."""
        use = self._uses[sample]
        self.drop(sample)
        return self.admit(sample, size, use)

    def drop(self, sample: int) -> None:
        """A sample was removed, by us or by another process."""
        if self._uses.pop(sample, None) is not None:
            self.used -= self._sizes.pop(sample)

    def plan_anew(self, uses: Mapping[int, int]) -> None:
        """Another plan: what is held is wanted at these positions, or no more."""
        self._uses = {sample: uses.get(sample, NEVER) for sample in self._uses}
        self._rebuild()

    def _push(self, sample: int, use: int) -> None:
        heapq.heappush(self._farthest, (-use, sample))
        if len(self._farthest) > 2 * len(self._uses) + 1024:
            self._rebuild()

    def _pop_farthest(self) -> tuple[int, int] | None:
        while self._farthest:
            entry = heapq.heappop(self._farthest)
            if self._uses.get(entry[1]) == -entry[0]:
                return entry
        return None

    def _rebuild(self) -> None:
        self._farthest = [(-use, sample) for sample, use in self._uses.items()]
        heapq.heapify(self._farthest)


def replay(reads: Sequence[int], capacity: int, *, held: Iterable[int] = ()) -> list[bool]:
    """Whether each read is a hit when `capacity` samples of one size are kept, each fetched when it is first missed.

    `held` is what a warm-up brought; the first `capacity` of them count.
    """
    following, first = next_uses(reads)
    cache = Clairvoyant(capacity)
    for sample in held:
        if sample not in cache:
            cache.admit(sample, 1, first.get(sample, NEVER))
    hits: list[bool] = []
    for position, sample in enumerate(reads):
        hit = sample in cache
        hits.append(hit)
        if hit:
            cache.use(sample, following[position])
        else:
            cache.admit(sample, 1, following[position])
    return hits
