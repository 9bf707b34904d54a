"""Stores for tests of the model hub: on both kinds, seen through wrappers that stop, wait or move the clock on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from paddlecloud.modelhub import catalogue, verification
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.layout import CLOCK
from paddlecloud.modelhub.manifest import Facts
from paddlecloud.modelhub.push import Pushed, push, read_local
from paddlecloud.storage.sources import Entry
from paddlecloud.storage.stores import Store

FACTS = Facts("ada", "2026-11-18T12:00:00Z")
V1 = VersionKey("default", "ocr", "1")
V2 = VersionKey("default", "ocr", "2")


def folder_of(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def pushed(store: Store, which: VersionKey, folder: Path) -> Pushed:
    return push(store, which, read_local(folder), FACTS)


def faults(store: Store) -> list[str]:
    """What is wrong with the versions that can be seen: nothing, whatever happened before."""
    return [
        f"{which}: {fault.path} {fault.what}"
        for which in catalogue.versions(store)
        for fault in verification.verify(store, catalogue.get(store, which))
    ]


class Wrapped:
    """Every operation passes `before` with its name and key."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def before(self, operation: str, key: str) -> None:
        """For subclasses."""

    def create(self, key: str, content: bytes) -> bool:
        self.before("create", key)
        return self.store.create(key, content)

    def upload(self, key: str, pieces: Iterable[bytes]) -> None:
        self.before("upload", key)
        self.store.upload(key, pieces)

    def read(self, key: str, start: int = 0) -> Iterator[Any]:
        self.before("read", key)
        return self.store.read(key, start)

    def size(self, key: str) -> int | None:
        self.before("size", key)
        return self.store.size(key)

    def list(self, prefix: str) -> Iterator[Entry]:
        self.before("list", prefix)
        return iter(list(self.store.list(prefix)))

    def delete(self, key: str) -> None:
        self.before("delete", key)
        self.store.delete(key)

    def delete_drafts(self, seconds: float) -> int:
        self.before("delete_drafts", "")
        return self.store.delete_drafts(seconds)


class Later(Wrapped):
    """The same store, whose clock is some time further on."""

    def __init__(self, store: Store, seconds: float) -> None:
        super().__init__(store)
        self._seconds = seconds

    def list(self, prefix: str) -> Iterator[Entry]:
        moved = self._seconds if prefix == CLOCK else 0
        return (entry._replace(mtime=entry.mtime + moved) for entry in super().list(prefix))


class Stopped(BaseException):
    """As a kill: no handler of the program catches it."""


class StopsAfter(Wrapped):
    """The writer is gone before its operation number `steps`."""

    def __init__(self, store: Store, steps: int) -> None:
        super().__init__(store)
        self.left = steps

    def before(self, operation: str, key: str) -> None:
        if self.left == 0:
            raise Stopped
        self.left -= 1
