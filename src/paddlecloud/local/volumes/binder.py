"""Binds claims to volumes and makes volumes of the class `local`: the loop around `binding`."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from paddlecloud.kube.controller import Controller
from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import carry_out
from paddlecloud.kube.resource import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    Key,
    Object,
    Resource,
    key_of,
)
from paddlecloud.local.volumes.binding import decide_claim, decide_volume, local_class

STORAGECLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)


class VolumeBinder:
    """Adds its controllers to a manager; local volumes are folders below `folder`."""

    def __init__(self, manager: Manager, *, folder: Path) -> None:
        self._client = manager.client
        self._folder = folder
        self._recorder = EventRecorder(manager.client, component="persistentvolume-controller")
        self._claims = manager.informer(PERSISTENTVOLUMECLAIMS)
        self._volumes = manager.informer(PERSISTENTVOLUMES)
        self._classes = manager.informer(STORAGECLASSES)
        # One worker each: two claims must not be shown the same free volume at the same time.
        claims = manager.controller("claims", self._bind, workers=1)
        claims.watch(self._claims)
        claims.watch(self._volumes, map=self._interested)
        claims.watch(self._classes, map=lambda _: self._pending())
        volumes: Controller = manager.controller("volumes", self._settle, workers=1)
        volumes.watch(self._volumes)
        volumes.watch(self._claims, map=_volume_of)

    async def install(self) -> None:
        """Have the class `local`, once."""
        try:
            await self._client.create(STORAGECLASSES, local_class())
        except AlreadyExists:
            pass  # what users made of it since stays

    async def _bind(self, key: Key) -> None:
        claim = self._claims.cache.get(key)
        if claim is None:
            return
        classes = {body["metadata"]["name"]: body for body in self._classes.cache.list()}
        plan = decide_claim(claim, self._volumes.cache.list(), classes, folder=self._folder)
        await carry_out(plan, self._client, owner=claim, recorder=self._recorder)

    async def _settle(self, key: Key) -> None:
        volume = self._volumes.cache.get(key)
        if volume is None:
            return
        ref = volume["spec"].get("claimRef") or {}
        claim = self._claims.cache.get(Key(ref.get("namespace", ""), ref.get("name", "")))
        plan, clear = decide_volume(volume, claim)
        if clear:
            await asyncio.to_thread(self._remove_folder, volume)
        await carry_out(plan, self._client, owner=volume, recorder=self._recorder)

    def _remove_folder(self, volume: Object) -> None:
        """Only ever below our own folder, whatever the object says."""
        path = Path(volume["spec"]["hostPath"]["path"])
        if path.parent == self._folder and path.name == volume["metadata"]["name"]:
            shutil.rmtree(path, ignore_errors=True)

    def _interested(self, volume: Object) -> list[Key]:
        """The claim a volume is given to; a free volume may be what any waiting claim waits for."""
        ref = volume["spec"].get("claimRef")
        return [Key(ref.get("namespace", ""), ref["name"])] if ref else self._pending()

    def _pending(self) -> list[Key]:
        return [
            key_of(claim) for claim in self._claims.cache.list() if (claim.get("status") or {}).get("phase") != "Bound"
        ]


def _volume_of(claim: Object) -> list[Key]:
    name = claim["spec"].get("volumeName")
    return [Key("", name)] if name else []
