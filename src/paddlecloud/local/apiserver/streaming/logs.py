"""pods/log: the options of `kubectl logs`, and a stream of text that could still be refused when it began."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from paddlecloud.kube import errors
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.local.apiserver.http.request import Request
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid

BASE64_LOG = "base64.binary.k8s.io"
LOG_PROTOCOLS = ("", "binary.k8s.io", BASE64_LOG)
"""Of a log over a WebSocket (NewDefaultReaderProtocols in k8s.io/streaming, wsstream)."""

_NUMBER = re.compile(r"-?[0-9]{1,15}", re.ASCII)
AT_ONCE = 0.05  # seconds in which a log that cannot be read says so


def log_options(request: Request, pod: str) -> dict[str, Any]:
    """The options of `kubectl logs`, validated as by ValidatePodLogOptions (pkg/apis/core/v1/validation)."""
    found: list[Cause] = []
    numbers = {}
    for name, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
        value = request.query.get(name, "")
        if value and not _NUMBER.fullmatch(value):
            raise errors.BadRequest(f'query parameter {name}: expected a whole number, got "{value[:40]}"')
        numbers[name] = int(value) if value else None
        if value and int(value) < least:
            found.append(invalid(name, int(value), f"must be greater than or equal to {least}"))
    since = request.query.get("sinceTime") or None
    if since and numbers["sinceSeconds"] is not None:
        found.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if since:
        try:
            parse_rfc3339(since)
        except ValueError:
            raise errors.BadRequest(f'query parameter sinceTime: "{since}" is not a time of RFC 3339') from None
    stream = request.query.get("stream") or "All"
    if stream not in ("All", "Stdout", "Stderr"):
        found.append(invalid("stream", stream, "must be one of All, Stdout, Stderr"))
    if found:
        raise errors.invalid("PodLogOptions", pod, found)
    return {
        "follow": request.flag("follow"),
        "previous": request.flag("previous"),
        "timestamps": request.flag("timestamps"),
        "tail": numbers["tailLines"],
        "limit_bytes": numbers["limitBytes"],
        "since_seconds": numbers["sinceSeconds"],
        "since_time": since,
        "stream": stream,
    }


async def begun(chunks: AsyncIterator[bytes]) -> Begun:
    """The same stream, after it had the chance to refuse: later there is no way left to report an error."""
    first = asyncio.ensure_future(anext(chunks, None))
    try:
        await asyncio.wait((first,), timeout=AT_ONCE)
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        raise
    return Begun(first, chunks)


class Begun:
    """A stream of which a first piece is awaited. No generator: `aclose` ends it also if nobody has read of it."""

    def __init__(self, first: asyncio.Future[bytes | None], chunks: AsyncIterator[bytes]) -> None:
        self._first = first
        self._chunks = chunks
        self._read = 0

    def __aiter__(self) -> Begun:
        return self

    async def __anext__(self) -> bytes:
        self._read += 1
        if self._read == 1:
            return b""  # the headers go out now
        data = await (self._first if self._read == 2 else anext(self._chunks, None))
        if data is None:
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        self._first.cancel()
        await asyncio.gather(self._first, return_exceptions=True)
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


async def send_all(socket: web.WebSocketResponse, stream: AsyncIterator[bytes], *, as_text: bool) -> None:
    """One message for each piece of the log; the log's end closes the socket, and so does a client that leaves."""
    left = asyncio.ensure_future(_until_left(socket))
    sending = asyncio.ensure_future(_send_each(socket, stream, as_text=as_text))
    try:
        await asyncio.wait((left, sending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (left, sending):
            task.cancel()
        await asyncio.gather(left, sending, return_exceptions=True)
        await socket.close()


async def _until_left(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass  # a reader has nothing to say


async def _send_each(socket: web.WebSocketResponse, stream: AsyncIterator[bytes], *, as_text: bool) -> None:
    async for data in stream:
        if as_text and data:
            await socket.send_str(base64.b64encode(data).decode("ascii"))
        elif data:
            await socket.send_bytes(data)
