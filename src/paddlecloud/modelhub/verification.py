"""Whether the store still holds what a manifest says: every byte is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from paddlecloud.modelhub import layout
from paddlecloud.modelhub.manifest import File, Manifest
from paddlecloud.modelhub.push import Progress
from paddlecloud.storage.errors import Missing
from paddlecloud.storage.stores import Store


class Fault(NamedTuple):
    path: str
    what: str


def verify(store: Store, manifest: Manifest, progress: Progress = lambda _: None) -> Iterator[Fault]:
    for file in manifest.files:
        if what := _fault(store, file, progress):
            yield Fault(file.path, what)


def _fault(store: Store, file: File, progress: Progress) -> str:
    digest, size = hashlib.sha256(), 0
    try:
        for piece in store.read(layout.blob(file.sha256, file.blob)):
            digest.update(piece)
            size += len(piece)
            progress(len(piece))
    except Missing:
        return "is missing"
    if size != file.size:
        return f"has {size:,} bytes instead of {file.size:,}"
    return "" if digest.hexdigest() == file.sha256 else "has other bytes than its digest says"
