"""The revision log on disk: one append-only table, one writer.

    log(rev, key, prev, op, value)

`rev` grows by one with every write and is what Kubernetes calls the resourceVersion. `prev` is the revision of the row
that this one supersedes (0 for the first), so compaction can drop exactly the superseded rows without an index on keys,
and a watcher resuming from the table can still see what an object was before. A deletion is a row too: it carries the
last state of the object, because watchers receive what was deleted.

This module is synchronous and knows nothing of Kubernetes beyond bytes. One caller at a time may write: `append` is
quick (it ends in the page cache of the machine), `sync`, `checkpoint` and `compact` wait for the disk and are meant for
a thread. SQLite itself would sync and checkpoint within a commit; that is switched off, so that a commit never waits.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

FORMAT = 1
"""Version of the layout on disk. A newer number than this means a newer release wrote the directory."""

_CREATE = """
CREATE TABLE IF NOT EXISTS log (
    rev   INTEGER PRIMARY KEY,
    key   TEXT    NOT NULL,
    prev  INTEGER NOT NULL,
    op    INTEGER NOT NULL,
    value BLOB    NOT NULL
);
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_APPEND = "INSERT INTO log (rev, key, prev, op, value) VALUES (?, ?, ?, ?, ?)"
_ALL = "SELECT rev, key, prev, op, value FROM log ORDER BY rev"
_SINCE = "SELECT rev, key, prev, op, value FROM log WHERE rev > ? AND rev <= ? AND substr(key, 1, ?) = ? ORDER BY rev"
_ONE = "SELECT rev, key, prev, op, value FROM log WHERE rev = ?"
_HEAD = "SELECT MAX(rev) FROM log"
_TABLES = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
_GET_META = "SELECT value FROM meta WHERE name = ?"
_SET_META = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_DROP_SUPERSEDED = "DELETE FROM log WHERE rev IN (SELECT prev FROM log WHERE rev > ? AND rev <= ? AND prev > 0)"
_DROP_FROM = "DELETE FROM log WHERE rev >= ?"
_DROP_TOMBSTONES = "DELETE FROM log WHERE rev > ? AND rev <= ? AND op = ?"


CHECKPOINT = 16 * 1024 * 1024
"""Bytes that may gather in the write-ahead log before they are moved into the database."""


class StorageError(Exception):
    """The log cannot be opened, read or written. The message names the file, the cause and what to do."""


class Op(IntEnum):
    CREATE = 1
    UPDATE = 2
    DELETE = 3


class Row(NamedTuple):
    rev: int
    key: str
    prev: int
    op: Op
    value: bytes


class RevisionLog:
    """With `durable`, `sync` makes what was appended reach the disk; without it a power cut, but never a crash of the
    process, may take the last moments with it. The file is consistent either way."""

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        try:
            # Two connections: one writes, in whatever thread; with the other the event loop reads committed history.
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._refuse_newer()
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA wal_autocheckpoint = 0")
            self._db.executescript(_CREATE)
            if self._meta("format") is None:
                self._db.execute(_SET_META, ("format", FORMAT))
        except sqlite3.Error as error:
            raise StorageError(
                f"cannot open {path}: {error}; check that the directory is writable and has free space"
            ) from error
        self._reader = sqlite3.connect(path, isolation_level=None)
        self._files = _open_for_sync(path) if durable else ()
        self._unmoved = 0  # bytes appended since the last checkpoint
        self.gathered = 0
        """Bytes appended since the last compaction."""
        self._retracted: int | None = None  # rows from here on were refused by the disk and must go
        self.compacted = self._meta("compacted") or 0
        # A log whose every row was compacted away still must not hand out old revisions again.
        self.head = max(self._db.execute(_HEAD).fetchone()[0] or 0, self.compacted)

    def _refuse_newer(self) -> None:
        """Before anything is changed: a newer release must find its directory as it left it."""
        found = (self._meta("format") if self._db.execute(_TABLES, ("meta",)).fetchone()[0] else None) or 0
        if found > FORMAT:
            self._db.close()
            raise StorageError(
                f"{self.path} was written by a newer release (layout {found}, this one reads up to {FORMAT}); "
                "upgrade paddlecloud or choose another --data directory"
            )

    def _meta(self, name: str) -> int | None:
        row = self._db.execute(_GET_META, (name,)).fetchone()
        return row[0] if row else None

    def replay(self) -> Iterator[Row]:
        """Every row left, oldest first. Later rows of a key supersede earlier ones."""
        for rev, key, prev, op, value in self._reader.execute(_ALL):
            yield Row(rev, key, prev, Op(op), value)

    def append(self, rows: Sequence[Row]) -> None:
        """All rows in one transaction, or none of them."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            if self._retracted is not None:
                self._db.execute(_DROP_FROM, (self._retracted,))
            self._db.executemany(_APPEND, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise StorageError(f"cannot write to {self.path}: {error}") from error
        self._retracted = None
        size = sum(len(row.value) for row in rows)
        self._unmoved += size + 4096
        self.gathered += size
        self.head = rows[-1].rev

    def sync(self) -> None:
        """Wait until what was appended is on the disk. If it cannot be, the last rows are taken back by `retract`."""
        try:
            for file in self._files:
                os.fdatasync(file)
        except OSError as error:
            raise StorageError(f"{self.path} did not reach the disk: {error.strerror}") from error

    def retract(self, rev: int) -> None:
        """Forget the rows from `rev` on, which were appended but never acknowledged."""
        self._retracted = rev
        self.head = rev - 1

    @property
    def wants_checkpoint(self) -> bool:
        return self._unmoved > CHECKPOINT

    def checkpoint(self) -> None:
        """Move what has gathered in the write-ahead log into the database, and start the log anew."""
        self._unmoved = 0
        try:
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        except sqlite3.Error as error:
            raise StorageError(f"cannot tidy {self.path}: {error}") from error

    def _rollback(self) -> None:
        try:
            self._db.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite has already rolled back by itself, as it does when the disk is full

    def since(self, rev: int, *, upto: int, within: str) -> Iterator[Row]:
        """Rows whose key begins with `within`, one by one: the caller may stop where they are too many."""
        for r, k, p, o, v in self._reader.execute(_SINCE, (rev, upto, len(within), within)):
            yield Row(r, k, p, Op(o), v)

    def row(self, rev: int) -> Row | None:
        found = self._reader.execute(_ONE, (rev,)).fetchone()
        return Row(found[0], found[1], found[2], Op(found[3]), found[4]) if found else None

    def compact(self, upto: int) -> None:
        """Forget history up to and including `upto`: what was superseded by then, and what was deleted by then."""
        self.gathered = 0
        if upto <= self.compacted:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(_DROP_SUPERSEDED, (self.compacted, upto))
            self._db.execute(_DROP_TOMBSTONES, (self.compacted, upto, Op.DELETE))
            self._db.execute(_SET_META, ("compacted", upto))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise StorageError(f"cannot compact {self.path}: {error}") from error
        self.compacted = upto

    def close(self) -> None:
        self._reader.close()
        self._db.close()
        for file in self._files:
            os.close(file)


def _open_for_sync(path: Path) -> tuple[int, ...]:
    """The write-ahead log, which exists as long as the database is open. Its name must be on the disk too."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return (os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC),)
