"""One stored object: its newest bytes, and the little that filters need to know without decoding all of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from paddlecloud.kube.errors import RequestEntityTooLarge
from paddlecloud.kube.resource import Object


class Meta(msgspec.Struct, rename="camel"):
    """The part of an object's metadata that filters and the garbage collector look at on every write."""

    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: Meta


_decode_head = msgspec.json.Decoder(_Head).decode
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def check_size(value: bytes, largest: int) -> None:
    """Refuse an object that is too large to be stored, in the words that etcd has for it."""
    if len(value) > largest:
        raise RequestEntityTooLarge(
            f"etcdserver: request is too large: the object is {len(value)} bytes with its defaults and managed fields; "
            f"the limit is {largest}: split it into several objects"
        )


class ObjectAddress(NamedTuple):
    """Where an object lives: its collection (`group/plural`), namespace ("" if cluster-scoped) and name."""

    collection: str
    namespace: str
    name: str

    def key(self) -> str:
        return f"{self.collection}/{self.namespace}/{self.name}"

    @staticmethod
    def from_key(key: str) -> ObjectAddress:
        group, plural, namespace, name = key.split("/", 3)
        return ObjectAddress(f"{group}/{plural}", namespace, name)


class Record:
    """Immutable. `object` decodes a fresh dict each time, so callers may change what they get."""

    __slots__ = ("_meta", "address", "rev", "value")

    def __init__(self, address: ObjectAddress, rev: int, value: bytes) -> None:
        self.address = address
        self.rev = rev
        self.value = value
        self._meta: Meta | None = None

    @property
    def object(self) -> Object:
        decoded: dict[str, Any] = _decode(self.value)
        return decoded

    @property
    def meta(self) -> Meta:
        """A partial decode, several times cheaper than `object`, done once."""
        if self._meta is None:
            self._meta = _decode_head(self.value).metadata
        return self._meta

    @property
    def labels(self) -> dict[str, str]:
        return self.meta.labels or {}
