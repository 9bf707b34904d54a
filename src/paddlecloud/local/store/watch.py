"""Sends changes to watchers, without ever waiting for them.

A `Watch` is a bounded queue between the store and one reader. A reader that falls too far behind is cut off: it sees
the end of its stream, comes back with the last revision it saw, and catches up from the ring or the table. So a slow
watcher costs itself a reconnect and nobody else anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import Record


class Change(NamedTuple):
    """One committed write. `previous` is what the object was before: None when it was created."""

    op: Op
    record: Record
    previous: Record | None

    @property
    def rev(self) -> int:
        return self.record.rev

    @property
    def size(self) -> int:
        """Bytes; what the object was before is counted with the change that made it so."""
        return len(self.record.value)


class Watch:
    """Changes of one collection (and namespace, if given) after a revision, in order, without gap or duplicate."""

    LIMIT = 4096  # changes a reader may lag behind before it is cut off
    LIMIT_BYTES = 64 * 1024 * 1024

    def __init__(self, collection: str, namespace: str | None, backlog: Iterable[Change]) -> None:
        self.collection = collection
        self.namespace = namespace
        self._queue: deque[Change] = deque(backlog)
        self._bytes = 0  # of what was queued since the reader last took something
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self.closed = False

    def offer(self, change: Change) -> bool:
        """Called by the store for each commit of the collection; never blocks. True if it cut the reader off."""
        if self.closed or (self.namespace is not None and change.record.address.namespace != self.namespace):
            return False
        if len(self._queue) >= self.LIMIT or self._bytes > self.LIMIT_BYTES:
            self._queue.clear()  # the watcher resumes from its last revision; until then they only fill the memory
            self.close()
            return True
        self._queue.append(change)
        self._bytes += change.size
        self._wake()
        return False

    def close(self) -> None:
        """End the stream after what is already queued; `next_batch` then returns an empty list."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next_batch(self, timeout: float | None = None) -> list[Change] | None:
        """Everything queued, at least one change. None when `timeout` passed; empty when the watch has ended."""
        if not self._queue and not self.closed:
            await self._change_or(timeout)
        if self._queue:
            batch = list(self._queue)
            self._queue.clear()
            self._bytes = 0
            return batch
        return [] if self.closed else None

    async def _change_or(self, timeout: float | None) -> None:
        """Not `asyncio.wait_for`: up to Python 3.11 that loses a cancellation which comes together with a change."""
        loop = asyncio.get_running_loop()
        due = loop.time() + timeout if timeout is not None else None
        while not self._queue and not self.closed and (due is None or loop.time() < due):
            self._set_alarm(loop, due)
            self._waiter = loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, due: float | None) -> None:
        """Readers wait for about the same moment again and again: an alarm already set for then, or before, will do."""
        if due is None or (self._alarm is not None and self._alarm.when() <= due):
            return
        self.release()
        self._alarm = loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake()

    def release(self) -> None:
        """Nobody will read any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
