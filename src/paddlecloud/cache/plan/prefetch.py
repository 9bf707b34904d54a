"""Prefetching ahead of the training step, modelled: one node, one link, one cache, uniform samples.

The model answers what a plan is worth before anything is run: how long training waits, how much crosses the link. The
fetcher takes the node's missing samples in reading order, a window ahead of the training step, while the cache has room
for them. It has room while something held is wanted later than what would come in (`eviction`). Where the cache cannot
even hold a step, its samples are read past the cache.

The window is a trade. What lies ready in it is room taken from samples kept for later epochs: a fetcher that ran as far
ahead as it could would turn most of the cache into a queue and fetch nearly everything anew each epoch. A short window
hides the link's latency and the unevenness of misses; more than that buys nothing (`window_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paddlecloud.cache.plan.eviction import NEVER, Clairvoyant, next_uses
from paddlecloud.cache.plan.schedule import Steps


def window_of(held: int, *, count: int, step: int) -> int:
    """How many reads ahead the fetcher of a cache for `held` of `count` samples should be; `step` reads are a step.

    An eighth of the cache costs about 4 % more traffic than fetching at the last moment. A cache for the whole set has
    nothing to lose by being filled early.
    """
    return count if held >= count else max(2 * step, held // 8)


@dataclass(frozen=True)
class Conditions:
    """What a node has and what its training needs."""

    sample_bytes: int
    cache_bytes: int
    link: float
    """Bytes per second that reach this node."""
    step_seconds: float
    """Seconds of computing per step, when nothing is waited for."""
    window: int
    """How many reads ahead of the training step the fetcher may be."""


@dataclass(frozen=True)
class Epoch:
    """How one epoch went."""

    reads: int
    on_time: int
    """Reads whose sample was here before the step wanted it."""
    origin: int
    """Samples that crossed the link during the epoch, whichever epoch they are for."""
    seconds: float
    stall_seconds: float

    @property
    def hit_ratio(self) -> float:
        return self.on_time / self.reads if self.reads else 1.0


def prefetch(epochs: Sequence[Steps], conditions: Conditions, *, held: Iterable[int] = ()) -> list[Epoch]:
    """Run the epochs of a node in the model. `held` is what a warm-up brought, in order of importance."""
    return _Model(epochs, conditions, held).run()


class _Model:
    def __init__(self, epochs: Sequence[Steps], conditions: Conditions, held: Iterable[int]) -> None:
        self.epochs, self.conditions = epochs, conditions
        self.reads = [sample for steps in epochs for step in steps for sample in step]
        self.following, first = next_uses(self.reads)
        self.cache = Clairvoyant(conditions.cache_bytes)
        for sample in held:
            if sample not in self.cache:
                self.cache.admit(sample, conditions.sample_bytes, first.get(sample, NEVER))
        self.arrives: dict[int, float] = {}
        self.per_sample = conditions.sample_bytes / conditions.link
        self.link_free = 0.0
        self.now = 0.0
        self.fetched = 0
        self.position = 0
        """Reads done."""
        self.ahead = 0
        """The first position the fetcher has not looked at."""

    def run(self) -> list[Epoch]:
        figures = []
        for steps in self.epochs:
            began, fetched, stall, on_time = self.now, self.fetched, 0.0, 0
            for step in steps:
                self._fetch_until(self.now)
                ready, late = self._wait_for(len(step))
                on_time += len(step) - late
                stall += ready - self.now
                self._use(len(step))
                self.now = ready + self.conditions.step_seconds
            reads = sum(map(len, steps))
            figures.append(Epoch(reads, on_time, self.fetched - fetched, self.now - began, stall))
        return figures

    def _fetch_until(self, time: float) -> None:
        """Let the fetcher run on while the link has time and the cache has room."""
        limit = min(len(self.reads), self.position + self.conditions.window)
        while self.ahead < limit and self.link_free < time:
            sample = self.reads[self.ahead]
            if sample not in self.cache and not self._fetch(sample, self.ahead):
                self.link_free = time  # it idles until the next step frees something
                return
            self.ahead += 1

    def _wait_for(self, count: int) -> tuple[float, int]:
        """When the samples of a step are all here, and how many were not."""
        ready, late = self.now, 0
        for place in range(self.position, self.position + count):
            sample = self.reads[place]
            if sample not in self.cache:
                self.link_free = max(self.link_free, self.now)
                if not self._fetch(sample, place):
                    self._transfer(sample)
            self.ahead = max(self.ahead, place + 1)
            arrival = self.arrives.pop(sample, 0.0)
            late += arrival > self.now
            ready = max(ready, arrival)
        return ready, late

    def _use(self, count: int) -> None:
        for place in range(self.position, self.position + count):
            if (sample := self.reads[place]) in self.cache:
                self.cache.use(sample, self.following[place])
        self.position += count

    def _fetch(self, sample: int, use: int) -> bool:
        evicted = self.cache.admit(sample, self.conditions.sample_bytes, use)
        if evicted is None:
            return False
        self._transfer(sample)
        return True

    def _transfer(self, sample: int) -> None:
        self.link_free += self.per_sample
        self.arrives[sample] = self.link_free
        self.fetched += 1
