"""Volumes that a storage driver provides: which driver is called, with which secrets, and when it unmounts."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes.drivers import Driver, MountRequest
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.volumes.object_volumes import Objects
from paddlecloud.local.volumes.payload import Contents

log = logging.getLogger(__name__)


class DriverVolumes:
    """A `source` is the `csi` of a volume or of a PersistentVolume."""

    def __init__(self, objects: Objects, drivers: Mapping[str, Driver]) -> None:
        self._objects = objects
        self._drivers = drivers

    async def publish(
        self,
        source: Object,
        pod: Object,
        place: Path,
        *,
        handle: str,
        readonly: bool,
        options: tuple[str, ...] = (),
        claim: str = "",
    ) -> Path:
        """The directory to bind into the pod; `claim` as in `MountRequest`. Raises `VolumeError`."""
        driver = self._drivers.get(source["driver"])
        if driver is None:
            known = ", ".join(sorted(self._drivers)) or "none"
            raise VolumeError(f"no driver {source['driver']} on this machine; registered: {known}")
        secrets = await self._secrets(source, pod, claimed=bool(claim))
        await asyncio.to_thread(os.makedirs, place, exist_ok=True)
        request = MountRequest(
            handle=handle,
            target=place,
            pod=pod,
            attributes=source.get("volumeAttributes") or {},
            secrets=secrets,
            options=options,
            readonly=readonly,
            claim=claim,
        )
        return await driver.publish(request)

    async def unpublish(self, source: Object, pod: Object, place: Path, *, handle: str, claim: str = "") -> None:
        if driver := self._drivers.get(source["driver"]):
            await driver.unpublish(MountRequest(handle, place, pod, claim=claim))

    async def keep_only(self, pods: Collection[str]) -> None:
        """Nobody is kept waiting by what would not go: it is tried again when the kubelet tidies up."""
        for name, driver in self._drivers.items():
            try:
                await driver.keep_only(pods)
            except VolumeError as error:
                log.warning("%s: %s", name, error)

    async def _secrets(self, source: Object, pod: Object, *, claimed: bool) -> dict[str, str]:
        """A PersistentVolume says in which namespace its Secret is; a pod has those of its own namespace."""
        ref = source.get("nodePublishSecretRef") or {}
        name = ref.get("name")
        if not name:
            return {}
        own = pod["metadata"].get("namespace", "")
        secret = await self._objects.secret((ref.get("namespace") if claimed else None) or own, name)
        if secret is None:
            raise VolumeError(f'secret "{name}" not found')
        return {key: value.decode() for key, value in Contents(secret).items()}
