"""The tasks of a `Follower` as threads: each drives a coroutine whose transport blocks. No event loop is imported."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from paddlecloud.kube.stdlib import drive, sleep
from paddlecloud.sdk.following import Item

BUFFER = 10_000
"""Lines read but not printed: a terminal slower than the job slows the readers, it does not fill the memory."""


class ThreadTasks:
    """All methods are coroutines that never suspend, as those of the stdlib transport."""

    def __init__(self) -> None:
        self._items: queue.Queue[Item] = queue.Queue(BUFFER)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be printed."""
        return self._items.empty()

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> Callable[[], bool]:
        thread = threading.Thread(target=drive, args=(work,), daemon=True, name=name)
        thread.start()
        return thread.is_alive

    async def put(self, item: Item) -> None:
        self._items.put(item)

    async def get(self, timeout: float) -> Item | None:
        try:
            return self._items.get(timeout=timeout) if timeout > 0 else self._items.get_nowait()
        except queue.Empty:
            return None

    async def sleep(self, seconds: float) -> None:
        await sleep(seconds)

    async def close(self) -> None:
        """Threads end with the command, which ends when its lines do."""
