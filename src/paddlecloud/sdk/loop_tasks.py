"""The tasks of a `Follower` on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.sdk.following import Choose, Follower, Item
from paddlecloud.sdk.logs import Line, LogOptions
from paddlecloud.sdk.object_ref import ObjectRef

BUFFER = 1000


class LoopTasks:
    def __init__(self) -> None:
        self._items: asyncio.Queue[Item] = asyncio.Queue(BUFFER)
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> Callable[[], bool]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks = [*(one for one in self._tasks if not one.done()), task]
        return lambda: not task.done()

    async def put(self, item: Item) -> None:
        await self._items.put(item)

    async def get(self, timeout: float) -> Item | None:
        if not self._items.empty():
            return self._items.get_nowait()
        try:
            return await asyncio.wait_for(self._items.get(), timeout)
        except asyncio.TimeoutError:
            return None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def follow(client: Client, place: ObjectRef, choose: Choose, options: LogOptions) -> AsyncGenerator[Line, None]:
    """Every line of the chosen pods until the object has ended or is gone."""
    lines = Follower(client, place, choose, options, LoopTasks()).lines()
    try:
        async for item in lines:
            if isinstance(item, Line):
                yield item
    finally:
        await lines.aclose()
