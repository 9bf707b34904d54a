"""Limits of what a server carries out at the same time: requests of each caller, and the memory for all bodies.

A caller is a token: nothing else is known of it before the Kubernetes API has judged it. Then its tenant is known: who
may ask for tokens of a ServiceAccount may have any number of them, and all those of a namespace share its limit.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec

PER_CALLER = 4
"""Requests of one caller that are read and carried out at the same time; its others wait, unread."""
MOST_WAITING = 64
"""Of one caller; more are refused. Each holds a connection, and those with a request make no room for others."""
BODY_MEMORY = 128 * 1024 * 1024
"""Bytes of all bodies that are read, or whose requests are carried out."""


class CallerLimitReached(Exception):
    """Of one caller. The text is for it."""


class NoRoom(Exception):
    """There is no memory for a body at this moment. The text is for the caller."""


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


class CallerLimits:
    def __init__(self, per_caller: int = PER_CALLER) -> None:
        self._per_caller = per_caller
        self._callers: dict[bytes, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def slot(self, name: str) -> AsyncIterator[None]:
        caller = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
        slots, users = self._callers.get(caller) or (asyncio.Semaphore(self._per_caller), 0)
        if users >= self._per_caller + MOST_WAITING:
            raise CallerLimitReached(f"{users} requests of yours have not been answered yet; wait for some of them")
        self._callers[caller] = (slots, users + 1)
        try:
            async with slots:
                yield
        finally:
            slots, users = self._callers[caller]
            if users == 1:
                del self._callers[caller]
            else:
                self._callers[caller] = (slots, users - 1)


class BodyReservation:
    """What the body of one request holds of the memory."""

    def __init__(self, memory: BodyMemory, tenant: str) -> None:
        self._memory, self._tenant = memory, tenant
        self._held = 0

    def grow(self, size: int) -> None:
        if size > self._memory.left_for(self._tenant):
            raise NoRoom("the server has no room for more bodies at this moment; try again")
        self._memory.hold(self._tenant, size)
        self._held += size

    def release(self) -> None:
        self._memory.hold(self._tenant, -self._held)
        self._held = 0


class BodyMemory:
    """One tenant has half of it: otherwise a few large bodies that come slowly would have all others refused."""

    def __init__(self, size: int = BODY_MEMORY) -> None:
        self.left = size
        self._share = size // 2
        self._held: dict[str, int] = {}

    def left_for(self, tenant: str) -> int:
        return min(self.left, self._share - self._held.get(tenant, 0))

    def hold(self, tenant: str, size: int) -> None:
        """Less, where the size is negative."""
        self.left -= size
        now = self._held.pop(tenant, 0) + size
        if now:
            self._held[tenant] = now

    @contextmanager
    def reservation(self, tenant: str) -> Iterator[BodyReservation]:
        held = BodyReservation(self, tenant)
        try:
            yield held
        finally:
            held.release()
