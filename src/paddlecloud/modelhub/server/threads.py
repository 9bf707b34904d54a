"""Between the event loop and stores, whose calls block: reading, hashing and writing happen in threads of their own.

A download holds a thread for the time of one piece, so that slow clients hold none. An upload holds one for its whole
body, as the store asks for piece after piece; the piece must come in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiohttp import ClientError, StreamReader
from aiohttp.web_protocol import RequestPayloadError

from paddlecloud.modelhub.server.replies import Answered
from paddlecloud.modelhub.server.slots import HeldSlot

R = TypeVar("R")
PIECE = 1 << 20
PIECE_SECONDS = 60.0
"""For a mebibyte from the client, or to it."""
READERS, WRITERS = 8, 8

_END = object()


class Threads:
    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="hub-read")
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="hub-write")

    async def read(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def write(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def pieces(self, source: Iterator[Any]) -> AsyncIterator[Any]:
        while (piece := await self.read(lambda: next(source, _END))) is not _END:
            yield piece

    def close(self) -> None:
        for pool in (self._readers, self._writers):
            pool.shutdown(wait=False, cancel_futures=True)


def body_pieces(content: StreamReader, slot: HeldSlot) -> Iterator[bytes]:
    """The body of a request, for a writing thread. Called in the event loop, iterated in the thread."""
    loop = asyncio.get_running_loop()

    def pieces() -> Iterator[bytes]:
        while piece := asyncio.run_coroutine_threadsafe(_next_piece(content, slot), loop).result(2 * PIECE_SECONDS):
            yield piece

    return pieces()


async def _next_piece(content: StreamReader, slot: HeldSlot) -> bytes:
    try:
        with slot.of_client():
            return await asyncio.wait_for(_read_piece(content, slot), PIECE_SECONDS)
    except asyncio.TimeoutError as error:
        raise Answered(408, "Timeout", f"the body did not come: less than a piece in {PIECE_SECONDS:g} s") from error
    except (OSError, ClientError, RequestPayloadError) as error:  # nobody reads the answer
        raise Answered(400, "Invalid", "the connection ended before the body did") from error


async def _read_piece(content: StreamReader, slot: HeldSlot) -> bytes:
    found = bytearray()
    while len(found) < PIECE and (chunk := await content.readany()):
        found += chunk
        slot.moved(len(chunk))
    return bytes(found)
