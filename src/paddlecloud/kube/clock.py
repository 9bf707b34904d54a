"""Time as a dependency.

Everything that waits, expires or stamps takes a `Clock`, so tests run hours of cluster life in milliseconds and never
sleep. `FakeClock` moves only by `advance`; sleepers wake in order of their deadlines.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from typing import Protocol

from paddlecloud.kube.times import parse_rfc3339 as parse_rfc3339
from paddlecloud.kube.times import rfc3339 as rfc3339
from paddlecloud.kube.times import rfc3339_micro as rfc3339_micro


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch: what is written into objects."""

    def monotonic(self) -> float:
        """Seconds that never go back: what delays are measured with."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FakeClock:
    """A clock for tests. `advance` moves time and lets everything that became due run."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time forward, stopping at each deadline on the way so that chains of sleeps unfold in order."""
        target = self._now + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            self._now = max(self._now, self._sleepers[0][0])
            while self._sleepers and self._sleepers[0][0] <= self._now:
                _, _, future = heapq.heappop(self._sleepers)
                if not future.done():
                    future.set_result(None)
            await self.settle()
        self._now = target
        await self.settle()

    async def settle(self, rounds: int = 20) -> None:
        """Let ready tasks run. Twenty turns of the loop cover every chain of awaits in this code base."""
        for _ in range(rounds):
            await asyncio.sleep(0)


async def sleep_until_set(event: asyncio.Event, seconds: float, clock: Clock) -> None:
    """Sleep for so long, or until the event is set if that is earlier."""
    tasks = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
