"""The thread that brings samples to the node before they are read, and drops those needed last.

Ranks that share a node's cache each run one; whichever holds the folder's lock is the keeper and fetches for all of
them, the others only say how far they are. When the keeper's process dies, another takes over. Nothing here is
needed to read: whatever goes wrong, samples come from where they lie.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import threading
from collections.abc import Sequence

from paddlecloud.cache.plan.eviction import NEVER, Clairvoyant, next_uses
from paddlecloud.cache.plan.prefetch import window_of
from paddlecloud.cache.plan.schedule import Schedule, flat

from .origin import Origin
from .place import Place
from .track import Track

LOG = logging.getLogger("paddlecloud.data")
PULSE = 0.05
"""Seconds between two looks at how far the others are; this rank's own progress and arrivals are seen at once."""
SPARE = 0.9
"""Part of the free disk that is used when no quota is given."""
HORIZON = 16
LONGEST_PLAN = 2_000_000
"""Epochs, and reads, that are looked ahead: what is not used in them is as good as never used."""
_FIRST_GUESS = 128 << 10
"""Bytes a sample is taken to have until one has been seen."""
_FAILURES = 8
"""Failures in a row after which the origin is left in peace for a moment."""
_PAUSE = 20
"""Pulses of that moment."""


class Keeper:
    def __init__(
        self,
        paths: Sequence[str],
        *,
        schedule: Schedule,
        rank: int,
        track: Track,
        origin: Origin,
        place: Place,
        quota: int | None,
        threads: int,
    ) -> None:
        self._paths, self._schedule, self._rank, self._track = paths, schedule, rank, track
        self._origin, self._place, self._quota, self._threads = origin, place, quota, threads
        self._wake = track.moved
        self._wanted: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._arrived: queue.SimpleQueue[tuple[int, int | None]] = queue.SimpleQueue()
        self._flying: set[int] = set()
        self._plan = _Plan(schedule, track.per_epoch)
        self._bytes = self._files = 0
        self._failures = self._pause = 0

    def start(self) -> None:
        threading.Thread(target=self._run, name="paddlecloud-keeper", daemon=True).start()

    def _run(self) -> None:
        try:
            run = _run_id(self._paths, self._schedule)
            seat = self._place.seat(run, self._rank)
            lock = None
            while not self._track.lost:
                seat.tell(self._track.position)
                if lock is None and (lock := self._place.keeper()) is not None:
                    self._begin()
                if lock is not None:
                    self._tend(self._place.positions(run))
                self._wake.wait(PULSE)
                self._wake.clear()
            LOG.warning("samples are read in another order than planned: nothing is prefetched any more")
        except Exception as error:
            LOG.warning("no prefetching, samples are read where they lie: %r", error)

    def _begin(self) -> None:
        """This process is the keeper now: take stock."""
        sizes = self._place.sizes(self._paths)
        self._elsewhere = self._place.elsewhere(self._paths)
        self._bytes, self._files = sum(sizes.values()), len(sizes)
        quota = self._bytes + int(SPARE * self._place.room()) if self._quota is None else self._quota
        self._kept = Clairvoyant(quota)
        self._plan.follow({self._rank: self._track.position}, self._kept)
        soonest = sorted(sizes, key=lambda sample: self._plan.first.get(sample, NEVER))
        for sample in soonest:
            if self._kept.admit(sample, sizes[sample], self._plan.first.get(sample, NEVER)) is None:
                self._place.drop(self._paths[sample])  # more than the quota allows
        for _ in range(self._threads):
            threading.Thread(target=self._fetch, name="paddlecloud-fetch", daemon=True).start()

    def _tend(self, positions: dict[int, int]) -> None:
        """Take in what arrived, follow the ranks, and ask for what they read next."""
        while not self._arrived.empty():
            self._take_in(*self._arrived.get())
        self._plan.follow(positions, self._kept)
        if self._pause > 0:
            self._pause -= 1
            return
        size = self._usual_size()
        step = self._schedule.sampler.batch_size * max(1, len(positions))
        window = window_of(self._kept.capacity // size, count=self._schedule.count, step=step)
        while len(self._flying) < 2 * self._threads and self._plan.ahead < self._plan.done + window:
            sample = self._plan.next_read()
            if sample is None:
                return
            if not (sample in self._kept or sample in self._flying or sample in self._elsewhere):
                evicted = self._kept.admit(sample, size, self._plan.ahead)
                if evicted is None:
                    return  # everything here is wanted sooner
                self._evict(evicted)
                self._flying.add(sample)
                self._wanted.put(sample)
            self._plan.ahead += 1

    def _usual_size(self) -> int:
        """What a sample is taken to need until it has arrived."""
        if self._files:
            return max(1, self._bytes // self._files)
        return max(1, min(_FIRST_GUESS, self._kept.capacity // (2 * self._threads)))

    def _take_in(self, sample: int, size: int | None) -> None:
        self._flying.discard(sample)
        if size is None:
            self._kept.drop(sample)
            self._failures += 1
            if self._failures % _FAILURES == 0:
                self._pause = _PAUSE
            return
        self._failures = 0
        self._bytes, self._files = self._bytes + size, self._files + 1
        evicted = self._kept.resize(sample, size) if sample in self._kept else None
        self._evict([sample] if evicted is None else evicted)

    def _evict(self, samples: list[int]) -> None:
        for sample in samples:
            if sample not in self._flying:  # else it goes when it arrives
                self._place.drop(self._paths[sample])

    def _fetch(self) -> None:
        while True:
            sample = self._wanted.get()
            size = None
            try:
                with self._place.arriving(self._paths[sample]) as draft:
                    size = self._origin.copy(self._paths[sample], draft)
            except Exception as error:
                size = None
                LOG.debug("%s was not fetched: %r", self._paths[sample], error)
            self._arrived.put((sample, size))
            self._wake.set()


class _Plan:
    """The reads of the ranks that share the cache, from their present epoch on; positions count from its beginning."""

    def __init__(self, schedule: Schedule, per_epoch: int) -> None:
        self._schedule, self._per_epoch = schedule, per_epoch
        self._members: tuple[int, ...] = ()
        self._epoch = -1
        self._known: dict[int, list[int]] = {}
        self._reads: list[int] = []
        self.first: dict[int, int] = {}
        """Where each sample is first read."""
        self.done = self.ahead = 0

    def next_read(self) -> int | None:
        return self._reads[self.ahead] if self.ahead < len(self._reads) else None

    def follow(self, positions: dict[int, int], kept: Clairvoyant) -> None:
        """Go on to where the last of the ranks is; what they have read is wanted at its next use."""
        if not positions or not self._per_epoch:
            return
        members = tuple(sorted(positions))
        passed, offset = divmod(min(positions.values()), self._per_epoch)
        epoch = self._schedule.epochs[0] + passed
        if members != self._members or epoch != self._epoch:
            self._plan(members, epoch, kept)
        size = self._schedule.sampler.batch_size
        done = min(offset // size * size * len(members), len(self._reads))
        for place in range(self.done, done):
            if (sample := self._reads[place]) in kept:
                kept.use(sample, self._following[place])
        self.done = max(self.done, done)
        self.ahead = max(self.ahead, self.done)

    def _plan(self, members: tuple[int, ...], epoch: int, kept: Clairvoyant) -> None:
        if members != self._members:
            self._known.clear()
        self._members, self._epoch = members, epoch
        many = max(2, min(HORIZON, LONGEST_PLAN // (self._per_epoch * len(members))))
        coming = [number for number in range(epoch, epoch + many) if number in self._schedule.epochs]
        self._known = {
            number: self._known.get(number) or flat(self._schedule.of_ranks(members, number)) for number in coming
        }
        self._reads = [sample for number in coming for sample in self._known[number]]
        self._following, self.first = next_uses(self._reads)
        self.done = self.ahead = 0
        kept.plan_anew(self.first)


def _run_id(paths: Sequence[str], schedule: Schedule) -> str:
    """Ranks of one program agree on it without a word."""
    digest = hashlib.sha256(repr(schedule).encode())
    for path in paths:
        digest.update(os.fsencode(path) + b"\0")
    return digest.hexdigest()[:16]
