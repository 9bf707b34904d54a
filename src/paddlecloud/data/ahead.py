"""Reading ahead through a mount that keeps its own cache, as JuiceFS does: what was read once is on the node.

Where the mount is the cache there is no folder to fill and nothing to drop; what stays is the mount's business. But
which file comes next is known all the same, and reading it a few batches early brings it here before training waits.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence

from paddlecloud.cache.plan.schedule import Schedule, flat
from paddlecloud.data.origin import Origin
from paddlecloud.data.track import Track

LOG = logging.getLogger("paddlecloud.data")
WINDOW = 8
"""Batches."""
_IDLE = 0.5


class Ahead:
    def __init__(
        self, paths: Sequence[str], *, schedule: Schedule, rank: int, track: Track, origin: Origin, threads: int
    ) -> None:
        self._paths, self._schedule, self._rank, self._track = paths, schedule, rank, track
        self._origin, self._threads = origin, threads
        self._wanted: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._epoch, self._ahead = -1, 0
        self._reads: list[int] = []

    def start(self) -> None:
        threading.Thread(target=self._run, name="paddlecloud-ahead", daemon=True).start()
        for _ in range(self._threads):
            threading.Thread(target=self._read, name="paddlecloud-fetch", daemon=True).start()

    def _run(self) -> None:
        try:
            while not self._track.lost:
                self._go_on()
                self._track.moved.wait(_IDLE)
                self._track.moved.clear()
            LOG.warning("samples are read in another order than planned: nothing is read ahead any more")
        except Exception as error:
            LOG.warning("nothing is read ahead any more: %r", error)

    def _go_on(self) -> None:
        per_epoch = max(1, self._track.per_epoch)
        passed, done = divmod(self._track.position, per_epoch)
        epoch = self._schedule.epochs[0] + passed
        if epoch != self._epoch:
            self._ahead = max(0, self._ahead - per_epoch) if epoch == self._epoch + 1 else 0
            self._epoch = epoch
            coming = [number for number in (epoch, epoch + 1) if number in self._schedule.epochs]
            self._reads = [read for number in coming for read in flat(self._schedule.of_ranks([self._rank], number))]
        limit = min(len(self._reads), done + WINDOW * self._schedule.sampler.batch_size)
        for place in range(max(self._ahead, done), limit):
            self._wanted.put(self._reads[place])
        self._ahead = max(self._ahead, limit)

    def _read(self) -> None:
        while True:
            path = self._paths[self._wanted.get()]
            try:
                self._origin.read(path)
            except OSError as error:
                LOG.debug("%s was not read ahead: %r", path, error)
