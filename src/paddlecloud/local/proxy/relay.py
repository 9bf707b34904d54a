"""Carries bytes between two connections until both sides have said all they had to.

When one side closes its half, that half of the other side is closed too, so protocols that answer after the end of the
request work; when one side breaks, both are closed.
"""

from __future__ import annotations

import asyncio
import socket
import struct

CHUNK = 256 * 1024
PATIENCE = 60.0
"""Seconds that a peer has to take the last of what was written to it."""
_AT_ONCE = struct.pack("ii", 1, 0)  # linger for no time: what is left is dropped and the peer gets a reset


async def relay(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Returns when both halves are done; never raises for what the network does."""
    halves = [
        asyncio.ensure_future(_carry(client[0], server[1])),
        asyncio.ensure_future(_carry(server[0], client[1])),
    ]
    try:
        await asyncio.wait(halves, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for half in halves:
            half.cancel()
        results = await asyncio.gather(*halves, return_exceptions=True)
        if any(isinstance(result, BaseException) for result in results):
            for _, writer in (client, server):
                reset(writer)
        await asyncio.gather(hang_up(client[1]), hang_up(server[1]))


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that its peer sees an error: half an answer must not look like a whole one."""
    connection = writer.get_extra_info("socket")
    if connection is not None and not writer.transport.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    writer.transport.abort()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection when its peer has taken what was written, or after a minute: one that takes nothing would keep
    the descriptor for as long as it likes."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), PATIENCE)
    except (OSError, asyncio.TimeoutError):
        pass  # nothing more can be sent to this peer
    finally:
        writer.transport.abort()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK):
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
