"""One stored object: its newest bytes, and the little that filters need to know without decoding all of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from paddlecloud.kube.resource import Object


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Meta


_decode_head = msgspec.json.Decoder(_Head).decode
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class Address(NamedTuple):
    """Where an object lives: its collection (`group/plural`), namespace ("" if cluster-scoped) and name."""

    collection: str
    namespace: str
    name: str

    def key(self) -> str:
        return f"{self.collection}/{self.namespace}/{self.name}"

    @staticmethod
    def from_key(key: str) -> Address:
        group, plural, namespace, name = key.split("/", 3)
        return Address(f"{group}/{plural}", namespace, name)


class Record:
    """Immutable. `object` decodes a fresh dict each time, so callers may change what they get."""

    __slots__ = ("_labels", "address", "rev", "value")

    def __init__(self, address: Address, rev: int, value: bytes) -> None:
        self.address = address
        self.rev = rev
        self.value = value
        self._labels: dict[str, str] | None = None

    @property
    def object(self) -> Object:
        decoded: dict[str, Any] = _decode(self.value)
        return decoded

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = _decode_head(self.value).metadata.labels or {}
        return self._labels
