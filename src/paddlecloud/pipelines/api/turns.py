"""How much callers get at the same time: turns for each of them, and one room for the bodies of all.

A caller is a token: nothing else is known of it before the Kubernetes API has judged it. Then its tenant is known: who
may ask for tokens of a ServiceAccount may have any number of them, and all those of a namespace share its turns.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec

from paddlecloud.pipelines.api.replies import Refused

EACH = 4
"""Requests of one caller that are read and carried out at the same time; its others wait, unread."""
ROOM = 128 * 1024 * 1024
"""Bytes of all bodies that are read, or whose requests are carried out."""


def tenant_of(token: str) -> str:
    """The namespace of the ServiceAccount that a token is of, or the token itself. Only for one that was accepted:
    what it says of itself is not verified here."""
    try:
        _, claims, _ = token.split(".")
        subject = msgspec.json.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
        parts = subject.split(":")
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return f"token {token}"
    is_account = parts[:2] == ["system", "serviceaccount"] and len(parts) == 4
    return f"namespace {parts[2]}" if is_account else f"user {subject}"


class Turns:
    def __init__(self) -> None:
        self._callers: dict[bytes, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        caller = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
        turns, users = self._callers.get(caller) or (asyncio.Semaphore(EACH), 0)
        self._callers[caller] = (turns, users + 1)
        try:
            async with turns:
                yield
        finally:
            turns, users = self._callers[caller]
            if users == 1:
                del self._callers[caller]
            else:
                self._callers[caller] = (turns, users - 1)


class Share:
    """What one request holds of the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._held = 0

    def take(self, size: int) -> None:
        if size > self._room.left:
            raise Refused(503, "the server has no room for more bodies at this moment; try again")
        self._room.left -= size
        self._held += size

    def give_back(self) -> None:
        self._room.left += self._held
        self._held = 0


class Room:
    def __init__(self, size: int = ROOM) -> None:
        self.left = size

    @contextmanager
    def share(self) -> Iterator[Share]:
        share = Share(self)
        try:
            yield share
        finally:
            share.give_back()
