"""Ports of this machine that lead to ports of a pod. Each connection has a WebSocket of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from paddlecloud.kube.errors import ApiError
from paddlecloud.sdk.remote import Connection

READ = 64 * 1024
LINGER = 60.0
"""Seconds that a pod has to answer after a client ended its side: that end cannot be passed on, and some clients end
their side before they have read the answer."""

Dial = Callable[[int], Awaitable[Connection]]
"""Connects to a port of the pod."""
Warn = Callable[[str], None]


class Forward:
    """A listening port. `warn` is called with what goes wrong with single connections; the listener goes on."""

    def __init__(self, dial: Dial, remote_port: int, warn: Warn) -> None:
        self._dial = dial
        self._port = remote_port
        self._warn = warn
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, address: str, port: int) -> int:
        """The port listened on: any free one for 0. Raises OSError when it is taken."""
        self._server = await asyncio.start_server(self._accept, address, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            connection = await self._dial(self._port)
            try:
                await _join(reader, writer, connection)
            finally:
                await connection.close()
        except ApiError as error:
            self._warn(f"port {self._port}: {error.message}")
        except ConnectionError:
            pass  # one side broke off: the other is closed below
        finally:
            writer.close()


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
    """Carry bytes both ways until the pod has ended its side, or the client is gone."""

    async def outward() -> None:
        while data := await reader.read(READ):
            await connection.write(data)

    async def inward() -> None:
        while data := await connection.read():
            writer.write(data)
            await writer.drain()

    going, coming = asyncio.ensure_future(outward()), asyncio.ensure_future(inward())
    try:
        await asyncio.wait((going, coming), return_when=asyncio.FIRST_COMPLETED)
        if going.done() and going.exception() is None:
            await asyncio.wait((coming,), timeout=LINGER)
    finally:
        for task in (going, coming):
            task.cancel()
        results = await asyncio.gather(going, coming, return_exceptions=True)
    for result in results:
        if isinstance(result, (ApiError, ConnectionError)):
            raise result
