"""What pods refer to, as they need it: cached, followed, and asked for once more before it counts as missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    SECRETS,
    Key,
    Object,
    Resource,
)

WATCHED = (CONFIGMAPS, SECRETS, PERSISTENTVOLUMECLAIMS)


class WatchedObjects:
    """`on_change` hears the namespace in which an object came, changed or went."""

    def __init__(self, client: Client, clock: Clock, *, on_change: Callable[[str], None]) -> None:
        self._client = client
        self._informers = {resource: Informer(client, resource, clock=clock) for resource in WATCHED}
        for informer in self._informers.values():
            informer.on_change(lambda old, new: on_change((new or old or {})["metadata"].get("namespace", "")))

    async def run(self) -> None:
        await asyncio.gather(*(informer.run() for informer in self._informers.values()))

    async def configmap(self, namespace: str, name: str) -> Object | None:
        return await self._get(CONFIGMAPS, namespace, name)

    async def secret(self, namespace: str, name: str) -> Object | None:
        return await self._get(SECRETS, namespace, name)

    async def claim(self, namespace: str, name: str) -> Object | None:
        return await self._get(PERSISTENTVOLUMECLAIMS, namespace, name)

    async def persistent_volume(self, name: str) -> Object | None:
        try:
            return await self._client.get(PERSISTENTVOLUMES, name)
        except NotFound:
            return None

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """A pod may be seen before the object that was created before it: only the API itself may say no."""
        cached = self._informers[resource].cache.get(Key(namespace, name))
        if cached is not None:
            return cached
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
