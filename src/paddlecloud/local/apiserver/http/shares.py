"""How many requests of one tenant are served at a time, watches and sessions in pods among them: others need
connections, too. Who makes accounts in a namespace has no more for it: they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.auth.authentication import MASTERS, User

_ACCOUNT = "system:serviceaccount:"


def tenant_of(user: User) -> str:
    """Accounts of one namespace are one tenant."""
    return user.name.rpartition(":")[0] if user.name.startswith(_ACCOUNT) else user.name


class Shares:
    def __init__(self, most: int) -> None:
        self._most = most
        self._busy: Counter[str] = Counter()

    @contextmanager
    def of(self, user: User) -> Iterator[None]:
        """While one request is served. Raises `TooManyRequests`; administrators are let in."""
        tenant = tenant_of(user)
        if self._busy[tenant] >= self._most and MASTERS not in user.groups:
            raise errors.TooManyRequests(
                f"{tenant} has {self._most} requests in progress, the most for one user or one namespace's accounts; "
                "end some watches or sessions",
                retry_after=1,
            )
        self._busy[tenant] += 1
        try:
            yield
        finally:
            self._busy[tenant] -= 1
            if not self._busy[tenant]:
                del self._busy[tenant]
