"""The types of volumes that pods of this machine can have: made before containers, kept current, released with the pod.

A volume is served by the kind of its source: see the two tables of `VolumeManager`. What is made of objects is written
into the pod's directory (`object_volumes`); the others are directories to bind, found or made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from paddlecloud.api import mounts
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.quantity import whole
from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes import object_volumes
from paddlecloud.local.volumes.driver_volumes import DriverVolumes
from paddlecloud.local.volumes.drivers import Driver
from paddlecloud.local.volumes.errors import ClaimNotBound, VolumeError
from paddlecloud.local.volumes.hostpath import host_path
from paddlecloud.local.volumes.object_volumes import TOKEN_PATH, TOKEN_VOLUME, ObjectVolumes
from paddlecloud.local.volumes.ownership import owning_group
from paddlecloud.local.volumes.prepared_volumes import PreparedVolumes, Volume
from paddlecloud.local.volumes.shares import shared_folder
from paddlecloud.local.volumes.tokens import Tokens, TokenSource


class Objects(object_volumes.Objects, Protocol):
    """Where the manager reads what volumes refer to."""

    async def claim(self, namespace: str, name: str) -> Object | None: ...

    async def persistent_volume(self, name: str) -> Object | None: ...


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """A volume that a pod asks for, and where the pod keeps what is its own of it."""

    volume: Object
    pod: Object
    place: Path
    pod_ip: str

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"].get("namespace", ""))

    @property
    def handle(self) -> str:
        """What a driver knows it by, if the pod itself names the driver."""
        return f"{self.pod['metadata']['uid']}/{self.volume['name']}"


Provide = Callable[[Object, VolumeRequest], Awaitable[Volume]]
"""(source, for what) → the volume. Raises `VolumeError`."""


class VolumeManager:
    def __init__(
        self,
        objects: Objects,
        *,
        drivers: Mapping[str, Driver] | None = None,
        token: TokenSource | None = None,
        clock: Clock | None = None,
        shares: Path | None = None,
        host_ip: Callable[[str], str] = lambda node: "127.0.0.1",
        allocatable: Mapping[str, str] | None = None,
    ) -> None:
        """`shares` is the folder that stands for NFS servers (see `shares`); `host_ip` says the address of a node,
        `allocatable` what it can give."""
        self._shares = shares
        self._objects = objects
        tokens = Tokens(token, clock or SystemClock())
        self._of_objects = ObjectVolumes(objects, tokens, host_ip=host_ip, allocatable=allocatable or {})
        self._of_drivers = DriverVolumes(objects, drivers or {})
        self._in_pods: dict[str, Provide] = {
            "emptyDir": self._empty_dir,
            "hostPath": self._host_path,
            "nfs": self._nfs,
            **dict.fromkeys(object_volumes.KINDS, self._files),
            "persistentVolumeClaim": self._claimed,
            "csi": self._inline_driver,
        }
        self._in_persistent_volumes: dict[str, Provide] = {
            "hostPath": self._host_path,
            "local": self._host_path,
            "nfs": self._nfs,
        }

    async def prepare(self, pod: Object, folder: Path, *, pod_ip: str) -> PreparedVolumes:
        """Provide all volumes of a pod under `folder`. Raises `VolumeError`."""
        volumes: dict[str, Volume] = {}
        for volume in _volumes(pod):
            name = volume["name"]
            wanted = VolumeRequest(volume, pod, folder / name, pod_ip)
            try:
                volumes[name] = await self._provide(volume, wanted)
            except ClaimNotBound:
                raise
            except VolumeError as error:
                raise VolumeError(mounts.sentence(name, str(error))) from error
        if token := self._of_objects.implicit(pod):
            place = folder / TOKEN_VOLUME
            await self._of_objects.write(token, pod, place, pod_ip=pod_ip)
            volumes[TOKEN_VOLUME] = Volume(str(place), readonly=True, optional=True, everywhere=TOKEN_PATH)
        return PreparedVolumes(volumes, tuple(_in_memory(pod, folder)))

    async def _provide(self, volume: Object, wanted: VolumeRequest) -> Volume:
        provided = await _provided(self._in_pods, volume, wanted)
        if provided is None:
            kinds = ", ".join(key for key in volume if key != "name")
            raise VolumeError(f"{kinds or 'no source'} is not served by this platform")
        return provided

    async def refresh(self, pod: Object, folder: Path, *, pod_ip: str) -> None:
        """Bring volumes made of objects up to date while the pod runs."""
        await self._of_objects.refresh(pod, folder, pod_ip=pod_ip)

    async def release(self, pod: Object, folder: Path) -> None:
        """The pod is gone: the drivers unmount. Its directory is removed by its owner."""
        self._of_objects.forget(pod["metadata"]["uid"])
        for volume in _volumes(pod):
            wanted = VolumeRequest(volume, pod, folder / volume["name"], "")
            if csi := volume.get("csi"):
                await self._of_drivers.unpublish(csi, pod, wanted.place, handle=wanted.handle)
            elif claim := volume.get("persistentVolumeClaim"):
                bound = await self._bound(wanted, claim["claimName"])
                if bound and (csi := (bound.get("spec") or {}).get("csi")):
                    await self._of_drivers.unpublish(
                        csi, pod, wanted.place, handle=csi["volumeHandle"], claim=claim["claimName"]
                    )

    async def keep_only(self, pods: Collection[str]) -> None:
        """Only these pods (by uid) are left: drivers take away what they hold for others."""
        await self._of_drivers.keep_only(pods)

    # Sources

    async def _empty_dir(self, _: Object, wanted: VolumeRequest) -> Volume:
        return Volume(str(await asyncio.to_thread(_make_empty_dir, wanted.place, wanted.pod)))

    async def _host_path(self, source: Object, _: VolumeRequest) -> Volume:
        return Volume(str(await asyncio.to_thread(host_path, source["path"], source.get("type") or "")))

    async def _nfs(self, source: Object, _: VolumeRequest) -> Volume:
        found = await asyncio.to_thread(shared_folder, self._shares, source)
        return Volume(str(found), readonly=bool(source.get("readOnly")))

    async def _files(self, _: Object, wanted: VolumeRequest) -> Volume:
        await self._of_objects.write(wanted.volume, wanted.pod, wanted.place, pod_ip=wanted.pod_ip)
        # The token volume is the server's doing, not the pod's: a machine without namespaces does without.
        optional = wanted.volume["name"].startswith(f"{TOKEN_VOLUME}-")
        return Volume(str(wanted.place), readonly=True, optional=optional)

    async def _inline_driver(self, source: Object, wanted: VolumeRequest) -> Volume:
        readonly = bool(source.get("readOnly"))
        found = await self._of_drivers.publish(
            source, wanted.pod, wanted.place, handle=wanted.handle, readonly=readonly
        )
        return Volume(str(found), readonly=readonly)

    async def _claimed(self, source: Object, wanted: VolumeRequest) -> Volume:
        name, readonly = source["claimName"], bool(source.get("readOnly"))
        if await self._objects.claim(wanted.namespace, name) is None:
            raise ClaimNotBound(f'persistentvolumeclaim "{name}" not found')
        bound = await self._bound(wanted, name)
        if bound is None:
            raise ClaimNotBound(f'persistentvolumeclaim "{name}" is not bound to a volume yet')
        spec = bound["spec"]
        if csi := spec.get("csi"):
            readonly = readonly or bool(csi.get("readOnly"))
            found = await self._of_drivers.publish(
                csi,
                wanted.pod,
                wanted.place,
                handle=csi["volumeHandle"],
                readonly=readonly,
                options=tuple(spec.get("mountOptions") or ()),
                claim=name,
            )
            return Volume(str(found), readonly=readonly)
        provided = await _provided(self._in_persistent_volumes, spec, wanted)
        if provided is None:
            kinds = ", ".join(key for key in spec if key in _FOREIGN_SOURCES) or "its source"
            raise VolumeError(f'persistentvolume "{bound["metadata"]["name"]}": {kinds} is not served here')
        return Volume(provided.path, readonly=readonly or provided.readonly)

    async def _bound(self, wanted: VolumeRequest, claim_name: str) -> Object | None:
        claim = await self._objects.claim(wanted.namespace, claim_name)
        volume = ((claim or {}).get("spec") or {}).get("volumeName")
        if claim is None or not volume or (claim.get("status") or {}).get("phase") != "Bound":
            return None
        found = await self._objects.persistent_volume(volume)
        # As in Kubernetes' kubelet the volume's `claimRef` decides: a claim's author can write any name into the claim.
        owner = ((found or {}).get("spec", {}).get("claimRef") or {}).get("uid")
        return found if owner == claim["metadata"]["uid"] else None


_FOREIGN_SOURCES = ("iscsi", "cephfs", "rbd", "glusterfs", "fc", "awsElasticBlockStore", "gcePersistentDisk")


async def _provided(table: Mapping[str, Provide], spec: Object, wanted: VolumeRequest) -> Volume | None:
    """By the first source that is known here; None without one."""
    for kind, provide in table.items():
        if (source := spec.get(kind)) is not None:
            return await provide(source, wanted)
    return None


def _volumes(pod: Object) -> Iterable[Object]:
    return pod["spec"].get("volumes") or ()


def _in_memory(pod: Object, folder: Path) -> Iterable[tuple[str, int]]:
    """Directories over which a tmpfs of so many bytes is mounted; 0 for no limit."""
    for volume in _volumes(pod):
        source = volume.get("emptyDir") or {}
        if source.get("medium") == "Memory":
            yield str(folder / volume["name"]), whole(source.get("sizeLimit") or 0)


def _make_empty_dir(place: Path, pod: Object) -> Path:
    """Open to every user of the pod; owned by its fsGroup where this process may give things away."""
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    if (group := owning_group(pod)) is not None:
        os.chown(place, -1, group)
        place.chmod(0o2777)
    return place
