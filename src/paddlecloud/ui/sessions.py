"""Who looks: one-time codes, the cookie that a code is exchanged for, and the credentials behind it.

Credentials stay in this process. A browser gets a random cookie that means something here alone, and an address names
a code for a moment: it opens one session, once. A code that is not used in time opens none.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter, OrderedDict
from typing import Generic, NamedTuple, TypeVar

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.config import Config
from paddlecloud.ui.rights import Rights

CODE_SECONDS = 600.0
IDLE_SECONDS = 12 * 3600.0
MOST, MOST_OF_TENANT = 500, 50
"""Sessions, and codes. Of more the oldest of that tenant go: nobody signs out others by signing in again and again."""

T = TypeVar("T")


class Identity(NamedTuple):
    """A user of the API server: who it is, and how requests prove it."""

    user: str
    config: Config
    client: Client
    flags: tuple[str, ...] = ()
    """By which `pdc` finds these credentials in a kubeconfig; where there are none, it gets one made of `config`."""

    @property
    def tenant(self) -> str:
        """All accounts of a namespace are one: who may make one may make any number of them."""
        return self.user.rpartition(":")[0] if self.user.startswith("system:serviceaccount:") else self.user


class ViewerSession:
    def __init__(self, identity: Identity, rights: Rights, now: float) -> None:
        self.identity = identity
        self.rights = rights
        self.secret = secrets.token_urlsafe(32)
        """Of forms: a page of another site does not know it."""
        self.used = now
        self.ended = asyncio.Event()
        """Its streams of events end with it."""

    def knows(self, secret: str) -> bool:
        return hmac.compare_digest(self.secret.encode(), secret.encode())


class Kept(Generic[T]):
    """The newest values of every tenant, by a key."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, tuple[str, T]] = OrderedDict()

    def get(self, key: bytes) -> T | None:
        found = self._found.get(key)
        return found[1] if found else None

    def pop(self, key: bytes) -> T | None:
        found = self._found.pop(key, None)
        return found[1] if found else None

    def renew(self, key: bytes) -> None:
        self._found.move_to_end(key)

    def put(self, key: bytes, tenant: str, value: T) -> T | None:
        """The value that had to go for it."""
        self._found[key] = tenant, value
        counts = Counter(tenant for tenant, _ in self._found.values())
        if counts[tenant] > MOST_OF_TENANT:
            crowded = tenant
        elif len(self._found) > MOST:
            crowded = counts.most_common(1)[0][0]
        else:
            return None
        return self.pop(next(key for key, (whose, _) in self._found.items() if whose == crowded))


class Sessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: Kept[tuple[float, Identity]] = Kept()
        self._sessions: Kept[ViewerSession] = Kept()

    def new_code(self, identity: Identity) -> str:
        code = secrets.token_urlsafe(24)
        self.accept_code(code, identity)
        return code

    def accept_code(self, code: str, identity: Identity) -> None:
        self._codes.put(_digest(code), identity.tenant, (self._clock.monotonic() + CODE_SECONDS, identity))

    def holder(self, code: str) -> Identity | None:
        """Whom it would sign in, if it was not used."""
        found = self._codes.get(_digest(code))
        return found[1] if found is not None else None

    def redeem(self, code: str) -> str | None:
        """The cookie of a new session; None for a code that was used, is too old or was never given."""
        found = self._codes.pop(_digest(code))
        if found is None or found[0] <= self._clock.monotonic():
            return None
        return self.open(found[1])

    def open(self, identity: Identity, cookie: str = "") -> str:
        cookie = cookie or secrets.token_urlsafe(32)
        made = ViewerSession(identity, Rights(identity.client, self._clock), self._clock.monotonic())
        gone = self._sessions.put(_digest(cookie), identity.tenant, made)
        if gone is not None:
            gone.ended.set()
        return cookie

    def find(self, cookie: str) -> ViewerSession | None:
        which = _digest(cookie)
        found = self._sessions.get(which)
        if found is None:
            return None
        if found.used + IDLE_SECONDS <= self._clock.monotonic():
            self.close(cookie)
            return None
        found.used = self._clock.monotonic()
        self._sessions.renew(which)
        return found

    def close(self, cookie: str) -> None:
        found = self._sessions.pop(_digest(cookie))
        if found is not None:
            found.ended.set()


def _digest(text: str) -> bytes:
    """Looked up by digest, so that the time of a comparison says nothing of a secret."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
