"""How far a rank has come in its plan, computed from the reads of its workers.

Workers read ahead of the training step and of each other, so the order is only nearly that of the plan. `position` is
what has been read for certain: everything before it. A program that reads in quite another order than was planned is
found out (`lost`), and nothing is prefetched for it any more.
"""

from __future__ import annotations

import threading

from paddlecloud.cache.plan.schedule import Schedule, flat

DISORDER = 64
"""Batches by which reads may be out of order: more than any loader keeps on its way."""
_STRAYS = 256
"""Reads off the plan after which it is judged."""


class Track:
    def __init__(self, schedule: Schedule, rank: int) -> None:
        self._schedule, self._rank = schedule, rank
        self._disorder = DISORDER * schedule.sampler.batch_size
        self.moved = threading.Event()
        """Set with every batch that is done."""
        self.lost = False
        self.per_epoch = 0
        """Reads of a rank in an epoch; all epochs are alike in this."""
        self._announced: int | None = None
        self._reads = self._strays = 0
        self._load(schedule.epochs[0])

    @property
    def position(self) -> int:
        """Reads done for certain, from the beginning of the plan."""
        return (self._epoch - self._schedule.epochs[0]) * self.per_epoch + self._done

    def begin(self, epoch: int) -> None:
        """An epoch begins, whatever became of the last one. Costs nothing: the training loop itself is calling."""
        self._announced = epoch

    def on_read(self, index: int) -> int:
        """One more read; says which epoch it belongs to."""
        if self._announced is not None:
            if self._announced != self._epoch or self._count:
                self._load(self._announced)
            self._announced = None
        elif self._count >= self.per_epoch and self._epoch + 1 in self._schedule.epochs:
            self._load(self._epoch + 1)
        self._count += 1
        self._reads += 1
        offset = self._offset_of(index)
        if offset is None or abs(offset - self._count) > self._disorder:
            self._strays += 1
            self.lost = self.lost or (self._strays >= _STRAYS and 2 * self._strays > self._reads)
        else:
            self._read_at(offset)
        return self._epoch

    def _load(self, epoch: int) -> None:
        reads = flat(self._schedule.of_ranks([self._rank], epoch))
        self._epoch, self._count, self._done, self._newest = epoch, 0, 0, 0
        self.per_epoch = len(reads)
        self._seen = bytearray(len(reads))
        self._offsets = dict(zip(reads, range(len(reads)), strict=True))
        self._earlier = {}  # padding may repeat a sample
        if len(self._offsets) < len(reads):
            self._earlier = {index: at for at, index in enumerate(reads) if self._offsets[index] != at}

    def _offset_of(self, index: int) -> int | None:
        """Where in the epoch a sample is read that has not been read there yet."""
        for offsets in (self._earlier, self._offsets):
            offset = offsets.get(index)
            if offset is not None and not self._seen[offset]:
                return offset
        return None

    def _read_at(self, offset: int) -> None:
        before = self._done
        self._seen[offset] = 1
        self._newest = max(self._newest, offset)
        self._done = max(self._done, self._newest - self._disorder)  # a read that never came is not waited for
        while self._done < len(self._seen) and self._seen[self._done]:
            self._done += 1
        size = self._schedule.sampler.batch_size
        if before // size != self._done // size:
            self.moved.set()
