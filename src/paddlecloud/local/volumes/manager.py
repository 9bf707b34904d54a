"""The volumes of a pod on this machine: made before its containers, kept current, released with it.

Volumes made of objects (configMap, secret, downwardAPI, projected) are written into the pod's directory and follow
their objects while the pod runs; the others are directories to bind, found or made.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.quantity import whole
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.env import Facts
from paddlecloud.local.volumes.atomic import write_payload
from paddlecloud.local.volumes.drivers import Driver, MountRequest
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.volumes.hostpath import host_path
from paddlecloud.local.volumes.model import PreparedVolumes, Volume
from paddlecloud.local.volumes.payload import Payload, contents_of, volume_payload
from paddlecloud.local.volumes.shares import shared_folder

OBJECT_KINDS = ("configMap", "secret", "downwardAPI", "projected")
TOKEN_VOLUME = "kube-api-access"  # noqa: S105 - a volume's name
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
DEFAULT_TOKEN_SECONDS = 3607

TokenSource = Callable[[Object, str, int], Awaitable[str]]
"""(pod, audience, seconds) → a token of the pod's service account."""


TOKEN_LIFE = 0.8
"""The part of a token's life after which it is renewed, as Kubernetes does."""


class _Token(NamedTuple):
    text: str
    renew_at: float


class Objects(Protocol):
    """Where the manager reads what volumes refer to."""

    async def configmap(self, namespace: str, name: str) -> Object | None: ...

    async def secret(self, namespace: str, name: str) -> Object | None: ...

    async def claim(self, namespace: str, name: str) -> Object | None: ...

    async def persistent_volume(self, name: str) -> Object | None: ...


