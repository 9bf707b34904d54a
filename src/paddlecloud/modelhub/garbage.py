"""Garbage collection: copies that no manifest names, marked in one run and removed in a later one.

A push never uses a marked copy, and a mark must be as old as the grace time before its copy is removed: by then every
push that chose the copy before it was marked has created its manifest, which is read after the marks. Keys of copies
are never used again. So runs need no lock, and may be killed, repeated and run at the same time.

Times are those of the store. A clock that goes back only delays.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from paddlecloud.modelhub import catalogue, layout
from paddlecloud.modelhub.errors import Refused
from paddlecloud.storage.sources import Entry
from paddlecloud.storage.stores import Store

GRACE = 24 * 3600.0
SHORTEST_GRACE = 3600.0

Place = tuple[str, str]
"""Digest and copy."""
Fate = Literal["kept", "removed", "marked", "young"]
"""What a run does with a copy, under the names that `Collected` counts it by."""


@dataclass
class Collected:
    versions: int = 0
    kept: int = 0
    """Copies that manifests name."""
    kept_bytes: int = 0
    marked: int = 0
    """Copies that no manifest names, and that a run after the grace time removes."""
    marked_bytes: int = 0
    young: int = 0
    """Copies that no manifest names yet: they may belong to a push that runs."""
    removed: int = 0
    removed_bytes: int = 0


def collect(store: Store, *, grace: float = GRACE, nobody_pushes: bool = False, dry_run: bool = False) -> Collected:
    """One run. `nobody_pushes` is the caller's promise: then all that no manifest names is removed at once.

    Raises `Damaged` and removes nothing if a manifest cannot be read: what it names is not known.
    """
    if grace < SHORTEST_GRACE and not nobody_pushes:
        raise Refused(f"the grace time must be an hour at least while others may push, not {grace:.0f} s")
    grace = 0.0 if nobody_pushes else grace
    now = _store_time(store)
    marks = {layout.place(entry.key): entry for entry in store.list(layout.CONDEMNED)}
    copies = {layout.place(entry.key): entry for entry in store.list(layout.BLOBS)}
    done = Collected()
    named = set(_named(store, done))  # after the marks were listed
    for place, entry in copies.items():
        mark = marks.get(place)
        fate = _fate(entry, mark, named=place in named, oldest=now - grace, at_once=nobody_pushes)
        _count(done, fate, entry.size)
        if not dry_run:
            _carry_out(store, place, fate, is_marked=mark is not None)
    if not dry_run:
        for place in marks.keys() - (copies.keys() - named):  # of copies that are gone, or are named after all
            store.delete(layout.mark(*place))
        _remove_parts(store, now - grace)
        store.delete_drafts(grace)
    return done


def _fate(copy: Entry, mark: Entry | None, *, named: bool, oldest: float, at_once: bool) -> Fate:
    """What becomes of a copy. Pure; `oldest` is when the grace time began."""
    if named:
        return "kept"
    if at_once or (mark is not None and mark.mtime <= oldest):
        return "removed"
    return "marked" if mark is not None or copy.mtime <= oldest else "young"


def _carry_out(store: Store, place: Place, fate: Fate, *, is_marked: bool) -> None:
    if fate == "removed":
        store.delete(layout.blob(*place))  # the mark is removed after it: a copy without a mark can be used
        store.delete(layout.mark(*place))
    elif fate == "marked" and not is_marked:
        store.create(layout.mark(*place), b"")


def _count(done: Collected, fate: Fate, size: int) -> None:
    if fate == "kept":
        done.kept += 1
        done.kept_bytes += size
    elif fate == "removed":
        done.removed += 1
        done.removed_bytes += size
    elif fate == "marked":
        done.marked += 1
        done.marked_bytes += size
    else:
        done.young += 1


def _remove_parts(store: Store, oldest: float) -> None:
    """Of uploads to the hub that nobody has continued since: the youngest part counts."""
    uploads: dict[str, list[Entry]] = {}
    for entry in store.list(layout.PARTS):
        uploads.setdefault(entry.key.rpartition("/")[0], []).append(entry)
    for parts in uploads.values():
        if max(part.mtime for part in parts) <= oldest:
            for part in parts:
                store.delete(part.key)


def _named(store: Store, done: Collected) -> Iterator[Place]:
    for which in catalogue.versions(store):
        found = catalogue.find(store, which)
        if found is not None:  # removed while we look
            done.versions += 1
            yield from ((file.sha256, file.blob) for file in found.files)


def _store_time(store: Store) -> float:
    key = f"{layout.CLOCK}{secrets.token_hex(8)}"
    store.create(key, b"")
    try:
        return max(entry.mtime for entry in store.list(layout.CLOCK) if entry.key == key)
    finally:
        store.delete(key)
