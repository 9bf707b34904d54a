"""Volumes made of objects (configMap, secret, downwardAPI, projected): files that follow their objects.

What is in them is decided by `payload`, how they change at once by `atomic`; here the objects and tokens are fetched.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.env import Facts
from paddlecloud.local.volumes.atomic import write_payload
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.volumes.ownership import owning_group
from paddlecloud.local.volumes.payload import Payload, Room, volume_payload
from paddlecloud.local.volumes.tokens import DEFAULT_SECONDS, Tokens

KINDS = ("configMap", "secret", "downwardAPI", "projected")
TOKEN_VOLUME = "kube-api-access"  # noqa: S105 - a volume's name
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path


class Objects(Protocol):
    """Where it is read what volumes refer to."""

    async def configmap(self, namespace: str, name: str) -> Object | None: ...

    async def secret(self, namespace: str, name: str) -> Object | None: ...


class ObjectVolumes:
    def __init__(
        self, objects: Objects, tokens: Tokens, *, host_ip: Callable[[str], str], allocatable: Mapping[str, str]
    ) -> None:
        """`host_ip` says the address of a node and `allocatable` what it can give, for files in which pods read it."""
        self._objects = objects
        self._tokens = tokens
        self._host_ip = host_ip
        self._allocatable = allocatable
        self._written: dict[str, dict[str, _Written]] = {}  # what is on disk, by pod uid and volume

    def implicit(self, pod: Object) -> Object | None:
        """The service-account volume that Kubernetes adds to pods; None where it is switched off or already there."""
        if not self._tokens.are_issued or pod["spec"].get("automountServiceAccountToken") is False:
            return None
        mounts = (mount for c in pod["spec"].get("containers") or () for mount in c.get("volumeMounts") or ())
        return None if any(mount["mountPath"] == TOKEN_PATH for mount in mounts) else _IMPLICIT

    async def write(self, volume: Object, pod: Object, place: Path, *, pod_ip: str) -> None:
        """Have the files at `place` show what the objects hold now. Raises `VolumeError`."""
        meta, name = pod["metadata"], volume["name"]
        found: dict[tuple[str, str], Object | None] = {}
        for kind, referred in dict.fromkeys(references(volume)):
            look_up = self._objects.configmap if kind == "configmap" else self._objects.secret
            found[(kind, referred)] = await look_up(meta.get("namespace", ""), referred)
        for source in _projected(volume):
            if wanted := source.get("serviceAccountToken"):
                await self._tokens.renew(pod, name, wanted)
        node = pod["spec"].get("nodeName", "")
        facts = Facts(pod_ip=pod_ip, host_ip=self._host_ip(node), node_name=node, allocatable=self._allocatable)
        of_pod = self._written.setdefault(meta["uid"], {})
        room = _left_by(other for volume_name, other in of_pod.items() if volume_name != name)
        known = of_pod.get(name)

        def in_a_thread() -> _Written:
            """A volume may have many sources, and each may be a large object."""
            payload = volume_payload(
                volume,
                pod,
                facts,
                lookup=lambda kind, referred: found.get((kind, referred)),
                token=lambda source: self._tokens.text(pod, name, source),
                room=room,
            )
            written = _Written.of(payload)
            if written != known:
                write_payload(place, payload, owning_group(pod))
            return written

        of_pod[name] = await asyncio.to_thread(in_a_thread)

    async def refresh(self, pod: Object, folder: Path, *, pod_ip: str) -> None:
        """Bring all of a pod up to date; one whose object is gone keeps its last content."""
        token = self.implicit(pod)
        for volume in (*(pod["spec"].get("volumes") or ()), *([token] if token else ())):
            if any(kind in volume for kind in KINDS):
                try:
                    await self.write(volume, pod, folder / volume["name"], pod_ip=pod_ip)
                except VolumeError:
                    continue  # Kubernetes leaves a running pod what it has, too

    def forget(self, uid: str) -> None:
        self._tokens.forget(uid)
        self._written.pop(uid, None)


class _Written(NamedTuple):
    """What is remembered of files on disk: enough to see that others are wanted, and what they take."""

    digest: bytes
    files: int
    bytes: int

    @classmethod
    def of(cls, payload: Payload) -> _Written:
        seen = hashlib.sha256()
        for path, file in payload.items():
            seen.update(f"{path}\0{file.mode} {len(file.data)}\0".encode())
            seen.update(file.data)
        return cls(seen.digest(), len(payload), sum(len(file.data) for file in payload.values()))


def _left_by(others: Iterable[_Written]) -> Room:
    room = Room()
    for other in others:
        room.files_left -= other.files
        room.bytes_left -= other.bytes
    return room


def references(volume: Object) -> list[tuple[str, str]]:
    """The ConfigMaps and Secrets a volume is made of."""
    found = []
    if source := volume.get("configMap"):
        found.append(("configmap", source["name"]))
    if source := volume.get("secret"):
        found.append(("secret", source["secretName"]))
    for source in _projected(volume):
        for field, kind in (("configMap", "configmap"), ("secret", "secret")):
            if field in source:
                found.append((kind, source[field]["name"]))
    return found


def _projected(volume: Object) -> Iterable[Object]:
    return (volume.get("projected") or {}).get("sources") or ()


_ROOT_CA = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}], "optional": True}
_NAMESPACE = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
_IMPLICIT: Object = {
    "name": TOKEN_VOLUME,
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": DEFAULT_SECONDS}},
            {"configMap": _ROOT_CA},
            {"downwardAPI": {"items": [_NAMESPACE]}},
        ]
    },
}
