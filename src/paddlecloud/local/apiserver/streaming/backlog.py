"""What the client of a session sent and nobody has read yet. While it is too much, no more is read from the connection
and TCP stops the sender: a program that reads nothing must not fill the memory of the API server.
"""

from __future__ import annotations

import asyncio
from collections import deque

MOST = 1024 * 1024
"""Bytes of one connection, whatever number of channels it has; the message that goes beyond it is kept as well."""
_PIECE = 64
"""Bytes that a message takes beside its content: a million messages of one byte are no megabyte."""


class Backlog:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held = 0
        self._room = asyncio.Event()

    async def room(self) -> None:
        """Returns when there is room for another message."""
        while self._held >= self._most:
            self._room.clear()
            await self._room.wait()

    def add(self, message: bytes) -> None:
        self._held += len(message) + _PIECE

    def remove(self, message: bytes) -> None:
        self._held -= len(message) + _PIECE
        self._room.set()


class Inbox:
    """The messages of one channel, in order."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._messages: deque[bytes] = deque()
        self._arrived = asyncio.Event()

    async def put(self, message: bytes) -> None:
        await self._backlog.room()
        self._backlog.add(message)
        self._messages.append(message)
        self._arrived.set()

    async def get(self) -> bytes:
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._backlog.remove(message)
        return message
