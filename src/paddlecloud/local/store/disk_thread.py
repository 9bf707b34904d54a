"""One thread beside the event loop, for what must wait for the disk.

`concurrent.futures` does the same at several times the cost of one hand-over, and the store hands over once per group
of durable writes.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable

from paddlecloud.local.store.log import StorageError

Work = Callable[[], None]
Then = Callable[["StorageError | None"], None]


class DiskThread:
    """Does one piece of work after the other; reports to the calling loop how each ended."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[Work, Then, asyncio.AbstractEventLoop] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, work: Work, then: Then) -> None:
        """`work` may raise StorageError; `then` is called in the running event loop."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
            self._thread.start()
        self._orders.put((work, then, asyncio.get_running_loop()))

    def close(self) -> None:
        """Finish what was ordered and end."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            work, then, loop = order
            failure: StorageError | None = None
            try:
                work()
            except StorageError as error:
                failure = error
            try:
                loop.call_soon_threadsafe(then, failure)
            except RuntimeError:
                return  # the loop is closed: nobody waits for the outcome any more
