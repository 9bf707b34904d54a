"""port-forward: connections to ports of a pod, carried over the client's one connection to the API server.

Over SPDY (and SPDY inside a WebSocket) every forwarded connection is a pair of streams, data and error, that share a
`requestid`. The older WebSocket form names its ports in the query and gives each a pair of channels.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiohttp import WSMsgType, web

from paddlecloud.kube.errors import ApiError
from paddlecloud.local.apiserver.streaming.backlog import Backlog, Inbox
from paddlecloud.local.apiserver.streaming.remote_command import settle
from paddlecloud.local.apiserver.streaming.spdy import ProtocolError
from paddlecloud.local.apiserver.streaming.spdy_connection import MAX_STREAMS, Connection, Link, Stream

SPDY_PROTOCOL = "portforward.k8s.io"
TUNNEL_PROTOCOL = "SPDY/3.1+portforward.k8s.io"
CHANNEL_PROTOCOLS = ("v4.channel.k8s.io", "portforward.k8s.io", "channel.k8s.io")
READ = 64 * 1024
PAIRING = 30.0  # seconds between the two streams of a pair
MOST_CHANNELS = 128  # ports of a WebSocket: each has two channels, and the first byte of a message names one

Dial = Callable[[int], AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""A connection to a port of the pod, closed with the context; raises ApiError when there is none."""


class Forwarder:
    """All forwarded connections of one SPDY connection."""

    def __init__(self, link: Link, dial: Dial) -> None:
        self._dial = dial
        self._connection = Connection(link, self._opened)
        self._waiting: dict[str, dict[str, Stream]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client leaves; what is still open then is cut."""
        try:
            await self._connection.run()
        except (ConnectionError, ProtocolError):
            pass  # a client that breaks off or breaks the rules is served no further: closing is the answer
        finally:
            await settle(list(self._tasks))
            await self._connection.close()

    def _opened(self, stream: Stream) -> None:
        request, role = _request_of(stream), _role_of(stream)
        if role not in ("data", "error") or len(self._waiting) >= MAX_STREAMS:
            raise ProtocolError("a stream without a pair")  # also one that was reset waits for the other
        pair = self._waiting.setdefault(request, {})
        pair[role] = stream
        if {"data", "error"} <= pair.keys():
            del self._waiting[request]
            self._spawn(self._forward(pair["data"], pair["error"]))
        elif len(self._waiting) == 1:
            self._spawn(self._forget_unpaired())

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget_unpaired(self) -> None:
        while self._waiting:
            known = dict(self._waiting)
            await asyncio.sleep(PAIRING)
            for request, pair in known.items():
                if self._waiting.get(request) is pair:
                    del self._waiting[request]
                    for stream in pair.values():
                        await stream.finish()

    async def _forward(self, data: Stream, error: Stream) -> None:
        try:
            async with self._dial(port_number(data.headers.get("port", ""))) as (reader, writer):
                await join(reader, writer, data.read, data.write, data.finish)
        except ApiError as refusal:
            await error.write(refusal.message.encode())
            await data.finish()
        await error.finish()


def _role_of(stream: Stream) -> str:
    return stream.headers.get("streamtype", "").lower()


def _request_of(stream: Stream) -> str:
    """What the two streams of a pair share. Clients older than `requestid` open the error stream, then the data."""
    named = stream.headers.get("requestid")
    return named if named is not None else str(stream.number - 2 if _role_of(stream) == "data" else stream.number)


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 1 << 16):
        raise ApiError(f'"{text[:20]}" is no port', code=400, reason="BadRequest")
    return int(text)


async def join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], Awaitable[None]],
    finish: Callable[[], Awaitable[None]],
) -> None:
    """Carry bytes both ways until the pod's side has ended, or either broke off. Then the connection to the pod is cut:
    a pod that does not read would keep it open for what is left."""

    async def inward() -> bool:
        """Whether the client ended in order: then the pod may still have something to say."""
        try:
            while data := await receive():
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except ConnectionError:
            return False
        return True

    async def outward() -> bool:
        """Whether the pod ended in order: then it may still read."""
        try:
            while data := await reader.read(READ):
                await send(data)
            await finish()
        except ConnectionError:
            return False  # no client is left
        return True

    inbound, outbound = asyncio.ensure_future(inward()), asyncio.ensure_future(outward())
    in_order = False
    try:
        await asyncio.wait((inbound, outbound), return_when=asyncio.FIRST_COMPLETED)
        if not outbound.done() and inbound.result():
            await asyncio.wait((outbound,))
        in_order = outbound.done() and outbound.result()
    finally:
        await settle([inbound, outbound])
        if not in_order:
            writer.transport.abort()


async def forward_channels(socket: web.WebSocketResponse, ports: Sequence[int], dial: Dial) -> None:
    """The WebSocket form: channels 2n (data) and 2n+1 (error) of the n-th port, each begun with the port's number."""
    backlog = Backlog()
    inboxes: dict[int, Inbox] = {}
    tasks: list[asyncio.Future[Any]] = []
    try:
        for index, port in enumerate(ports):
            for channel in (2 * index, 2 * index + 1):
                await socket.send_bytes(bytes([channel]) + struct.pack("<H", port))
            inboxes[2 * index] = Inbox(backlog)
            tasks.append(asyncio.ensure_future(_one_channel(socket, 2 * index, port, dial, inboxes[2 * index])))
        while True:
            message = await socket.receive()
            if message.type is not WSMsgType.BINARY:
                return
            inbox = inboxes.get(message.data[0]) if message.data else None
            if inbox is not None and len(message.data) > 1:
                await inbox.put(bytes(message.data[1:]))
    finally:
        await settle(tasks)


async def _one_channel(socket: web.WebSocketResponse, channel: int, port: int, dial: Dial, inbox: Inbox) -> None:
    async def send(data: bytes) -> None:
        await socket.send_bytes(bytes([channel]) + data)

    async def finish() -> None:
        await socket.close()

    try:
        async with dial(port) as (reader, writer):
            await join(reader, writer, inbox.get, send, finish)
    except ApiError as refusal:
        await socket.send_bytes(bytes([channel + 1]) + refusal.message.encode())
