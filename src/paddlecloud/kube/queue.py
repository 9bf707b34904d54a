"""The keyed work queue of controllers: three layers, each adding one behaviour, as in client-go's workqueue.

`WorkQueue` removes duplicates and never hands out one key twice at the same time; `DelayingQueue` adds keys later;
`RateLimitingQueue` makes a failing key wait longer each time. A key is only a name: who gets it reads the newest state,
so ten changes to an object while its key waits cost one run.

Used from one event loop; not thread-safe.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.clock import Clock, SystemClock

K = TypeVar("K", bound=Hashable)


class ShutDown(Exception):
    """The queue was shut down and holds nothing more: the worker may go home."""


EVERY = 4
"""Of so many keys handed out, one is of those that may wait, if there are any: none starves."""


class WorkQueue(Generic[K]):
    """`get` … work … `done`, for every key handed out, whatever the work's end."""

    def __init__(self) -> None:
        self._ready: deque[K] = deque()  # in the order they will be handed out; each is in _dirty, none in _processing
        self._later: dict[K, None] = {}  # the same, for keys that others may overtake; in one of the two only
        self._turn = 0  # keys handed out
        self._dirty: set[K] = set()  # keys that need work: those in the two, and those changed while being processed
        self._processing: set[K] = set()  # handed out and not yet done
        self._getters: deque[asyncio.Future[None]] = deque()  # workers asleep; none while _ready has a key for them
        self._drained: list[asyncio.Future[None]] = []
        self._shutting_down = False

    def add(self, key: K, *, later: bool = False) -> None:
        """Ask for work on `key`. Waiting already: nothing to do. Being worked on: once more after `done`.

        `later` lets others overtake it, until it is asked for without.
        """
        if self._shutting_down:
            return
        if key in self._dirty:
            if not later and key in self._later:
                del self._later[key]
                self._ready.append(key)
            return
        self._dirty.add(key)
        if key in self._processing:
            return
        if later:
            self._later[key] = None
        else:
            self._ready.append(key)
        self._wake()

    async def get(self) -> K:
        """The next key, or `ShutDown` once the queue is shut down and empty."""
        while not len(self):
            if self._shutting_down:
                raise ShutDown
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # it was our turn; pass it on
                raise
            finally:
                if waiter in self._getters:
                    self._getters.remove(waiter)
        key = self._next()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def _next(self) -> K:
        self._turn += 1
        if self._later and (not self._ready or self._turn % EVERY == 0):
            key = next(iter(self._later))
            del self._later[key]
            return key
        return self._ready.popleft()

    def done(self, key: K) -> None:
        """Work on `key` ended. If it was added meanwhile, it waits for its next turn now."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)
            self._wake()
        self._tell_drained()

    def __len__(self) -> int:
        """Keys waiting to be handed out."""
        return len(self._ready) + len(self._later)

    @property
    def processing(self) -> int:
        return len(self._processing)

    def shut_down(self, *, discard: bool = False) -> None:
        """Take no more keys. Those waiting are still handed out, unless discarded; then `get` raises `ShutDown`."""
        self._shutting_down = True
        if discard:
            self._ready.clear()
            self._later.clear()
            self._dirty.clear()
        for waiter in self._getters:
            if not waiter.done():
                waiter.set_result(None)
        self._tell_drained()

    async def drain(self) -> None:
        """Shut down and wait until everything handed out is done and nothing waits."""
        self.shut_down()
        if len(self) or self._processing:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drained.append(future)
            await future

    def _tell_drained(self) -> None:
        if self._processing or len(self):
            return
        for future in self._drained:
            if not future.done():
                future.set_result(None)
        self._drained.clear()

    def _wake(self) -> None:
        while self._getters:
            waiter = self._getters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


class DelayingQueue(WorkQueue[K]):
    """`add_after`: add a key when its time has come. Asked twice for one key, the earlier time counts."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._due: dict[K, float] = {}  # the time each delayed key is due
        self._heap: list[tuple[float, int, K]] = []  # holds (_due[k], _, k) for every k in _due; others are stale
        self._order = itertools.count()  # keys due at the same time come in the order they were asked for
        self._timer: tuple[float, asyncio.Task[None]] | None = None  # sleeps until the earliest time in _heap

    def add_after(self, key: K, seconds: float) -> None:
        if self._shutting_down:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._arm()

    @property
    def delayed(self) -> int:
        """Keys waiting for their time."""
        return len(self._due)

    def shut_down(self, *, discard: bool = False) -> None:
        super().shut_down(discard=discard)
        self._due.clear()
        self._heap.clear()
        self._disarm()

    def _arm(self) -> None:
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer[0] <= due:
                return
            self._disarm()
        self._timer = (due, asyncio.get_running_loop().create_task(self._ring(due)))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None

    async def _ring(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._timer = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            time, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == time:
                del self._due[key]
                self.add(key)
        if self._heap:
            self._arm()


class RateLimitingQueue(DelayingQueue[K]):
    """`add_rate_limited`: add a key that failed after 5 ms, 10 ms, 20 ms … up to `cap`, until it is forgotten."""

    def __init__(self, clock: Clock | None = None, *, base: float = 0.005, cap: float = 60.0) -> None:
        super().__init__(clock)
        self._base = base
        self._cap = cap
        self._failures: dict[K, int] = {}  # consecutive failures; a key that succeeded is not in it

    def add_rate_limited(self, key: K, *, at_least: float = 0.0) -> None:
        """`at_least` is what a server asked for (Retry-After)."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, max(at_least, exponential(failures, base=self._base, cap=self._cap)))

    def forget(self, key: K) -> None:
        """The key succeeded, or failed for good: its next failure starts from the beginning."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)
