"""The files of configMap, secret, downwardAPI and projected volumes: from objects to paths, bytes and modes. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.env import Facts, field_value, resource_value
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError
from paddlecloud.local.volumes.errors import VolumeError

DEFAULT_MODE = 0o644


class File(NamedTuple):
    data: bytes
    mode: int = DEFAULT_MODE


Payload = dict[str, File]

MOST_FILES, MOST_BYTES = 10_000, 64 * 1024 * 1024
"""What all volumes of a pod that are made of objects may have together. Kubernetes has no such limit: there the bytes
are memory of the pod. Here they are files of the platform, and a pod of few bytes can name one object many times."""


@dataclass(slots=True)
class Room:
    """What is left for a volume. A file that another source replaces counts too: both had to be made."""

    files_left: int = MOST_FILES
    bytes_left: int = MOST_BYTES

    def take(self, data: bytes) -> bytes:
        self.files_left -= 1
        self.bytes_left -= len(data)
        if self.files_left < 0 or self.bytes_left < 0:
            raise VolumeError(
                "the volumes of the pod that are made of ConfigMaps, Secrets and fields have more than "
                f"{MOST_FILES} files or {MOST_BYTES >> 20} MiB together: leave out sources, or name the keys that are "
                "needed in items"
            )
        return data


Lookup = Callable[[str, str], Object | None]
"""(kind, name) → object of the pod's namespace; kinds are `configmap` and `secret`."""

TokenLookup = Callable[[Object], str]
"""A projected `serviceAccountToken` source → token."""


def keyed_payload(
    kind: str,
    name: str,
    contents: Contents | None,
    *,
    items: list[Object] | None,
    optional: bool,
    mode: int,
    room: Room,
) -> Payload:
    """The keys of a ConfigMap or Secret as files: all of them, or those `items` name at the paths they give."""
    if contents is None:
        if optional:
            return {}
        raise VolumeError(f'{kind} "{name}" not found')
    if not items:
        return {key: File(room.take(contents[key]), mode) for key in contents}
    payload: Payload = {}
    for item in items:
        if item["key"] not in contents:
            if optional:
                continue
            raise VolumeError(f'references non-existent {kind} key: {item["key"]} of "{name}"')
        payload[safe_path(item["path"])] = File(room.take(contents[item["key"]]), int(item.get("mode") or mode))
    return payload


class Contents(Mapping[str, bytes]):
    """A ConfigMap's texts and binaries, a Secret's values: each is decoded when it is first asked for."""

    def __init__(self, obj: Object) -> None:
        texts, binaries = (obj.get("data") or {}), (obj.get("binaryData") or {})
        secret = obj.get("kind") == "Secret"
        self._texts: dict[str, str] = {} if secret else texts
        self._encoded: dict[str, str] = texts if secret else binaries
        self._decoded: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> bytes:
        if key not in self._decoded:
            encoded = self._encoded.get(key)
            self._decoded[key] = base64.b64decode(encoded) if encoded is not None else self._texts[key].encode()
        return self._decoded[key]

    def __contains__(self, key: object) -> bool:
        return key in self._encoded or key in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts | self._encoded)

    def __len__(self) -> int:
        return len(self._texts | self._encoded)


def downward_payload(items: list[Object], pod: Object, facts: Facts, *, mode: int, room: Room) -> Payload:
    payload: Payload = {}
    for item in items:
        try:
            if ref := item.get("fieldRef"):
                text = field_value(pod, ref["fieldPath"], facts)
            else:
                text = resource_value(pod, {}, item["resourceFieldRef"], facts)
        except ContainerConfigError as error:
            raise VolumeError(str(error)) from error
        payload[safe_path(item["path"])] = File(room.take(text.encode()), int(item.get("mode") or mode))
    return payload


def volume_payload(
    volume: Object, pod: Object, facts: Facts, *, lookup: Lookup, token: TokenLookup, room: Room
) -> Payload:
    """The files of one volume that is made of objects. Raises `VolumeError` as soon as they do not fit into `room`."""

    @cache
    def contents(kind: str, name: str) -> Contents | None:
        """An object is decoded once, however many sources name it."""
        return None if (found := lookup(kind, name)) is None else Contents(found)

    def keyed(kind: str, name: str, source: Object, mode: int) -> Payload:
        items, optional = source.get("items"), bool(source.get("optional"))
        return keyed_payload(kind, name, contents(kind, name), items=items, optional=optional, mode=mode, room=room)

    if source := volume.get("configMap"):
        return keyed("configmap", source["name"], source, _mode(source))
    if source := volume.get("secret"):
        return keyed("secret", source["secretName"], source, _mode(source))
    if source := volume.get("downwardAPI"):
        return downward_payload(source.get("items") or [], pod, facts, mode=_mode(source), room=room)
    projected = volume["projected"]
    mode = _mode(projected)
    payload: Payload = {}
    for source in projected.get("sources") or ():
        if part := source.get("configMap"):
            payload |= keyed("configmap", part["name"], part, mode)
        elif part := source.get("secret"):
            payload |= keyed("secret", part["name"], part, mode)
        elif part := source.get("downwardAPI"):
            payload |= downward_payload(part.get("items") or [], pod, facts, mode=mode, room=room)
        elif part := source.get("serviceAccountToken"):
            payload[safe_path(part["path"])] = File(room.take(token(part).encode()), mode & 0o640 | 0o600)
        else:
            raise VolumeError(f"a projected source {', '.join(source)} is not served by this platform")
    return payload


def _mode(source: Mapping[str, object]) -> int:
    mode = source.get("defaultMode")
    return int(mode) if isinstance(mode, int) else DEFAULT_MODE


def safe_path(path: str) -> str:
    """A path inside the volume; what would leave it, or collide with its bookkeeping, is refused."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts) or parts[0].startswith(".."):
        raise VolumeError(f"path {path!r} must be relative and stay inside the volume")
    return path
