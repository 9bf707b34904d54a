"""Large answers that clients have yet to read: each has its time, and all together have a share of the memory.

Otherwise a client that is allowed large answers could fill the memory of a server: it sends a request, does not read
the answer, and does the same on the next connection. kube-apiserver ends a request after a minute, too
(`--request-timeout`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

READ_TIMEOUT = 60.0
SMALL = 64 * 1024
"""Answers that connections hold anyway: they are not counted."""


class Unread:
    """Of more than `most` bytes those answers are cut off that began first; a single one may be larger than that."""

    def __init__(self, most: int, seconds: float = READ_TIMEOUT) -> None:
        self._most = most
        self._seconds = seconds
        self._sizes: dict[asyncio.WriteTransport, int] = {}  # in the order in which they began

    @contextmanager
    def answer(self, transport: asyncio.WriteTransport, size: int) -> Iterator[None]:
        """While an answer of that size is written. One that is cut off ends as if its client had gone."""
        self._sizes[transport] = size
        timer = asyncio.get_running_loop().call_later(self._seconds, transport.abort)
        try:
            while sum(self._sizes.values()) > self._most and len(self._sizes) > 1:
                oldest = next(iter(self._sizes))
                del self._sizes[oldest]
                oldest.abort()
            yield
        finally:
            timer.cancel()
            self._sizes.pop(transport, None)

    async def send(self, request: web.Request, answer: web.StreamResponse) -> None:
        """Write an answer that is in memory as a whole, if it is large; aiohttp writes the others when it gets them."""
        body = answer.body if isinstance(answer, web.Response) else None
        if isinstance(body, bytes) and len(body) > SMALL and request.transport is not None:
            with self.answer(request.transport, len(body)):
                await answer.prepare(request)
                await answer.write_eof()
