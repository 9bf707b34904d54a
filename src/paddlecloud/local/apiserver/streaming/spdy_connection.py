"""Streams over one SPDY connection, seen from the server: the client opens them, both sides read and write.

Kubernetes' own implementation knows no flow control windows, so none are kept here: a stream nobody reads stops the
reading of the connection, and TCP stops the sender.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from paddlecloud.local.apiserver.streaming import spdy
from paddlecloud.local.apiserver.streaming.backlog import Backlog

LARGEST = 64 * 1024  # bytes in one data frame that we send
MAX_STREAMS = 1024
_REFUSED, _PROTOCOL_ERROR = 3, 1


class Link(Protocol):
    """A duplex of bytes: a taken-over connection, or the messages of a WebSocket."""

    async def read(self) -> bytes:
        """Whatever came; empty at the end."""

    async def write(self, data: bytes) -> None:
        """Raises ConnectionError when the other side is gone."""

    async def close(self) -> None: ...


class Stream:
    def __init__(self, connection: Connection, number: int, headers: Mapping[str, str], unread: Backlog) -> None:
        self._connection = connection
        self._unread = unread
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._ended = False  # by the client
        self._finished = False  # by us
        self._broken = False
        self.number = number
        self.headers = headers

    async def read(self) -> bytes:
        """The next piece; empty when the other side has finished. Raises ConnectionError when it broke off."""
        while not self._chunks:
            if self._broken:
                raise ConnectionResetError("the stream was reset")
            if self._ended:
                return b""
            self._changed.clear()
            await self._changed.wait()
        chunk = self._chunks.popleft()
        self._unread.remove(chunk)
        return chunk

    async def write(self, data: bytes) -> None:
        if self._finished:
            raise ConnectionResetError("the stream is closed")
        for start in range(0, len(data), LARGEST):
            await self._connection.send(spdy.data_frame(self.number, data[start : start + LARGEST]))

    async def finish(self) -> None:
        """Nothing more will be written."""
        if not self._finished:
            self._finished = True
            await self._connection.send(spdy.data_frame(self.number, b"", fin=True))
            self._connection.settle(self)

    @property
    def closed(self) -> bool:
        return self._ended and self._finished

    def feed(self, data: bytes, *, fin: bool) -> None:
        if data and not self._ended:
            self._chunks.append(data)
            self._unread.add(data)
        self._ended = self._ended or fin
        self._changed.set()

    def abort(self) -> None:
        self._broken = self._finished = True
        while self._chunks:
            self._unread.remove(self._chunks.popleft())
        self.feed(b"", fin=True)


class Connection:
    """`run` reads until the end; every stream that the client opens is answered and handed to `opened`."""

    def __init__(self, link: Link, opened: Callable[[Stream], None]) -> None:
        self._link = link
        self._opened = opened
        self._streams: dict[int, Stream] = {}
        self._decoder = spdy.Decoder()
        self._encoder = spdy.Encoder()
        self._unread = Backlog()
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Returns when the client has gone away, by its word or without. Raises `spdy.ProtocolError`."""
        try:
            while data := await self._link.read():
                for frame in self._decoder.feed(data):
                    if frame.kind == spdy.GOAWAY:
                        return
                    await self._take(frame)
        finally:
            for stream in self._streams.values():
                stream.abort()
            self._streams.clear()

    async def send(self, data: bytes) -> None:
        async with self._sending:
            await self._link.write(data)

    async def close(self) -> None:
        try:
            await self.send(spdy.go_away(max(self._streams, default=0)))
        except ConnectionError:
            pass  # it has gone already, which is what was to be said
        await self._link.close()

    def settle(self, stream: Stream) -> None:
        """Forget a stream that both sides have finished."""
        if stream.closed:
            self._streams.pop(stream.number, None)

    async def _take(self, frame: spdy.Frame) -> None:
        if frame.kind is None:
            await self._take_data(frame)
        elif frame.kind == spdy.SYN_STREAM:
            await self._open(frame)
        elif frame.kind == spdy.PING and frame.value % 2:  # even ones are answers to pings of ours
            await self.send(spdy.ping(frame.value))
        elif frame.kind == spdy.RST_STREAM and frame.stream in self._streams:
            self._streams.pop(frame.stream).abort()

    async def _take_data(self, frame: spdy.Frame) -> None:
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # it was reset meanwhile
        await self._unread.room()
        stream.feed(frame.data, fin=frame.fin)
        self.settle(stream)

    async def _open(self, frame: spdy.Frame) -> None:
        number = frame.stream
        if number % 2 == 0 or number in self._streams:
            await self.send(spdy.reset(number, _PROTOCOL_ERROR))
            return
        if len(self._streams) >= MAX_STREAMS:
            await self.send(spdy.reset(number, _REFUSED))
            return
        stream = Stream(self, number, frame.headers or {}, self._unread)
        self._streams[number] = stream
        # Header blocks build on each other: only this task, which reads the connection, ever encodes one.
        await self.send(self._encoder.syn_reply(number))
        if frame.fin:
            stream.feed(b"", fin=True)
        self._opened(stream)
