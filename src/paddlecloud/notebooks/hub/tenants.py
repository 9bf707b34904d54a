"""Profiles as the hub sees them: listed with the hub's own account, kept for some seconds.

Everything that is decided on them (who may start what where, who must leave) asks here, so that a thousand servers that
are looked at cost one list.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import in_cluster
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PROFILES, Object
from paddlecloud.notebooks.membership import Membership, memberships

KEPT_SECONDS = 5.0


class Tenants:
    def __init__(self, client: Client, *, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._lock = asyncio.Lock()
        self._profiles: list[Object] = []
        self._listed = -math.inf

    async def of(self, user: str, groups: Collection[str]) -> list[Membership]:
        return memberships(await self._current(), user, groups)

    async def _current(self) -> list[Object]:
        async with self._lock:
            if self._now() - self._listed >= KEPT_SECONDS:
                self._profiles = (await self._client.list(PROFILES, limit=500)).items
                self._listed = self._now()
        return self._profiles


_clients: list[Client] = []
_tenants: list[Tenants] = []


def client() -> Client:
    """One for the process: JupyterHub makes authenticators and spawners, and passes them nothing of ours."""
    if not _clients:
        _clients.append(Client(HttpTransport(in_cluster(), user_agent="jupyterhub")))
    return _clients[0]


def tenants() -> Tenants:
    if not _tenants:
        _tenants.append(Tenants(client()))
    return _tenants[0]
