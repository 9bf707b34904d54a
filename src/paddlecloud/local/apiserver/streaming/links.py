"""Taking a connection away from HTTP: as raw bytes after an Upgrade, or as the messages of a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp import WSMsgType, web

LARGEST_MESSAGE = 4 * 1024 * 1024
HEARTBEAT = 30.0


class _Protocol(asyncio.Protocol):
    """Receives what follows the upgrade; notifies the HTTP protocol that it replaced when the connection ends."""

    def __init__(self, former: asyncio.BaseProtocol, link: RawLink) -> None:
        self._former = former
        self._link = link

    def data_received(self, data: bytes) -> None:
        self._link.feed(data)

    def eof_received(self) -> bool:
        self._link.feed(b"")
        return False

    def pause_writing(self) -> None:
        self._link.writable.clear()

    def resume_writing(self) -> None:
        self._link.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._link.feed(b"")
        self._link.lost = True
        self._link.writable.set()
        self._former.connection_lost(error)


class RawLink:
    """The bytes of a connection."""

    HIGH = 1 << 18  # unread bytes above which the sender is made to wait

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._buffer = bytearray()
        self._ended = False
        self._arrived = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.lost = False

    def feed(self, data: bytes) -> None:
        if data:
            self._buffer += data
            if len(self._buffer) > self.HIGH:
                self._transport.pause_reading()
        else:
            self._ended = True
        self._arrived.set()

    async def read(self) -> bytes:
        while not self._buffer:
            if self._ended:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = bytes(self._buffer)
        self._buffer.clear()
        if not self._transport.is_reading() and not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        await self.writable.wait()
        if self.lost or self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._transport.write(data)

    async def close(self) -> None:
        self._transport.close()


class WebSocketLink:
    """Bytes carried in binary messages, cut anywhere."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return b""
            if message.data:
                return bytes(message.data)

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    async def close(self) -> None:
        await self._socket.close()


async def take_over(incoming: web.BaseRequest, *, protocol: str, headers: Mapping[str, str]) -> RawLink:
    """Answer 101 and own the connection from here on."""
    transport = incoming.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    link = RawLink(transport)
    lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {protocol}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    transport.set_protocol(_Protocol(transport.get_protocol(), link))
    return link


async def websocket(incoming: web.BaseRequest, protocol: str, *, answer_pings: bool = True) -> web.WebSocketResponse:
    """Without `answer_pings` the reader receives pings and pongs as messages, and answers."""
    socket = web.WebSocketResponse(
        protocols=(protocol,) if protocol else (),
        max_msg_size=LARGEST_MESSAGE,
        heartbeat=HEARTBEAT,
        autoping=answer_pings,
        compress=False,
    )
    await socket.prepare(incoming)
    return socket
