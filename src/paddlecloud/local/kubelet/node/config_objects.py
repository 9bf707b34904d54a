"""ConfigMaps and Secrets that pods refer to: read when a pod needs one, and watched from then on.

Only metadata is kept. Contents are read when a pod starts or a watch reports a change, and the API server, in the
same process, has them at hand; a second copy of every ConfigMap and Secret would cost more memory than the store
itself.
"""

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
    Object,
    Resource,
)

WATCHED = (CONFIGMAPS, SECRETS, PERSISTENTVOLUMECLAIMS)
KEPT = ("name", "namespace", "uid", "resourceVersion")


def _metadata_alone(obj: Object) -> Object:
    return {"metadata": {field: obj["metadata"][field] for field in KEPT}}


class WatchedObjects:
    """`on_change` is called with the namespace in which an object came, changed or went."""

    def __init__(self, client: Client, clock: Clock, *, on_change: Callable[[str], None]) -> None:
        self._client = client
        self._informers = [Informer(client, kind, transform=_metadata_alone, clock=clock) for kind in WATCHED]
        for informer in self._informers:
            informer.on_change(lambda old, new: on_change((new or old or {})["metadata"].get("namespace", "")))

    async def run(self) -> None:
        await asyncio.gather(*(informer.run() for informer in self._informers))

    async def configmap(self, namespace: str, name: str) -> Object | None:
        return await self._get(CONFIGMAPS, namespace, name)

    async def secret(self, namespace: str, name: str) -> Object | None:
        return await self._get(SECRETS, namespace, name)

    async def claim(self, namespace: str, name: str) -> Object | None:
        return await self._get(PERSISTENTVOLUMECLAIMS, namespace, name)

    async def persistent_volume(self, name: str) -> Object | None:
        return await self._get(PERSISTENTVOLUMES, None, name)

    async def _get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
