"""A node's cache of one data set: folders, fastest first, in which the copy of `a/b.jpg` is `a/b.jpg`.

A file that is there is whole: it is written beside, under `.paddlecloud/incoming`, and renamed. While it is on its way
its draft shows readers that waiting is cheaper than fetching it again. Several processes share the folders; one at
a time, the keeper, adds and removes files, in the first folder only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

OWN = ".paddlecloud"
TAKEN = ".taken"
STALE = 5.0
"""Seconds without progress after which a draft is taken for dead."""
_POLL = 0.002


class CacheFolders:
    def __init__(self, folders: str) -> None:
        """`folders` are joined by colons."""
        root, *others = [folder for folder in folders.split(":") if folder]
        self.root, self._others = root, others
        self._own = os.path.join(root, OWN)
        self._incoming = os.path.join(self._own, "incoming")

    def read(self, path: str) -> bytes | None:
        """A file of the cache; None if it is not there."""
        if not is_inside(path):
            return None
        for folder in (self.root, *self._others):
            try:
                with open(os.path.join(folder, path), "rb") as file:
                    return file.read()
            except OSError:
                continue
        return None

    def await_incoming(self, path: str) -> None:
        """Wait while a file is on its way here."""
        draft = self._draft(path)
        while True:
            try:
                if time.time() - os.stat(draft).st_mtime > STALE:
                    return
            except OSError:
                return  # it is here, or never was on its way
            time.sleep(_POLL)

    # For the keeper

    def keeper(self) -> IO[bytes] | None:
        """The right to change the cache, held as long as the file is open; None while another process has it."""
        os.makedirs(self._incoming, exist_ok=True)
        lock = open(os.path.join(self._own, "keeper"), "ab")  # noqa: SIM115 - held open on purpose
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
        for name in os.listdir(self._incoming):  # what a keeper that died had begun
            _remove(os.path.join(self._incoming, name))
        return lock

    def sizes(self, paths: Sequence[str]) -> dict[int, int]:
        """Which of these files are in the keeper's folder, by index, and how large."""
        return _sizes(self.root, paths)

    def elsewhere(self, paths: Sequence[str]) -> set[int]:
        """Which of them are in the other folders."""
        return {index for folder in self._others for index in _sizes(folder, paths)}

    def room(self) -> int:
        """Bytes free on the disk of the cache."""
        return shutil.disk_usage(self.root).free

    @contextmanager
    def arriving(self, path: str) -> Iterator[str]:
        """A draft to write a file into; it takes its place when the block ends well, and vanishes when not."""
        draft = self._draft(path)
        try:
            open(draft, "wb").close()
            yield draft
            target = self._at(path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(draft, target)
        except BaseException:
            _remove(draft)
            raise

    def drop(self, path: str) -> None:
        _remove(self._at(path))

    # How far each rank that shares the cache has come

    def seat(self, run: str, rank: int) -> Seat:
        """Take part in a run; raises OSError where the cache cannot be written or the seat is taken."""
        folder = os.path.join(self._own, run)
        os.makedirs(folder, exist_ok=True)
        return Seat(os.path.join(folder, str(rank)))

    def positions(self, run: str) -> dict[int, int]:
        """By rank, of those that are alive."""
        folder = os.path.join(self._own, run)
        found = {int(name): position_in(os.path.join(folder, name)) for name in os.listdir(folder) if name.isdigit()}
        return {rank: position for rank, position in found.items() if position is not None}

    def taken(self, run: str, rank: int, seen: int) -> list[int]:
        """What peers took from a rank, but for the first `seen` of them."""
        try:
            with open(os.path.join(self._own, run, f"{rank}{TAKEN}"), "rb") as file:
                file.seek(8 * seen)
                return [number for (number,) in struct.iter_unpack("<q", file.read(1 << 20))]
        except (OSError, struct.error):
            return []  # nothing, or its end is being written

    def _at(self, path: str) -> str:
        if not is_inside(path):
            raise ValueError(f"{path} leads out of the cache")
        return os.path.join(self.root, path)

    def _draft(self, path: str) -> str:
        return os.path.join(self._incoming, hashlib.sha256(os.fsencode(path)).hexdigest()[:32])


def is_inside(path: str) -> bool:
    """Whether a path stays below a folder, and out of what is ours in it. Lists of files may say anything."""
    if path[:1] not in ("/", ".", "") and ".." not in path:
        return True  # plainly so; asked for every sample that is read
    first = os.path.normpath(path).split(os.sep, 1)[0]
    return not os.path.isabs(path) and first not in (os.pardir, OWN)


class Seat:
    """A rank's place in a run: a file that it keeps locked while it lives, and in which it says how far it is."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise
        self.publish(0)

        self._taken = os.open(path + TAKEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)

    def publish(self, position: int) -> None:
        os.pwrite(self._file, b"%020d" % position, 0)

    def publish_taken(self, index: int) -> None:
        """A peer took a file over: it may go here."""
        os.write(self._taken, struct.pack("<q", index))


def position_in(path: str) -> int | None:
    """What a seat says; None if nobody sits there."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(file, 20, 0)
        return int(text) if len(text) == 20 else 0
    finally:
        os.close(file)
    return None


def _sizes(root: str, paths: Sequence[str]) -> dict[int, int]:
    index = {path: number for number, path in enumerate(paths)}
    found: dict[int, int] = {}
    for folder, folders, files in os.walk(root):
        if folder == root and OWN in folders:
            folders.remove(OWN)
        for name in files:
            where = os.path.join(folder, name)
            number = index.get(os.path.relpath(where, root))
            if number is not None:
                found[number] = os.stat(where).st_size
    return found


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # gone already, or not ours to remove: either way there is nothing to do about it
