"""What files a set has, in one order on every server, with size, time and hash: an SQLite file.

Totals are kept by triggers, so that asking for them costs the same for ten files and for a million. Paths are bytes:
file systems know no encoding. The file is shared by the cache servers of one machine, one of which writes at a time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

NAME, LOCK = "manifest.db", "manifest.lock"

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS files (
    path BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL, hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals (files INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM totals);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON files BEGIN
    UPDATE totals SET files = files + 1, bytes = bytes + new.size; END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON files BEGIN
    UPDATE totals SET files = files - 1, bytes = bytes - old.size; END;
CREATE TRIGGER IF NOT EXISTS changed AFTER UPDATE ON files BEGIN
    UPDATE totals SET bytes = bytes + new.size - old.size; END;
"""

_PUT = (
    "INSERT INTO files VALUES (?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET "
    "size = excluded.size, mtime = excluded.mtime, hash = excluded.hash"
)


class File(NamedTuple):
    path: str
    size: int
    mtime: int
    """Nanoseconds, of the file in the set."""
    hash: str = ""
    """`md5:…` or `sha256:…` of what was copied; empty for a file that was found, not copied."""


class SampleManifest:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, timeout=30, isolation_level=None)
        with path.with_name(LOCK).open("w") as lock:  # the servers of a machine start at the same moment
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def put(self, files: Iterable[File]) -> None:
        rows = [(os.fsencode(file.path), file.size, file.mtime, file.hash) for file in files]
        self._many(_PUT, rows)

    def remove(self, paths: Iterable[str]) -> None:
        self._many("DELETE FROM files WHERE path = ?", [(os.fsencode(path),) for path in paths])

    def remove_below(self, folder: str) -> None:
        """A path and everything under it."""
        low, high = _range(folder)
        with self._lock:
            self._db.execute("DELETE FROM files WHERE path = ? OR (path >= ? AND path < ?)", (low[:-1], low, high))

    def _many(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        if not rows:
            return
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(sql, rows)
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if "disk is full" in str(error):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
                raise

    def get(self, path: str) -> File | None:
        with self._lock:
            row = self._db.execute(
                "SELECT size, mtime, hash FROM files WHERE path = ?", (os.fsencode(path),)
            ).fetchone()
        return File(path, *row) if row else None

    def totals(self) -> tuple[int, int]:
        """Files and bytes."""
        with self._lock:
            row = self._db.execute("SELECT files, bytes FROM totals").fetchone()
        return int(row[0]), int(row[1])

    def count(self, folder: str) -> int:
        """Files below a folder; of the whole set, where it is empty."""
        if not folder:
            return self.totals()[0]
        with self._lock:
            row = self._db.execute("SELECT COUNT(*) FROM files WHERE path >= ? AND path < ?", _range(folder)).fetchone()
        return int(row[0])

    def version(self) -> int:
        """Changes whenever another connection, in whatever process, has written."""
        with self._lock:
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def files(self, folder: str = "") -> Iterator[File]:
        """Everything at or below a path, in the order of bytes."""
        last = b""
        low, high = _range(folder) if folder else (b"", b"\xff")
        single = self.get(folder) if folder else None
        if single is not None:
            yield single
        while True:
            with self._lock:
                rows = self._db.execute(
                    "SELECT path, size, mtime, hash FROM files WHERE path > ? AND path >= ? AND path < ? "
                    "ORDER BY path LIMIT 2000",
                    (last, low, high),
                ).fetchall()
            for row in rows:
                yield File(os.fsdecode(row[0]), row[1], row[2], row[3])
            if len(rows) < 2000:
                return
            last = rows[-1][0]

    def reconcile(self, found: Iterator[File]) -> None:
        """Take over what a walk found (in the order of bytes): files put there or removed by others.

        A file whose size and time are as recorded keeps its hash.
        """
        changed: list[File] = []
        gone: list[str] = []
        known = self.files()
        old = next(known, None)
        for file in found:
            name = os.fsencode(file.path)
            while old is not None and os.fsencode(old.path) < name:
                gone.append(old.path)
                old = next(known, None)
            if old is not None and old.path == file.path:
                if (old.size, old.mtime) != (file.size, file.mtime):
                    changed.append(file)
                old = next(known, None)
            else:
                changed.append(file)
            if len(changed) >= 2000:
                self.put(changed)
                changed.clear()
        while old is not None:
            gone.append(old.path)
            old = next(known, None)
        self.put(changed)
        self.remove(gone)


def _range(folder: str) -> tuple[bytes, bytes]:
    low = os.fsencode(folder.strip("/")) + b"/"
    return low, low[:-1] + b"0"  # "0" follows "/"


def walk(root: str, inner: str = "") -> Iterator[File]:
    """Every regular file below a folder in the order of bytes; hidden ones and links to folders or out are left out."""
    try:
        with os.scandir(os.path.join(root, inner)) as listing:
            found = [item for item in listing if not item.name.startswith(".")]
    except FileNotFoundError:
        return
    keyed = []
    for item in found:
        is_folder = item.is_dir(follow_symlinks=False)
        keyed.append((os.fsencode(item.name) + (b"/" if is_folder else b""), is_folder, item))
    keyed.sort(key=lambda entry: entry[0])
    for _, is_folder, item in keyed:
        path = f"{inner}/{item.name}" if inner else item.name
        if is_folder:
            yield from walk(root, path)
            continue
        try:
            info = item.stat()
        except FileNotFoundError:
            continue  # removed meanwhile, or a link to nowhere
        if stat.S_ISREG(info.st_mode) and not (item.is_symlink() and leads_out(item.path, root)):
            yield File(path, info.st_size, info.st_mtime_ns)


def leads_out(link: str, root: str) -> bool:
    """A user who may write to the set must not get files read that this user may not read."""
    base = os.path.realpath(root)
    return os.path.commonpath((base, os.path.realpath(link))) != base
