"""Who looks: one-time codes, the cookie that a code is exchanged for, and the credentials behind it.

Credentials stay in this process. A browser gets a random cookie that means something here alone, and an address names
a code for a moment: it opens one session, once. A code that is not used in time opens none.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from typing import NamedTuple

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.config import Config
from paddlecloud.ui.rights import Rights

CODE_SECONDS = 600.0
IDLE_SECONDS = 12 * 3600.0
MOST = 500
"""Sessions, and codes; of more the oldest go."""


class Identity(NamedTuple):
    """A user of the API server: who it is, and how requests prove it."""

    user: str
    config: Config
    client: Client
    flags: tuple[str, ...] = ()
    """By which `pdc` finds these credentials in a kubeconfig; where there are none, it gets one made of `config`."""


class ViewerSession:
    def __init__(self, identity: Identity, rights: Rights, now: float) -> None:
        self.identity = identity
        self.rights = rights
        self.secret = secrets.token_urlsafe(32)
        """Of forms: a page of another site does not know it."""
        self.used = now
        self.streams = 0
        """Open streams of events."""

    def knows(self, secret: str) -> bool:
        return hmac.compare_digest(self.secret.encode(), secret.encode())


class Sessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()
        self._sessions: OrderedDict[bytes, ViewerSession] = OrderedDict()

    def new_code(self, identity: Identity) -> str:
        code = secrets.token_urlsafe(24)
        self.accept_code(code, identity)
        return code

    def accept_code(self, code: str, identity: Identity) -> None:
        self._codes[_digest(code)] = self._clock.monotonic() + CODE_SECONDS, identity
        while len(self._codes) > MOST:
            self._codes.popitem(last=False)

    def redeem(self, code: str) -> str | None:
        """The cookie of a new session; None for a code that was used, is too old or was never given."""
        found = self._codes.pop(_digest(code), None)
        if found is None or found[0] <= self._clock.monotonic():
            return None
        return self.open(found[1])

    def open(self, identity: Identity) -> str:
        cookie = secrets.token_urlsafe(32)
        rights = Rights(identity.client, self._clock)
        self._sessions[_digest(cookie)] = ViewerSession(identity, rights, self._clock.monotonic())
        while len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> ViewerSession | None:
        which = _digest(cookie)
        found = self._sessions.get(which)
        if found is None:
            return None
        if found.used + IDLE_SECONDS <= self._clock.monotonic():
            del self._sessions[which]
            return None
        found.used = self._clock.monotonic()
        self._sessions.move_to_end(which)
        return found

    def close(self, cookie: str) -> None:
        self._sessions.pop(_digest(cookie), None)


def _digest(text: str) -> bytes:
    """Looked up by digest, so that the time of a comparison says nothing of a secret."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
