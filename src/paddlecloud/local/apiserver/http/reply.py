"""Answers on their way to the network: finished ones in one piece, so that they are one TLS record if they are small,
and streams in chunks, each written at once.

aiohttp's own response class builds a header dictionary, fills in defaults and writes in parts; that costs as much as
everything the API server itself does for a get, and again for every event of a watch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from http import HTTPStatus

from aiohttp import HttpVersion11, web

from paddlecloud.kube.server.unread import Unread
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.apiserver.http.request import Response

ONE_PIECE = 64 * 1024  # bodies up to here are copied behind their head
LONG_PIECE = 1024 * 1024  # of longer bodies this much is written at once

WITHOUT_BODY = (204, 304)
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Written(web.StreamResponse):
    """For the HTTP server, which wants a response object: this one has been written already, or never will be."""

    def __init__(self, *, status: int = 200, keep_alive: bool) -> None:
        super().__init__(status=status)
        self._keeps = keep_alive

    @property
    def keep_alive(self) -> bool | None:
        return self._keeps

    async def prepare(self, request: web.BaseRequest) -> None:
        """Nothing is left to say."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write."""


class Reply(Written):
    """A finished answer that writes itself."""

    def __init__(self, answer: Response, unread: Unread) -> None:
        super().__init__(status=answer.status, keep_alive=True)
        self._answer = answer
        self._unread = unread

    async def prepare(self, request: web.BaseRequest) -> None:
        """Everything is written here, at once."""
        answer, transport = self._answer, request.transport
        self._answer = _SENT  # the connection keeps this object until the next request
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._keeps = request.keep_alive
        head = head_of(answer, length=len(answer.body), close=not self._keeps)
        body = b"" if request.method == "HEAD" else answer.body
        if len(body) <= ONE_PIECE:
            transport.write(head + body)
            await request.writer.drain()
            return
        with self._unread.answer(transport, len(body)):
            transport.write(head)
            await _write_long(request, transport, memoryview(body))


async def _write_long(request: web.BaseRequest, transport: asyncio.WriteTransport, body: memoryview) -> None:
    """No faster than the client reads, and others are served in between: encrypting takes its time."""
    slice_ = TimeSlice()
    for start in range(0, len(body), LONG_PIECE):
        if transport.is_closing():
            raise ConnectionResetError("the client is gone")
        transport.write(body[start : start + LONG_PIECE])
        await request.writer.drain()
        await slice_.checkpoint()


async def stream(incoming: web.BaseRequest, answer: Response, frames: AsyncIterator[bytes]) -> web.StreamResponse:
    """Write frames as they come. HTTP/1.0 has no chunks: there the end of the connection is the end of the stream."""
    chunked = incoming.version >= HttpVersion11
    transport, drain = incoming.transport, incoming.writer.drain
    keep = False
    try:
        if transport is None:
            raise ConnectionResetError("the client is gone")
        transport.write(head_of(answer, length=None, chunked=chunked, close=not (chunked and incoming.keep_alive)))
        if incoming.method != "HEAD":
            async for frame in frames:
                if transport.is_closing():
                    raise ConnectionResetError("the client is gone")
                if frame:
                    transport.write(b"%x\r\n%b\r\n" % (len(frame), frame) if chunked else frame)
                    await drain()
            if chunked:
                transport.write(b"0\r\n\r\n")
        keep = chunked and incoming.keep_alive
    except ConnectionError:
        pass  # the client went away; that is how watches end
    finally:
        close = getattr(frames, "aclose", None)
        if close is not None:
            await close()
    return Written(keep_alive=keep)


def head_of(answer: Response, *, length: int | None, chunked: bool = False, close: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}",
        f"Date: {_date(int(time.time()))}",
    ]
    if answer.content_type:
        lines.append(f"Content-Type: {answer.content_type}")
    if length is not None and answer.status not in WITHOUT_BODY:
        lines.append(f"Content-Length: {length}")
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    for name, value in answer.headers.items():
        if "\r" in value or "\n" in value:
            raise ValueError(f"a line break in the header {name}")
        lines.append(f"{name}: {value}")
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


_SENT = Response()
_last_date = (0, "")


def _date(second: int) -> str:
    """Formatted once a second."""
    global _last_date
    if _last_date[0] != second:
        _last_date = (second, formatdate(second, usegmt=True))
    return _last_date[1]
