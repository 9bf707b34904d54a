"""exec and attach over a WebSocket: the first byte of every message names its channel.

    0 stdin · 1 stdout · 2 stderr · 3 error (the final Status) · 4 terminal size

Version 5 of the protocol adds channel 255, by which one side closes another channel: how stdin ends without the
connection. Older versions cannot say it.
"""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType, web

from paddlecloud.local.apiserver.streaming.backlog import Backlog, Inbox

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
PROTOCOLS = (V5, V4, V1)
"""Best first."""

_OUTPUTS = {"stdout": STDOUT, "stderr": STDERR}
_ROUND_TRIPS = 2
_PATIENCE = 5.0
"""Seconds to wait for the answers to pings. RFC 6455 demands them; output must not depend on them for ever."""


class Channels:
    """A `Remote` on a WebSocket that leaves pings and pongs to its reader.

    Output waits until the client has answered pings or sent something. kubectl up to 1.32 (client-go's
    `remotecommand/websocket.go`) begins to read before it has made its streams, and discards what comes for them until
    then: "Unknown stream id 1, discarding message". On a busy machine a short output was lost like that. A client that
    answers a ping reads; while it answers the next, it makes its streams.
    """

    def __init__(self, socket: web.WebSocketResponse, *, protocol: str, first: int) -> None:
        """`first` is the channel of the empty message that clients take as the sign that the connection stands."""
        self._socket = socket
        self._protocol = protocol
        self._first = first
        backlog = Backlog()
        self._incoming = {STDIN: Inbox(backlog), RESIZE: Inbox(backlog)}
        self._pongs = 0
        self._client_is_ready = asyncio.Event()

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
        await self._socket.ping()
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.PING:
                await self._socket.pong(message.data)
            elif message.type is WSMsgType.PONG:
                self._pongs += 1
                if self._pongs < _ROUND_TRIPS:
                    await self._socket.ping()
                else:
                    await self._begin()
            elif message.type is WSMsgType.TEXT:
                await self._sort(message.data.encode())
            elif message.type is WSMsgType.BINARY:
                await self._sort(bytes(message.data))
            else:
                return

    async def _sort(self, data: bytes) -> None:
        await self._begin()
        if data[:1] == bytes([CLOSE]) and self._protocol == V5:
            data = data[1:2]  # an empty piece is the end of its channel
        elif len(data) < 2:
            return
        inbox = self._incoming.get(data[0]) if data else None
        if inbox is not None:
            await inbox.put(data[1:])

    async def _begin(self) -> None:
        if not self._client_is_ready.is_set():
            self._client_is_ready.set()
            await self._socket.send_bytes(bytes([self._first]))

    async def _send(self, channel: int, data: bytes) -> None:
        if not self._client_is_ready.is_set():
            try:
                await asyncio.wait_for(self._client_is_ready.wait(), _PATIENCE)
            except asyncio.TimeoutError:
                await self._begin()
        await self._socket.send_bytes(bytes([channel]) + data)
