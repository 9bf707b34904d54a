"""The store as the controller sees it: which manifests it has. What blocks runs in a thread.

A store may hold 100,000 versions, and on S3 each question costs a request, so the keys are listed once and then at long
intervals. Between two lists a version that the last one did not have is asked for by its key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.api.model.reference import BadReference
from paddlecloud.modelhub import catalogue
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.storage.stores import Store


class StoreScan(NamedTuple):
    """What a list of the store showed."""

    gone: frozenset[VersionKey]
    """Manifests that the list before had."""
    found: dict[VersionKey, float]
    """All manifests, with the time at which each was written."""


class ModelStore:
    def __init__(self, store: Store, addresses: tuple[str, ...] = ("",)) -> None:
        """`addresses` are what versions of this store have as `spec.store`: empty for that of the platform. The
        controller writes the first."""
        self.addresses = addresses
        self._store = store
        self._known: set[VersionKey] = set()

    async def scan(self) -> StoreScan:
        """Raises `StorageError`."""
        found = await asyncio.to_thread(lambda: dict(self._listed()))
        gone = frozenset(self._known - found.keys())
        self._known = set(found)
        return StoreScan(gone, found)

    async def has(self, which: VersionKey) -> bool:
        """Raises `StorageError`."""
        if which in self._known:
            return True
        if await asyncio.to_thread(self._store.size, which.key) is None:
            return False
        self._known.add(which)
        return True

    async def manifest(self, which: VersionKey) -> Manifest | None:
        """Raises `StorageError`, and `Damaged` for one that was changed."""
        return await asyncio.to_thread(catalogue.find, self._store, which)

    async def remove(self, which: VersionKey) -> None:
        """Raises `StorageError`. What is gone already is no failure."""
        await asyncio.to_thread(self._store.delete, which.key)
        self._known.discard(which)

    def _listed(self) -> Iterable[tuple[VersionKey, float]]:
        for which, written in catalogue.versions_and_times(self._store):
            try:
                yield catalogue.version_key(*which), written
            except BadReference:
                continue  # somebody else's object
