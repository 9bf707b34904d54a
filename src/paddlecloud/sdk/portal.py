"""How plain code uses the asynchronous core: one event loop in a thread of its own, for as long as a client is open.

Why a thread and not `stdlib.drive`: waiting needs time-outs, following several ranks needs several streams at once, and
a notebook already runs an event loop in the thread that calls. Every call is an ordinary blocking call; Ctrl-C cancels
the work behind it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 5.0


class Portal:
    """`run` and `iterate` may be called from any thread but the loop's own. `close` ends everything still at work."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="paddlecloud")
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    @property
    def closed(self) -> bool:
        return not self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if self.closed or threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the client is closed" if self.closed else "a blocking call from the client's own loop")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Interrupted while waiting, or the work itself failed; in the second case there is nothing left to cancel.
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """The same for an asynchronous generator; it is closed with this one."""

        async def step() -> T:
            return await items.__anext__()

        try:
            while True:
                try:
                    yield self.run(step())
                except StopAsyncIteration:
                    return
        finally:
            if not self.closed:
                self.run(items.aclose())

    def close(self) -> None:
        if not self.closed:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS)