class VolumeManager:
    def __init__(
        self,
        objects: Objects,
        *,
        drivers: Mapping[str, Driver] | None = None,
        token: TokenSource | None = None,
        clock: Clock | None = None,
        shares: Path | None = None,
    ) -> None:
        """`shares` is the folder that stands for NFS servers (see `shares`)."""
        self._shares = shares
        self._clock = clock or SystemClock()
        self._objects = objects
        self.drivers: dict[str, Driver] = dict(drivers or {})
        self._token = token
        self.host_ip: Callable[[str], str] = lambda node: "127.0.0.1"
        self._tokens: dict[tuple[str, str, str], _Token] = {}  # by pod uid, volume, path
        self._written: dict[tuple[str, str], Payload] = {}  # what is on disk, by pod uid and volume

    def implicit(self, pod: Object) -> Object | None:
        """The service-account volume that Kubernetes adds to pods; None where it is switched off or already there."""
        if self._token is None or pod["spec"].get("automountServiceAccountToken") is False:
            return None
        mounts = [
            mount["mountPath"] for c in pod["spec"].get("containers") or () for mount in c.get("volumeMounts") or ()
        ]
        if TOKEN_PATH in mounts:
            return None
        return {
            "name": TOKEN_VOLUME,
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": DEFAULT_TOKEN_SECONDS}},
                    {
                        "configMap": {
                            "name": "kube-root-ca.crt",
                            "items": [{"key": "ca.crt", "path": "ca.crt"}],
                            "optional": True,
                        }
                    },
                    {
                        "downwardAPI": {
                            "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                        }
                    },
                ]
            },
        }

    async def prepare(self, pod: Object, folder: Path, *, pod_ip: str) -> PreparedVolumes:
        """Provide all volumes of a pod under `folder`. Raises `VolumeError`."""
        volumes: dict[str, Volume] = {}
        tmpfs: list[tuple[str, int]] = []
        for volume in _volumes(pod):
            name = volume["name"]
            place = folder / name
            if (empty := volume.get("emptyDir")) is not None:
                volumes[name] = Volume(str(await asyncio.to_thread(_empty_dir, place, pod)))
                if empty.get("medium") == "Memory":
                    tmpfs.append((str(place), whole(empty.get("sizeLimit") or 0)))
            elif (host := volume.get("hostPath")) is not None:
                found = await asyncio.to_thread(host_path, host["path"], host.get("type") or "")
                volumes[name] = Volume(str(found))
            elif (nfs := volume.get("nfs")) is not None:
                found = await asyncio.to_thread(shared_folder, self._shares, nfs)
                volumes[name] = Volume(str(found), readonly=bool(nfs.get("readOnly")))
            elif any(kind in volume for kind in OBJECT_KINDS):
                await self._write(volume, pod, place, pod_ip)
                # The token volume is the server's doing, not the pod's: a machine without namespaces does without.
                volumes[name] = Volume(str(place), readonly=True, optional=name.startswith(f"{TOKEN_VOLUME}-"))
            elif claim := volume.get("persistentVolumeClaim"):
                volumes[name] = await self._claimed(claim, pod, place)
            elif csi := volume.get("csi"):
                secret = (csi.get("nodePublishSecretRef") or {}).get("name")
                volumes[name] = await self._from_driver(
                    {**csi, "volumeHandle": f"{pod['metadata']['uid']}/{name}", "secret": secret}, pod, place
                )
            else:
                kinds = ", ".join(key for key in volume if key != "name")
                raise VolumeError(f'volume "{name}": {kinds or "no source"} is not served by this platform')
        if token := self.implicit(pod):
            place = folder / TOKEN_VOLUME
            await self._write(token, pod, place, pod_ip)
            volumes[TOKEN_VOLUME] = Volume(str(place), readonly=True, optional=True, everywhere=TOKEN_PATH)
        return PreparedVolumes(volumes, tuple(tmpfs))

    async def refresh(self, pod: Object, folder: Path, *, pod_ip: str) -> None:
        """Bring volumes made of objects up to date; one whose object is gone keeps its last content."""
        for volume in (*_volumes(pod), *([token] if (token := self.implicit(pod)) else ())):
            if any(kind in volume for kind in OBJECT_KINDS):
                try:
                    await self._write(volume, pod, folder / volume["name"], pod_ip)
                except VolumeError:
                    continue  # Kubernetes leaves a running pod what it has, too

    async def release(self, pod: Object, folder: Path) -> None:
        """The pod is gone: tell the drivers. Its directory is removed by its owner."""
        uid = pod["metadata"]["uid"]
        self._tokens = {key: token for key, token in self._tokens.items() if key[0] != uid}
        self._written = {key: payload for key, payload in self._written.items() if key[0] != uid}
        for volume in _volumes(pod):
            request: tuple[str, MountRequest] | None = None
            if csi := volume.get("csi"):
                handle = f"{uid}/{volume['name']}"
                request = (csi["driver"], MountRequest(handle, folder / volume["name"], pod))
            elif claim := volume.get("persistentVolumeClaim"):
                bound = await self._bound(pod, claim["claimName"])
                if bound and (csi := (bound.get("spec") or {}).get("csi")):
                    request = (csi["driver"], MountRequest(csi["volumeHandle"], folder / volume["name"], pod))
            if request is not None and request[0] in self.drivers:
                await self.drivers[request[0]].unpublish(request[1])

    async def _write(self, volume: Object, pod: Object, place: Path, pod_ip: str) -> None:
        namespace = pod["metadata"].get("namespace", "")
        found: dict[tuple[str, str], Object | None] = {}
        for kind, name in references(volume):
            look_up = self._objects.configmap if kind == "configmap" else self._objects.secret
            found[(kind, name)] = await look_up(namespace, name)
        for source in (volume.get("projected") or {}).get("sources") or ():
            if wanted := source.get("serviceAccountToken"):
                await self._issue(volume["name"], wanted, pod)
        node = pod["spec"].get("nodeName", "")
        facts = Facts(pod_ip=pod_ip, host_ip=self.host_ip(node), node_name=node)
        payload = volume_payload(
            volume,
            pod,
            facts,
            lookup=lambda kind, name: found.get((kind, name)),
            token=lambda source: self._tokens[(pod["metadata"]["uid"], volume["name"], source["path"])].text,
        )
        key = (pod["metadata"]["uid"], volume["name"])
        if self._written.get(key) != payload:
            await asyncio.to_thread(write_payload, place, payload)
            self._written[key] = payload

    async def _issue(self, volume: str, source: Object, pod: Object) -> None:
        if self._token is None:
            raise VolumeError("this platform issues no service-account tokens")
        seconds = int(source.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS)
        key = (pod["metadata"]["uid"], volume, source["path"])
        now = self._clock.now()
        if key not in self._tokens or self._tokens[key].renew_at <= now:
            text = await self._token(pod, source.get("audience", ""), seconds)
            self._tokens[key] = _Token(text, now + TOKEN_LIFE * seconds)

    async def _bound(self, pod: Object, name: str) -> Object | None:
        claim = await self._objects.claim(pod["metadata"].get("namespace", ""), name)
        volume = ((claim or {}).get("spec") or {}).get("volumeName")
        if claim is None or not volume or (claim.get("status") or {}).get("phase") != "Bound":
            return None
        return await self._objects.persistent_volume(volume)

    async def _claimed(self, source: Object, pod: Object, place: Path) -> Volume:
        name = source["claimName"]
        claim = await self._objects.claim(pod["metadata"].get("namespace", ""), name)
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        bound = await self._bound(pod, name)
        if bound is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" is not bound to a volume yet')
        spec = bound["spec"]
        readonly = bool(source.get("readOnly"))
        if folder := spec.get("hostPath") or spec.get("local"):
            found = await asyncio.to_thread(host_path, folder["path"], folder.get("type") or "")
            return Volume(str(found), readonly=readonly)
        if (nfs := spec.get("nfs")) is not None:
            found = await asyncio.to_thread(shared_folder, self._shares, nfs)
            return Volume(str(found), readonly=readonly or bool(nfs.get("readOnly")))
        if csi := spec.get("csi"):
            secret = (csi.get("nodePublishSecretRef") or {}).get("name")
            options = tuple(spec.get("mountOptions") or ())
            request = {**csi, "readOnly": readonly or csi.get("readOnly"), "secret": secret, "options": options}
            return await self._from_driver(request, pod, place)
        kinds = ", ".join(key for key in spec if key in _FOREIGN_SOURCES)
        raise VolumeError(f'persistentvolume "{bound["metadata"]["name"]}": {kinds or "its source"} is not served here')

    async def _from_driver(self, source: Object, pod: Object, place: Path) -> Volume:
        driver = self.drivers.get(source["driver"])
        if driver is None:
            known = ", ".join(sorted(self.drivers)) or "none"
            raise VolumeError(f"no driver {source['driver']} on this machine; registered: {known}")
        secrets: dict[str, str] = {}
        if name := source.get("secret"):
            secrets = await self._secret_values(pod, name)
        await asyncio.to_thread(os.makedirs, place, exist_ok=True)
        readonly = bool(source.get("readOnly"))
        request = MountRequest(
            handle=source["volumeHandle"],
            target=place,
            pod=pod,
            attributes=source.get("volumeAttributes") or {},
            secrets=secrets,
            options=source.get("options", ()),
            readonly=readonly,
        )
        return Volume(str(await driver.publish(request)), readonly=readonly)

    async def _secret_values(self, pod: Object, name: str) -> dict[str, str]:
        secret = await self._objects.secret(pod["metadata"].get("namespace", ""), name)
        if secret is None:
            raise VolumeError(f'secret "{name}" not found')
        return {key: value.decode() for key, value in contents_of(secret).items()}


_FOREIGN_SOURCES = ("iscsi", "cephfs", "rbd", "glusterfs", "fc", "awsElasticBlockStore", "gcePersistentDisk")


def _volumes(pod: Object) -> Iterable[Object]:
    return pod["spec"].get("volumes") or ()


def references(volume: Object) -> list[tuple[str, str]]:
    """The ConfigMaps and Secrets a volume is made of."""
    found = []
    if source := volume.get("configMap"):
        found.append(("configmap", source["name"]))
    if source := volume.get("secret"):
        found.append(("secret", source["secretName"]))
    for source in (volume.get("projected") or {}).get("sources") or ():
        for field, kind in (("configMap", "configmap"), ("secret", "secret")):
            if field in source:
                found.append((kind, source[field]["name"]))
    return found


def _empty_dir(place: Path, pod: Object) -> Path:
    """Open to every user of the pod; owned by its fsGroup where this process may give things away."""
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    if group is not None and os.getuid() == 0:
        os.chown(place, -1, int(group))
        place.chmod(0o2777)
    return place
