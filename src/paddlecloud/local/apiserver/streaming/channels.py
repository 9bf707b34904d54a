"""exec and attach over a WebSocket: the first byte of every message names its channel.

    0 stdin · 1 stdout · 2 stderr · 3 error (the final Status) · 4 terminal size

Version 5 of the protocol adds channel 255, by which one side closes another channel: how stdin ends without the
connection. Older versions cannot say it.
"""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType, web

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
PROTOCOLS = (V5, V4, V1)
"""Best first."""

_OUTPUTS = {"stdout": STDOUT, "stderr": STDERR}
_UNREAD = 64


class Channels:
    """A `Remote` on a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse, *, protocol: str) -> None:
        self._socket = socket
        self._protocol = protocol
        self._incoming: dict[int, asyncio.Queue[bytes]] = {
            STDIN: asyncio.Queue(_UNREAD),
            RESIZE: asyncio.Queue(_UNREAD),
        }

    async def greet(self, channel: int) -> None:
        """An empty message: clients take it as the sign that the connection stands."""
        await self._send(channel, b"")

    async def stdin(self) -> bytes:
        return await self._incoming[STDIN].get()

    async def resizes(self) -> bytes:
        return await self._incoming[RESIZE].get()

    async def output(self, stream: str, data: bytes) -> None:
        await self._send(_OUTPUTS[stream], data)

    async def status(self, body: bytes) -> None:
        if self._protocol != V1:  # the first version had no word for how a program ended
            await self._send(ERROR, body)

    async def gone(self) -> None:
        """Sort incoming messages until the client leaves."""
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.TEXT:
                data = message.data.encode()
            elif message.type is WSMsgType.BINARY:
                data = bytes(message.data)
            else:
                return
            if data[:1] == bytes([CLOSE]) and self._protocol == V5:
                data = data[1:2]  # an empty piece is the end of its channel
            elif len(data) < 2:
                continue
            queue = self._incoming.get(data[0]) if data else None
            if queue is not None:
                await queue.put(data[1:])

    async def _send(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes([channel]) + data)
