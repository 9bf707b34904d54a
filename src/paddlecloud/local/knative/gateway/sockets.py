"""The sockets of the gateway: ports shared by all its processes, one path to the control plane."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

HOST = "127.0.0.1"
BACKLOG = 4096
LIMIT = 64 * 1024 * 1024
"""Bytes of one message between control plane and gateway."""


def listening(port: int) -> socket.socket:
    """A socket of this process's own on the port that all of them share; the kernel deals out the connections."""
    sock = reserved(port)
    sock.listen(BACKLOG)
    sock.setblocking(False)
    return sock


def reserved(port: int) -> socket.socket:
    """Holds the port (any free one for 0) without taking connections.

    SO_REUSEPORT lets processes of the same user bind it beside this one, also while old connections are in TIME_WAIT.
    SO_REUSEADDR would let every user take a port on which nobody listens.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        raise
    return sock


async def connect_unix(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        return await asyncio.open_unix_connection(short, limit=LIMIT)
    finally:
        os.close(folder)


async def serve_unix(
    path: Path, handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> asyncio.AbstractServer:
    """Through the folder's descriptor, for paths that are longer than a socket's may be."""
    return await asyncio.start_unix_server(handle, sock=_bound(path), limit=LIMIT)


def _bound(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)  # of a predecessor
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
    finally:
        os.close(folder)
    return sock
