"""One file of a sync: written beside its place, compared with what was promised, and only then given its name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from paddlecloud.cache.errors import WorkFailed
from paddlecloud.cache.manifest import File
from paddlecloud.storage.sources import CHUNK, Entry

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def land(entry: Entry, pieces: Iterable[bytes], *, root: str, target: str, draft: str, perms: bool) -> File:
    """Write `pieces` to `draft` and move it to `target`, both below `root`. Raises `WorkFailed`, `OSError`."""
    digest = hashlib.new(_kind(entry), usedforsecurity=False)
    mtime = _nanoseconds(entry)
    draft, path = (os.path.join(root, name) for name in (draft, target))
    descriptor = os.open(draft, _NEW_FILE, 0o644)
    try:
        size = 0
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            _write(descriptor, piece)
        if size != entry.size:
            raise WorkFailed(f"{size} bytes arrived, {entry.size} were promised: it changed while it was read")
        if entry.md5 and digest.hexdigest() != entry.md5:
            raise WorkFailed("what arrived has another hash than the store reports")
        if perms and entry.mode is not None:
            os.fchmod(descriptor, entry.mode)
        os.utime(descriptor, ns=(mtime, mtime))
    finally:
        os.close(descriptor)
    try:
        os.rename(draft, path)
    except IsADirectoryError:
        raise WorkFailed("a folder of that name is in the way") from None
    return File(target, size, mtime, f"{digest.name}:{digest.hexdigest()}")


def has_time_of(entry: Entry, mtime: int) -> bool:
    """Whether a file of this time, in nanoseconds, can be the entry as `land` left it. Some file systems keep whole
    seconds only."""
    wanted, second = _nanoseconds(entry), 1_000_000_000
    return mtime == wanted or (mtime % second == 0 and mtime // second == wanted // second)


def hash_of(path: str, entry: Entry) -> str:
    """The hash of a file that is there, of the kind that the source gives for the entry."""
    digest = hashlib.new(_kind(entry), usedforsecurity=False)
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return f"{digest.name}:{digest.hexdigest()}"


def _nanoseconds(entry: Entry) -> int:
    return int(entry.mtime * 1e9)


def _kind(entry: Entry) -> str:
    return "md5" if entry.md5 else "sha256"


def _write(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while len(view):
        view = view[os.write(descriptor, view) :]
