"""Which versions a store has, and what their manifests say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paddlecloud.api.model import reference
from paddlecloud.modelhub import layout, manifest
from paddlecloud.modelhub.errors import Damaged, UnknownVersion
from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.storage.errors import Missing
from paddlecloud.storage.stores import Store

LARGEST_MANIFEST = 64 << 20


class VersionKey(NamedTuple):
    namespace: str
    model: str
    version: str

    @property
    def key(self) -> str:
        return layout.version(*self)

    def __str__(self) -> str:
        return f"{self.model}:{self.version} of namespace {self.namespace}"


def version_key(namespace: str, model: str, version: str) -> VersionKey:
    """Raises `BadReference`: only names of the grammar become parts of keys."""
    names = reference.namespace_name(namespace), reference.model_name(model), reference.version_name(version)
    return VersionKey(*names)


def find(store: Store, which: VersionKey) -> Manifest | None:
    """None if there is no such version. Raises `Damaged` for a manifest that was changed."""
    content = bytearray()
    try:
        for piece in store.read(which.key):
            content += piece
            if len(content) > LARGEST_MANIFEST:
                raise Damaged(f"the manifest of {which} is larger than {LARGEST_MANIFEST >> 20} MiB")
    except Missing:
        return None
    found = manifest.decode(bytes(content), f"the manifest of {which}")
    if (found.namespace, found.model, found.version) != which:
        raise Damaged(f"the manifest of {which} is that of {found.model}:{found.version} of {found.namespace}")
    return found


def get(store: Store, which: VersionKey) -> Manifest:
    """Raises `UnknownVersion`."""
    found = find(store, which)
    if found is None:
        raise UnknownVersion(f"the store has no version {which}")
    return found


def versions(store: Store, namespace: str = "", model: str = "") -> Iterator[VersionKey]:
    """All of a store, of a namespace or of a model, by their keys alone."""
    return (which for which, _ in versions_and_times(store, namespace, model))


def versions_and_times(store: Store, namespace: str = "", model: str = "") -> Iterator[tuple[VersionKey, float]]:
    """The same, each with the time at which its manifest was written."""
    prefix = layout.VERSIONS
    if namespace:
        prefix += reference.namespace_name(namespace) + "/"
        if model:
            prefix += reference.model_name(model) + "/"
    for entry in store.list(prefix):
        parts = entry.key.removeprefix(layout.VERSIONS).removesuffix(".json").split("/")
        if len(parts) == 3:
            yield VersionKey(*parts), entry.mtime


def remove(store: Store, which: VersionKey) -> bool:
    """The version is gone at once, its files with the next garbage collection. False if there was none."""
    existed = store.size(which.key) is not None
    store.delete(which.key)
    return existed
