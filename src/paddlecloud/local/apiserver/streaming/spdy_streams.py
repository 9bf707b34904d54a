"""exec and attach over SPDY: the client opens one stream each for error, stdin, stdout, stderr and terminal size."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from paddlecloud.local.apiserver.streaming.spdy_connection import Connection, Link, Stream

OPENING = 30.0  # seconds the client may take to open all its streams
STREAM_TYPE = "streamtype"


class SpdyStreams:
    """A `Remote` on a SPDY connection."""

    def __init__(self, link: Link, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._streams: dict[str, Stream] = {}
        self._complete = asyncio.Event()
        self._connection = Connection(link, self._opened)
        self._running = asyncio.ensure_future(self._connection.run())

    def _opened(self, stream: Stream) -> None:
        name = stream.headers.get(STREAM_TYPE, "").lower()
        if name in self._wanted:
            self._streams.setdefault(name, stream)
        if self._wanted <= self._streams.keys():
            self._complete.set()

    async def opened(self) -> bool:
        """Whether the client opened all streams that it announced."""
        complete = asyncio.ensure_future(self._complete.wait())
        try:
            await asyncio.wait((complete, self._running), timeout=OPENING, return_when=asyncio.FIRST_COMPLETED)
        finally:
            complete.cancel()
        return self._complete.is_set()

    async def stdin(self) -> bytes:
        return await self._streams["stdin"].read()

    async def resizes(self) -> bytes:
        return await self._streams["resize"].read()

    async def output(self, stream: str, data: bytes) -> None:
        if stream in self._streams:  # with a terminal there is no separate stderr
            await self._streams[stream].write(data)

    async def status(self, body: bytes) -> None:
        for name in ("stdout", "stderr"):
            if name in self._streams:
                await self._streams[name].finish()
        error = self._streams["error"]
        await error.write(body)
        await error.finish()

    async def gone(self) -> None:
        await asyncio.wait((self._running,))

    async def close(self) -> None:
        await self._connection.close()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
