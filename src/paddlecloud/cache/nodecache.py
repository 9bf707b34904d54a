"""The cached files of one node: copies under the same names in the folders of its levels, and an index of them.

A copy costs nothing where it can be a hard link or share blocks with the original. Copies carry the time of their
original, so that size and time show whether one is still true; programs find them by trying the folders in
order. The index (SQLite, in the server's own folder) is what is counted, so no tree is walked to know how full we are.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from paddlecloud.cache.confine import OWN, Confined
from paddlecloud.cache.levels import Level, spare
from paddlecloud.cache.manifest import File, walk
from paddlecloud.cache.placement import Held

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS copies (
    path BLOB PRIMARY KEY, folder TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, used REAL NOT NULL,
    own INTEGER NOT NULL  -- made by us, with the time of its original; others' copies have the time of copying
) WITHOUT ROWID;
"""
_STRANGERS = """
SELECT path FROM copies WHERE NOT EXISTS (
    SELECT 1 FROM data.files AS file WHERE file.path = copies.path AND file.size = copies.size
    AND (file.mtime = copies.mtime OR (NOT copies.own AND file.mtime < copies.mtime)))
"""
_FICLONE = 0x40049409
INCOMING = "incoming"
"""Where others leave unfinished files, in our folder of a cache folder (`paddlecloud.data`)."""
RECOUNT_PAUSE = 10.0


