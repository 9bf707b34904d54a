"""The threads that bring samples to a node: from the node of their last reader, where it serves them, else from their
origin. Which ones, and when, is the keeper's to say.
"""

from __future__ import annotations

import errno
import logging
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paddlecloud.data.cache_folders import CacheFolders
from paddlecloud.data.origin import Origin
from paddlecloud.data.peers import Peers

LOG = logging.getLogger("paddlecloud.data")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Arrival(NamedTuple):
    """How the fetching of a sample ended: with its size, without room on the disk, or (`size` is None) not at all."""

    sample: int
    size: int | None = None
    no_room: bool = False


class _Wish(NamedTuple):
    sample: int
    last_reader: int | None


class Fetching:
    """`wake` is set whenever something has arrived."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        origin: Origin,
        place: CacheFolders,
        peers: Peers | None,
        threads: int,
        wake: threading.Event,
    ) -> None:
        self._paths, self._origin, self._place, self._peers = paths, origin, place, peers
        self._wake = wake
        self._threads = threads
        self._wanted: queue.SimpleQueue[_Wish] = queue.SimpleQueue()
        self._arrived: queue.SimpleQueue[Arrival] = queue.SimpleQueue()
        self.flying: set[int] = set()
        """Samples that were asked for and have not been taken in."""

    def start(self) -> None:
        for _ in range(self._threads):
            threading.Thread(target=self._run, name="paddlecloud-fetch", daemon=True).start()

    def ask(self, sample: int, *, last_reader: int | None) -> None:
        self.flying.add(sample)
        self._wanted.put(_Wish(sample, last_reader))

    def arrivals(self) -> Iterator[Arrival]:
        """Those since the last look."""
        while not self._arrived.empty():
            arrival = self._arrived.get()
            self.flying.discard(arrival.sample)
            yield arrival

    def _run(self) -> None:
        while True:
            self._arrived.put(self._fetch(self._wanted.get()))
            self._wake.set()

    def _fetch(self, wish: _Wish) -> Arrival:
        path, size = self._paths[wish.sample], None
        try:
            with self._place.arriving(path) as draft:
                if self._peers is not None and wish.last_reader is not None:
                    size = self._peers.copy(wish.last_reader, path, draft)
                if size is None:
                    size = self._origin.copy(path, draft)
        except Exception as error:
            LOG.debug("%s was not fetched: %r", path, error)
            return Arrival(wish.sample, no_room=isinstance(error, OSError) and error.errno in _NO_ROOM)
        return Arrival(wish.sample, size)
