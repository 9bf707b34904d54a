"""The files of configMap, secret, downwardAPI and projected volumes: from objects to paths, bytes and modes. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.env import ConfigError, Facts, field_value, resource_value
from paddlecloud.local.volumes.errors import VolumeError

DEFAULT_MODE = 0o644


class File(NamedTuple):
    data: bytes
    mode: int = DEFAULT_MODE


Payload = dict[str, File]
Lookup = Callable[[str, str], Object | None]
"""(kind, name) → object of the pod's namespace; kinds are `configmap` and `secret`."""

TokenLookup = Callable[[Object], str]
"""A projected `serviceAccountToken` source → token."""


def keyed_payload(
    kind: str, name: str, obj: Object | None, *, items: list[Object] | None, optional: bool, mode: int
) -> Payload:
    """The keys of a ConfigMap or Secret as files: all of them, or those `items` name at the paths they give."""
    if obj is None:
        if optional:
            return {}
        raise VolumeError(f'{kind} "{name}" not found')
    contents = contents_of(obj)
    if not items:
        return {key: File(data, mode) for key, data in contents.items()}
    payload: Payload = {}
    for item in items:
        if item["key"] not in contents:
            if optional:
                continue
            raise VolumeError(f'references non-existent {kind} key: {item["key"]} of "{name}"')
        payload[safe_path(item["path"])] = File(contents[item["key"]], int(item.get("mode") or mode))
    return payload


def contents_of(obj: Object) -> dict[str, bytes]:
    """A ConfigMap's texts and binaries; a Secret's decoded values."""
    if obj.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    texts = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    return texts | {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def downward_payload(items: list[Object], pod: Object, facts: Facts, *, mode: int) -> Payload:
    payload: Payload = {}
    for item in items:
        try:
            if ref := item.get("fieldRef"):
                text = field_value(pod, ref["fieldPath"], facts)
            else:
                text = resource_value(pod, {}, item["resourceFieldRef"], facts)
        except ConfigError as error:
            raise VolumeError(str(error)) from error
        payload[safe_path(item["path"])] = File(text.encode(), int(item.get("mode") or mode))
    return payload


def volume_payload(volume: Object, pod: Object, facts: Facts, *, lookup: Lookup, token: TokenLookup) -> Payload:
    """The files of one volume that is made of objects."""
    if source := volume.get("configMap"):
        return _keyed("configmap", source["name"], source, lookup, _mode(source))
    if source := volume.get("secret"):
        return _keyed("secret", source["secretName"], source, lookup, _mode(source))
    if source := volume.get("downwardAPI"):
        return downward_payload(source.get("items") or [], pod, facts, mode=_mode(source))
    projected = volume["projected"]
    mode = _mode(projected)
    payload: Payload = {}
    for source in projected.get("sources") or ():
        if part := source.get("configMap"):
            payload |= _keyed("configmap", part["name"], part, lookup, mode)
        elif part := source.get("secret"):
            payload |= _keyed("secret", part["name"], part, lookup, mode)
        elif part := source.get("downwardAPI"):
            payload |= downward_payload(part.get("items") or [], pod, facts, mode=mode)
        elif part := source.get("serviceAccountToken"):
            payload[safe_path(part["path"])] = File(token(part).encode(), mode & 0o640 | 0o600)
        else:
            raise VolumeError(f"a projected source {', '.join(source)} is not served by this platform")
    return payload


def _keyed(kind: str, name: str, source: Object, lookup: Lookup, mode: int) -> Payload:
    return keyed_payload(
        kind,
        name,
        lookup(kind, name),
        items=source.get("items"),
        optional=bool(source.get("optional")),
        mode=mode,
    )


def _mode(source: Mapping[str, object]) -> int:
    mode = source.get("defaultMode")
    return int(mode) if isinstance(mode, int) else DEFAULT_MODE


def safe_path(path: str) -> str:
    """A path inside the volume; what would leave it, or collide with its bookkeeping, is refused."""
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts) or parts[0].startswith(".."):
        raise VolumeError(f"path {path!r} must be relative and stay inside the volume")
    return path
