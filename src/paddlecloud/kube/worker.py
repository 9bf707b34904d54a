"""Keys of what may need work, one at a time, retried until it is done: the one loop of the API server's housekeeping.

What subscribes to changes adds the key of whatever a change may concern; the work reads the newest state, so it may
be repeated or interrupted at any point. A failure (a conflict, a disk that is full) is retried with backoff, for that
key alone, however long it takes: nobody else would notice that something is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from paddlecloud.kube import errors
from paddlecloud.kube.queue import RateLimitingQueue
from paddlecloud.kube.timeslice import TimeSlice

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

LONGEST = 5.0
"""Seconds between two attempts, at most."""


class Worker(Generic[K]):
    """`run` works until cancelled. `settle` is the time in which changes of one key share one run, in seconds."""

    def __init__(self, name: str, work: Callable[[K], Awaitable[None]], *, settle: float = 0.0) -> None:
        self._name = name
        self._work = work
        self._settle = settle
        self._queue: RateLimitingQueue[K] = RateLimitingQueue(cap=LONGEST)
        self._running = False

    def add(self, key: K, *, later: bool = False) -> None:
        """Also before `run`, where there may be no event loop yet. `later` lets others overtake it."""
        if self._settle and self._running:
            self._queue.add_after(key, self._settle)
        else:
            self._queue.add(key, later=later)

    async def run(self) -> None:
        self._running = True
        slice_ = TimeSlice()
        try:
            while True:
                key = await self._queue.get()
                await slice_.checkpoint()  # work that finds nothing to do never waits for anything
                try:
                    await self._attempt(key)
                finally:
                    self._queue.done(key)
        finally:
            self._running = False
            self._queue.shut_down(discard=True)

    async def _attempt(self, key: K) -> None:
        queue = self._queue
        try:
            await self._work(key)
        except errors.ApiError as error:
            queue.add_rate_limited(key, at_least=float(error.retry_after or 0.0))
            ordinary = isinstance(error, (errors.Conflict, errors.NotFound))  # it changed meanwhile: look again
            level = logging.WARNING if queue.failures(key) == 1 and not ordinary else logging.DEBUG
            log.log(level, "%s %s failed and is retried: %s", self._name, key, error)
        except Exception:
            queue.add_rate_limited(key)
            log.exception("%s %s failed and is retried", self._name, key)
        else:
            queue.forget(key)
