"""attach without a terminal: what a container prints from now on, read from its log.

Containers here have no standard input to join, so there is none to write to; that is what Kubernetes does for
containers that did not ask for one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from .remote_command import settle


class Printed(NamedTuple):
    stream: str
    data: bytes


class AttachedLog:
    """A `Session` that follows logs, one per output stream."""

    def __init__(self, outputs: Mapping[str, AsyncIterator[bytes]]) -> None:
        self._queue: asyncio.Queue[Printed | None] = asyncio.Queue(64)
        self._pumps: list[asyncio.Future[None]] = [
            asyncio.ensure_future(self._pump(stream, chunks)) for stream, chunks in outputs.items()
        ]
        self._finishing = asyncio.ensure_future(self._finish())

    async def read(self) -> Printed | None:
        return await self._queue.get()

    async def write(self, data: bytes) -> None:
        """Nobody reads it."""

    def close_stdin(self) -> None:
        """There is none."""

    def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    async def wait(self) -> int:
        for pump in self._pumps:
            pump.result()  # a log that could not be read is told to the client
        return 0

    async def close(self) -> None:
        await settle([*self._pumps, self._finishing])

    async def _pump(self, stream: str, chunks: AsyncIterator[bytes]) -> None:
        async for data in chunks:
            await self._queue.put(Printed(stream, data))

    async def _finish(self) -> None:
        if self._pumps:
            await asyncio.wait(self._pumps)
        await self._queue.put(None)
