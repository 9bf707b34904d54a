"""Binds claims to volumes and makes volumes of the class `local`: the controllers around `binding`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan, PlanFailed, PlannedEvent
from paddlecloud.kube.reconciler import Reconciler
from paddlecloud.kube.resource import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    Key,
    Object,
    key_of,
)
from paddlecloud.local.removal import remove_tree
from paddlecloud.local.volumes.binding import decide_claim, decide_volume, local_class

COMPONENT = "persistentvolume-controller"


Offers = tuple[list[Object], dict[str, Object]]
"""All volumes, and the storage classes by name."""


class VolumeBinder:
    """Adds its controllers to a manager; local volumes are folders below `folder`."""

    def __init__(self, manager: Manager, *, folder: Path) -> None:
        self._client = manager.client
        ClaimReconciler(manager, folder)
        VolumeReconciler(manager, folder)

    async def install(self) -> None:
        """Have the class `local`, once."""
        try:
            await self._client.create(STORAGECLASSES, local_class())
        except AlreadyExists:
            pass  # what users made of it since stays


class ClaimReconciler(Reconciler[Offers, Plan]):
    """Gives each claim a volume, or makes one for it."""

    def __init__(self, manager: Manager, folder: Path) -> None:
        super().__init__(manager.client, component=COMPONENT)
        self._folder = folder
        self._claims = manager.informer(PERSISTENTVOLUMECLAIMS)
        self._volumes = manager.informer(PERSISTENTVOLUMES)
        self._classes = manager.informer(STORAGECLASSES)
        self.primary = (self._claims,)
        # One worker: two claims must not be shown the same free volume at the same time.
        controller = manager.controller("claims", self.reconcile, workers=1)
        controller.watch(self._claims, expectations=self.expectations)
        controller.watch(self._volumes, map=self._interested, expectations=self.expectations)
        controller.watch(self._classes, map=lambda _: self._pending())

    async def observe(self, claim: Object) -> Offers:
        classes = {body["metadata"]["name"]: body for body in self._classes.cache.list()}
        return self._volumes.cache.list(), classes

    def decide(self, claim: Object, offers: Offers, now: float) -> Plan:
        return decide_claim(claim, *offers, folder=self._folder)

    def refused(self, claim: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        return [PlannedEvent("ProvisioningFailed", str(failed), type="Warning")]  # as Kubernetes names it

    def _interested(self, volume: Object) -> list[Key]:
        """The claim a volume is given to; a free volume may be what any waiting claim waits for."""
        ref = volume["spec"].get("claimRef")
        return [Key(ref.get("namespace", ""), ref["name"])] if ref else self._pending()

    def _pending(self) -> list[Key]:
        return [
            key_of(claim) for claim in self._claims.cache.list() if (claim.get("status") or {}).get("phase") != "Bound"
        ]


class VolumeReconciler(Reconciler[Object | None, Plan]):
    """Keeps the phase of volumes, and deletes those of the class `local` whose claim is gone."""

    def __init__(self, manager: Manager, folder: Path) -> None:
        super().__init__(manager.client, component=COMPONENT)
        self._folder = folder
        self._claims = manager.informer(PERSISTENTVOLUMECLAIMS)
        volumes = manager.informer(PERSISTENTVOLUMES)
        self.primary = (volumes,)
        controller = manager.controller("volumes", self.reconcile, workers=1)
        controller.watch(volumes, expectations=self.expectations)
        controller.watch(self._claims, map=_volume_of)

    async def observe(self, volume: Object) -> Object | None:
        """The claim it refers to."""
        ref = volume["spec"].get("claimRef") or {}
        return self._claims.cache.get(Key(ref.get("namespace", ""), ref.get("name", "")))

    def decide(self, volume: Object, claim: Object | None, now: float) -> Plan:
        return decide_volume(volume, claim)

    async def act(self, volume: Object, claim: Object | None, plan: Plan) -> float | None:
        if plan.delete:
            await asyncio.to_thread(self._remove_folder, volume)
        return await super().act(volume, claim, plan)

    def refused(self, volume: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        return [PlannedEvent("VolumeFailedDelete", str(failed), type="Warning")]  # as Kubernetes names it

    def _remove_folder(self, volume: Object) -> None:
        """Only ever below our own folder, whatever the object says."""
        path = Path(volume["spec"]["hostPath"]["path"])
        if path.parent == self._folder and path.name == volume["metadata"]["name"]:
            with suppress(OSError):
                remove_tree(path)


def _volume_of(claim: Object) -> list[Key]:
    name = claim["spec"].get("volumeName")
    return [Key("", name)] if name else []
