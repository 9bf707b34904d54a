"""How plain code uses the asynchronous core: one event loop in a thread of its own, for as long as a client is open.

Why a thread and not `stdlib.drive`: waiting needs time-outs, following several ranks needs several streams at once, and
a notebook already runs an event loop in the thread that calls. Every call is an ordinary blocking call; Ctrl-C cancels
the work behind it.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 5.0


Cleanup = Callable[[], Coroutine[Any, Any, None]]


class Portal:
    """`run` and `iterate` may be called from any thread but the loop's own. `close` ends everything still at work.

    A portal that nobody refers to any more, or that is open when the process ends, closes by itself. `cleanup` is run
    in the loop before it stops; it must not refer to the portal.
    """

    def __init__(self, cleanup: Cleanup | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=(self._loop,), daemon=True, name="paddlecloud")
        self._thread.start()
        self._end = weakref.finalize(self, _end, self._loop, self._thread, cleanup)

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
        self._end()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, cleanup: Cleanup | None) -> None:
    async def last() -> None:
        try:
            if cleanup is not None:
                await cleanup()
        finally:
            loop.call_soon(loop.stop)

    if thread is threading.current_thread():  # the garbage collector may strike anywhere
        loop.create_task(last())
        return
    asyncio.run_coroutine_threadsafe(last(), loop)
    thread.join(STOP_SECONDS)
