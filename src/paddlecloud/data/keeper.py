"""The thread that brings samples to the node before they are read, and drops those needed last.

Ranks that share a node's cache each run one; whichever holds the folder's lock is the keeper and fetches for all of
them, the others only say how far they are. When the keeper's process dies, another takes over. Nothing here is
needed to read: whatever goes wrong, samples come from where they lie.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterable, Sequence

from paddlecloud.cache.plan.eviction import NEVER, Clairvoyant
from paddlecloud.cache.plan.prefetch import window_of
from paddlecloud.cache.plan.schedule import Schedule
from paddlecloud.data.cache_folders import CacheFolders, is_inside
from paddlecloud.data.fetching import Arrival, Fetching
from paddlecloud.data.origin import Origin
from paddlecloud.data.peers import Peers
from paddlecloud.data.reading import Plan
from paddlecloud.data.track import Track

LOG = logging.getLogger("paddlecloud.data")
PULSE, IDLE = 0.05, 0.5
"""Seconds between two looks at how far others are, and at whether there are any."""
SPARE = 0.9
"""Part of the free disk that is used when no quota is given."""
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
        place: CacheFolders,
        quota: int | None,
        threads: int,
        peers: Peers | None = None,
    ) -> None:
        self._paths, self._schedule, self._rank, self._track = paths, schedule, rank, track
        self._place, self._quota, self._threads, self._peers = place, quota, threads, peers
        self._wake = track.moved
        self._fetching = Fetching(paths, origin=origin, place=place, peers=peers, threads=threads, wake=self._wake)
        self._plan = Plan(schedule, track.per_epoch, together=peers is not None)
        self._kept = Clairvoyant(0)
        """What is in the folder or on its way there, by its next use. Empty until this process is the keeper."""
        self._elsewhere: set[int] = set()
        """Samples that are not for this folder: in another one, or not of the set."""
        self._taken: dict[int, int] = {}
        """How much of what peers took from each rank is known here."""
        self._bytes = self._files = 0
        """Of what has been seen so far: the usual size is estimated from them."""
        self._failures = self._pause = 0
        self._sharing = True

    def start(self) -> None:
        threading.Thread(target=self._run, name="paddlecloud-keeper", daemon=True).start()

    def _run(self) -> None:
        try:
            run = _run_id(self._paths, self._schedule)
            seat = self._place.seat(run, self._rank)
            if self._peers is not None:
                self._peers.serve(self._place, self._paths, seat.publish_taken)
            lock = None
            while not self._track.lost:
                seat.publish(self._track.position)
                if lock is None and (lock := self._place.keeper()) is not None:
                    self._begin()
                if lock is not None:
                    positions = self._place.positions(run)
                    if self._peers is not None:
                        self._let_go(run, positions)
                    self._tend(positions)
                self._wake.wait(self._patience())
                self._wake.clear()
            LOG.warning("samples are read in another order than planned: nothing is prefetched any more")
        except Exception as error:
            LOG.warning("no prefetching, samples are read where they lie: %r", error)

    def _patience(self) -> float:
        """This rank's progress and arrivals wake us; others have to be looked at."""
        return PULSE if self._fetching.flying or self._pause or self._sharing else IDLE

    def _begin(self) -> None:
        """This process is the keeper now: take stock."""
        sizes = self._place.sizes(self._paths)
        self._elsewhere = self._place.elsewhere(self._paths)
        self._elsewhere |= {sample for sample, path in enumerate(self._paths) if not is_inside(path)}
        self._bytes, self._files = sum(sizes.values()), len(sizes)
        quota = self._bytes + int(SPARE * self._place.room()) if self._quota is None else self._quota
        self._kept = Clairvoyant(quota)
        self._plan.follow({self._rank: self._track.position}, self._kept)
        soonest = sorted(sizes, key=lambda sample: self._plan.first.get(sample, NEVER))
        for sample in soonest:
            if self._kept.admit(sample, sizes[sample], self._plan.first.get(sample, NEVER)) is None:
                self._place.drop(self._paths[sample])  # more than the quota allows
        self._fetching.start()

    def _tend(self, positions: dict[int, int]) -> None:
        """Take in what arrived, follow the ranks, and ask for what they read next."""
        self._sharing = len(positions) > 1 or self._peers is not None
        for arrival in self._fetching.arrivals():
            self._take_in(arrival)
        self._plan.follow(positions, self._kept)
        if self._pause > 0:
            self._pause -= 1
            return
        self._ask_ahead(len(positions))

    def _ask_ahead(self, ranks: int) -> None:
        """Have fetched what is read next and not here, as far as the window reaches and there is room for it."""
        flying, size = self._fetching.flying, self._usual_size()
        step = self._schedule.sampler.batch_size * max(1, ranks)
        window = window_of(self._kept.capacity // size, count=self._schedule.count, step=step)
        while len(flying) < 2 * self._threads and self._plan.ahead < self._plan.done + window:
            sample = self._plan.next_read()
            if sample is None:
                return
            if not (sample in self._kept or sample in flying or sample in self._elsewhere):
                if self._peers is not None and not self._plan.is_free(sample):
                    return  # it is asked for when its last reader is done with it
                evicted = self._kept.admit(sample, size, self._plan.ahead)
                if evicted is None:
                    return  # everything here is wanted sooner
                self._evict(evicted)
                self._fetching.ask(sample, last_reader=self._plan.last_reader(sample))
            self._plan.ahead += 1

    def _let_go(self, run: str, ranks: Iterable[int]) -> None:
        """What a peer took waits at its next reader now."""
        for rank in ranks:
            taken = self._place.taken(run, rank, self._taken.get(rank, 0))
            self._taken[rank] = self._taken.get(rank, 0) + len(taken)
            gone = [sample for sample in taken if not self._plan.is_wanted_here(sample)]
            for sample in gone:
                self._kept.drop(sample)
            self._evict(gone)

    def _usual_size(self) -> int:
        """What a sample is taken to need until it has arrived."""
        if self._files:
            return max(1, self._bytes // self._files)
        return max(1, min(_FIRST_GUESS, self._kept.capacity // (2 * self._threads)))

    def _take_in(self, arrival: Arrival) -> None:
        sample, size = arrival.sample, arrival.size
        if arrival.no_room:
            self._kept.drop(sample)
            self._kept.capacity = self._kept.used  # the disk has no more: from here on one goes for each that comes
            self._plan.ahead = self._plan.done  # and what did not fit is asked for again
            return
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
            if sample not in self._fetching.flying:  # else it goes when it arrives
                self._place.drop(self._paths[sample])


def _run_id(paths: Sequence[str], schedule: Schedule) -> str:
    """Ranks of one program agree on it without a word."""
    digest = hashlib.sha256(repr(schedule).encode())
    for path in paths:
        digest.update(os.fsencode(path) + b"\0")
    return digest.hexdigest()[:16]