class NodeCache:
    def __init__(self, index: Path, levels: Sequence[Level]) -> None:
        self.levels = list(levels)
        self._level_of = {folder: number for number, level in enumerate(levels) for folder in level.folders}
        self._trees = {folder: Confined(folder) for folder in self._level_of}
        for folder in self._level_of:
            os.makedirs(folder, exist_ok=True)
        index.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(index, check_same_thread=False, timeout=30, isolation_level=None)
        self._db.executescript(_SCHEMA)
        self.recount()

    def close(self) -> None:
        self._db.close()

    # Counting

    def recount(self) -> None:
        """Look once at what is really there: after a start the index may be behind, or the folders may be new."""
        self._stamps, self._recounted = self._incoming(), time.monotonic()
        found: list[tuple[bytes, str, int, int]] = []
        for folder in self._level_of:
            found += [(os.fsencode(file.path), folder, file.size, file.mtime) for file in walk(folder)]
        with self._lock:
            rows = self._db.execute("SELECT path, mtime, used, own FROM copies").fetchall()
            known = {(path, mtime): (used, own) for path, mtime, used, own in rows}
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM copies")
            kept = [(*row, *known.get((row[0], row[3]), (0.0, 0))) for row in found]
            self._db.executemany("INSERT OR IGNORE INTO copies VALUES (?, ?, ?, ?, ?, ?)", kept)
            self._db.execute("COMMIT")
            self._count()

    def recount_if_others_changed(self) -> None:
        """Training programs that fetch ahead change the first folder themselves; what they write passes `incoming`.

        The one walk we ever make between jobs, and only after such changes, with a pause between two.
        """
        now = time.monotonic()
        if now - self._recounted < RECOUNT_PAUSE:
            return
        stamps = self._incoming()
        if stamps != self._stamps:
            self.recount()

    def _incoming(self) -> list[int]:
        found = []
        for folder in self._level_of:
            with contextlib.suppress(FileNotFoundError):
                found.append(os.stat(os.path.join(folder, OWN, INCOMING)).st_mtime_ns)
        return found

    def _count(self) -> None:
        rows = self._db.execute("SELECT folder, COUNT(*), SUM(size) FROM copies GROUP BY folder").fetchall()
        self._files = dict.fromkeys(self._level_of, 0) | {row[0]: row[1] for row in rows}
        self._bytes = dict.fromkeys(self._level_of, 0) | {row[0]: row[2] for row in rows}

    @property
    def files(self) -> int:
        return sum(self._files.values())

    def used(self, level: int) -> int:
        return sum(self._bytes[folder] for folder in self.levels[level].folders)

    def capacity(self, level: int, data: str) -> float:
        """Bytes we may keep on a level: its quota, and what its disk gives where copies take room of their own."""
        quota = self.levels[level].quota or float("inf")
        own = [folder for folder in self.levels[level].folders if not can_link(data, folder)]
        if not own:
            return quota
        return min(quota, self.used(level) + sum(spare(folder) for folder in own))

    # Copies

    def held(self, original: dict[str, File]) -> dict[str, Held]:
        """What is cached, with its level; copies whose original is another file by now are not counted as such."""
        with self._lock:
            rows = self._db.execute("SELECT path, folder, size, mtime, used, own FROM copies").fetchall()
        held = {}
        for raw, folder, size, mtime, used, own in rows:
            path = os.fsdecode(raw)
            file = original.get(path)
            if file is None or (file.size == size and (file.mtime == mtime or (not own and file.mtime < mtime))):
                held[path] = Held(size, self._level_of[folder], used)
        return held

    def fetch(self, file: File, level: int, data: str) -> None:
        """Bring a file in. Raises OSError."""
        folders = self.levels[level].folders
        folder = min(folders, key=lambda each: self._bytes[each])
        self._trees[folder].make_folder(file.path.rpartition("/")[0])
        target = os.path.join(folder, file.path)
        draft = os.path.join(folder, OWN, f"draft-{threading.get_native_id()}")
        os.makedirs(os.path.dirname(draft), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        duplicate(os.path.join(data, file.path), draft)
        os.rename(draft, target)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)  # renaming a link onto its twin does nothing and leaves both
        self._note(file, folder)

    def _note(self, file: File, folder: str) -> None:
        row = (os.fsencode(file.path), folder, file.size, file.mtime, time.time(), 1)
        with self._lock:
            old = self._db.execute("SELECT folder, size FROM copies WHERE path = ?", row[:1]).fetchone()
            self._db.execute("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?, ?)", row)
            if old is not None:
                self._files[old[0]] -= 1
                self._bytes[old[0]] -= old[1]
            self._files[folder] += 1
            self._bytes[folder] += file.size

    def find(self, file: File) -> str | None:
        """Where a true copy lies. Looks at the file itself."""
        for folder in self._level_of:
            path = os.path.join(folder, file.path)
            try:
                info = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if info.st_size == file.size and info.st_mtime_ns >= file.mtime:
                return path
        return None

    def drop(self, paths: Iterable[str]) -> None:
        for path in paths:
            key = (os.fsencode(path),)
            with self._lock:
                row = self._db.execute("SELECT folder, size FROM copies WHERE path = ?", key).fetchone()
                if row is None:
                    continue
                self._db.execute("DELETE FROM copies WHERE path = ?", key)
                self._files[row[0]] -= 1
                self._bytes[row[0]] -= row[1]
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                self._trees[row[0]].remove(path)

    def drop_strangers(self, manifest: str) -> int:
        """Drop copies of files that are gone, or are other files by now; says how many."""
        with self._lock:
            self._db.execute("ATTACH ? AS data", (manifest,))
            try:
                rows = self._db.execute(_STRANGERS).fetchall()
            finally:
                self._db.execute("DETACH data")
        self.drop(os.fsdecode(row[0]) for row in rows)
        return len(rows)

    def clear(self, folder: str, inner: str) -> None:
        """Empty a folder of the cache, or remove one path in it."""
        tree = self._trees[folder]
        if inner:
            tree.remove(inner)
        else:
            tree.empty()
        low = os.fsencode(inner) + b"/" if inner else b""
        high = low[:-1] + b"0" if inner else b"\xff"
        with self._lock:
            self._db.execute(
                "DELETE FROM copies WHERE folder = ? AND (path = ? OR (path >= ? AND path < ?))",
                (folder, os.fsencode(inner), low, high),
            )
            self._count()


def can_link(data: str, folder: str) -> bool:
    """Whether copies take no room: the same file system, where hard links are allowed."""
    return os.stat(data).st_dev == os.stat(folder).st_dev


def duplicate(source: str, target: str) -> None:
    """A hard link, else shared blocks, else a copy; with the original's time in any case."""
    real = os.path.realpath(source)
    try:
        os.link(real, target)
        return
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise
    with open(real, "rb") as origin, open(target, "wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, origin.fileno())
        except OSError:
            shutil.copyfileobj(origin, copy, 1 << 20)
    info = os.stat(real)
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
