"""How long a housekeeping loop may hold the event loop.

An `await` suspends a task only if what it waits for is not there yet. A loop over work that is decided in memory can
therefore run for ever without anything else getting its turn; `checkpoint` in such a loop makes that impossible.
"""

from __future__ import annotations

import asyncio
import time

LONGEST = 0.01
"""Seconds. Long enough that yielding costs next to nothing, short enough that nobody notices the wait."""


class TimeSlice:
    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def checkpoint(self) -> None:
        """Let other tasks run if this one may have held the event loop for longer than `LONGEST`."""
        if time.perf_counter() - self._since > LONGEST:
            await asyncio.sleep(0)
            self._since = time.perf_counter()
