"""Bodies of requests on their way to tensors: how much may come, and where it is decoded.

Small bodies are decoded at once. Large ones, and those that are compressed, are decoded in a thread, one at a time, so
that the event loop answers other clients meanwhile. All large bodies together are limited, those of HTTP and gRPC
alike. HTTP bodies count, and have a time limit, while they arrive; gRPC's library hands over whole messages only.
Large answers to HTTP requests have the same limits while their clients read them.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from aiohttp import web

from paddlecloud.kube.server.unread import Unread
from paddlecloud.serving.errors import BadInput, Overloaded, TooLarge, TooSlow, UnknownEncoding

T = TypeVar("T")

SMALL = 64 * 1024
"""Bytes that are decoded sooner than a thread begins."""
TOGETHER = 2
"""Bodies of the largest size that may be under way at the same time."""
BODY_SECONDS = 60.0
ENCODINGS = {"gzip": zlib.MAX_WBITS + 16, "deflate": zlib.MAX_WBITS}
"""Values of Content-Encoding, and what zlib calls them."""
_NOT_COMPRESSED = "the body is not compressed as its Content-Encoding says"


class Intake:
    """`largest` bytes of a body; of JSON a quarter of it, because JSON needs several times its size in memory."""

    def __init__(self, largest: int, *, seconds: float = BODY_SECONDS) -> None:
        self.largest = largest
        self.largest_json = largest // 4
        self._seconds = seconds
        self._held = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decode")
        self._unread = Unread(TOGETHER * largest, seconds)

    @asynccontextmanager
    async def body(self, request: web.Request) -> AsyncIterator[bytes]:
        """The body of a request, which counts as long as the request is under way."""
        pieces: list[bytes] = []
        try:
            try:
                if request.content.is_eof():  # all of it is here already, as small ones usually are
                    self._take(request.content.read_nowait(), pieces, 0)
                else:
                    await asyncio.wait_for(self._read(request, pieces), self._seconds)
            except asyncio.TimeoutError:
                raise TooSlow(f"the body did not arrive within {self._seconds:g} s") from None
            except ConnectionError as error:
                raise BadInput("the body broke off") from error
            except web.RequestPayloadError as error:
                request.content.feed_eof()  # or aiohttp reads on after the answer, and logs a traceback
                request.protocol.close()  # after the answer: aiohttp finds no further request behind such a body
                raise BadInput("the body is not of the form that its Transfer-Encoding says") from error
            encoding = request.headers.get("Content-Encoding", "identity").lower()
            if encoding != "identity":
                await self._decompress(encoding, pieces)
            yield b"".join(pieces)
        finally:
            self._let_go(pieces)

    async def _decompress(self, encoding: str, pieces: list[bytes]) -> None:
        """In the thread, however small it is: a thousand times as much may come of it."""
        if encoding not in ENCODINGS:
            known = " and ".join(ENCODINGS)
            raise UnknownEncoding(f"the body has Content-Encoding {encoding!r}; known are {known}")
        compressed = b"".join(pieces)
        loop = asyncio.get_running_loop()
        plain = await loop.run_in_executor(self._thread, _plain, encoding, compressed, self.largest)
        self._let_go(pieces)
        self._take(plain, pieces, 0)

    async def send(self, request: web.Request, answer: web.Response) -> None:
        """Write an answer. A large one counts until its client has read it; one that is not read is given up."""
        await self._unread.send(request, answer)

    @contextmanager
    def message(self, raw: bytes) -> Iterator[None]:
        """A message that arrived in one piece, which counts as long as its call is under way."""
        pieces: list[bytes] = []
        try:
            self._take(raw, pieces, 0)
            yield
        finally:
            self._let_go(pieces)

    async def _read(self, request: web.Request, pieces: list[bytes]) -> None:
        size = 0
        async for piece in request.content.iter_any():
            size = self._take(piece, pieces, size)

    def _take(self, piece: bytes, pieces: list[bytes], size: int) -> int:
        """The size of the body so far, of which this is one more piece."""
        pieces.append(piece)
        self._held += len(piece)
        size += len(piece)
        if size > self.largest:
            raise TooLarge(f"the body is larger than {self.largest} bytes; the server's --largest-body allows less")
        if size > SMALL and self._held > TOGETHER * self.largest:
            self._let_go(pieces)  # at once: nobody else is refused for what is given up
            raise Overloaded(f"bodies of {TOGETHER * self.largest} bytes are under way already")
        return size

    def _let_go(self, pieces: list[bytes]) -> None:
        self._held -= sum(map(len, pieces))
        pieces.clear()

    async def decode(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """What the function makes of something of that size: here if it is small, otherwise in the thread."""
        if size <= SMALL:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def close(self) -> None:
        self._thread.shutdown(wait=False)


def _plain(encoding: str, compressed: bytes, largest: int) -> bytes:
    """What was compressed, one byte more than `largest` at most. Some clients send `deflate` without zlib's header."""
    bare = encoding == "deflate" and compressed[:1] and compressed[0] & 15 != zlib.DEFLATED
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS if bare else ENCODINGS[encoding])
    try:
        plain = decompressor.decompress(compressed, largest + 1)
    except zlib.error as error:
        raise BadInput(_NOT_COMPRESSED) from error
    if not decompressor.eof and len(plain) <= largest:
        raise BadInput(_NOT_COMPRESSED)
    return plain
