"""Copies what a source has into a folder: with many threads, verified, and so that it can be broken off at any moment.

A file gets its name only when it is whole (`landing`). What is there under its name can therefore be trusted, and a
sync that begins again skips it. Hashes go to the manifest (`ledger`); a file that it does not know, because the server
died before noting it, is hashed again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from paddlecloud.cache.confine import OWN, Confined
from paddlecloud.cache.errors import Cancelled, WorkFailed
from paddlecloud.cache.manifest import File, SampleManifest
from paddlecloud.cache.options import SyncOptions
from paddlecloud.cache.progress import Task
from paddlecloud.cache.sync.drafts import Drafts
from paddlecloud.cache.sync.landing import has_time_of, hash_of, land
from paddlecloud.cache.sync.ledger import Ledger
from paddlecloud.cache.sync.limiter import Limiter
from paddlecloud.cache.sync.patterns import Selection
from paddlecloud.cache.sync.pruning import delete_others
from paddlecloud.storage.errors import StorageError
from paddlecloud.storage.sources import Entry, Source

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What ends the whole sync: no other file will fare better."""
FULL_QUEUE = 0.2
"""Seconds after which a lister checks whether the sync has ended meanwhile."""


@dataclass
class Copier:
    """One sync. `root` is the data folder, `inner` the place in it that the source's root becomes."""

    source: Source
    root: str
    inner: str
    options: SyncOptions
    manifest: SampleManifest
    task: Task
    single_name: str = ""
    """Name for a source that is one file."""
    _tree: Confined = field(init=False)
    _drafts: Drafts = field(init=False)
    _ledger: Ledger = field(init=False)
    _limit: Limiter | None = field(init=False)
    _abort: Exception | None = field(default=None, init=False)
    """Why the sync is over before its time."""
    _failed_in_a_row: int = field(default=0, init=False)
    _listed: int = field(default=0, init=False)
    """Files of the source."""

    def __post_init__(self) -> None:
        self._tree = Confined(self.root)
        self._drafts = Drafts(self.root)
        self._ledger = Ledger(self.manifest)
        self._limit = Limiter(self.options.bwlimit * 1_000_000 / 8, self.task.pause) if self.options.bwlimit else None

    def run(self) -> None:
        """Raises `WorkFailed` when not everything was copied, `StorageError` when the source cannot be listed."""
        options = self.options
        selection = Selection(include=options.include, exclude=options.exclude, start=options.start, end=options.end)
        self._drafts.open()
        try:
            seen = self._copy_all(selection)
        finally:
            self._ledger.close()
            self._drafts.close()
        self._judge()
        if options.delete_dst:
            self.task.progress.deleted = delete_others(
                self.root,
                self.inner,
                keep=seen,
                selection=selection,
                manifest=self.manifest,
                check=self.task.check,
                dry=options.dry,
            )
        elif not options.dry and not (options.include or options.exclude or options.start or options.end):
            # The manifest has every file that was copied or found unchanged; what else it has is not the source's.
            self.task.progress.only_here = max(0, self.manifest.count(self.inner) - self._listed)
        if not options.dry:
            self._flush()

    def _copy_all(self, selection: Selection) -> set[str]:
        """List here, copy in threads; what the source has, if that matters later."""
        threads = max(1, self.options.threads)
        waiting: queue.Queue[Entry | None] = queue.Queue(maxsize=threads * 8)
        workers = [threading.Thread(target=self._work, args=(waiting,), name=f"sync-{n}") for n in range(threads)]
        seen: set[str] = set()
        for worker in workers:
            worker.start()
        try:
            for entry in self._chosen(selection):
                if self.options.delete_dst:
                    seen.add(self._target(entry))
                self._listed += not entry.is_folder
                self.task.progress.expect(entry.size)
                if not self._hand_out(entry, waiting):
                    break
        finally:
            for _ in workers:
                waiting.put(None)
            for worker in workers:
                worker.join()
        return seen

    def _hand_out(self, entry: Entry, waiting: queue.Queue[Entry | None]) -> bool:
        """Wait for a free worker; False when the sync has ended meanwhile."""
        while not self._ended():
            with contextlib.suppress(queue.Full):
                waiting.put(entry, timeout=FULL_QUEUE)
                return not self._ended()
        return False

    def _ended(self) -> bool:
        return self._abort is not None or self._ledger.error is not None or self.task.cancelled

    def _judge(self) -> None:
        """Raise what kept the sync from being complete."""
        self.task.check()
        if self._abort is not None:
            raise self._abort
        if self._ledger.error is not None:
            raise WorkFailed(self._no_room(self._ledger.error))
        progress = self.task.progress
        if progress.failed:
            examples = "; ".join(progress.failures[:3])
            raise WorkFailed(f"{progress.failed} of {progress.files_total} files were not copied: {examples}")

    def _chosen(self, selection: Selection) -> Iterator[Entry]:
        for entry in self.source.entries(selection.start):
            if entry.is_folder and not self.options.dirs:
                continue
            if not entry.key or selection.takes(entry.key):
                yield entry

    def _target(self, entry: Entry) -> str:
        """Where an entry goes, from the root."""
        key = entry.key.rstrip("/") or (self.single_name if self.options.destination.endswith("/") else "")
        return f"{self.inner}/{key}".strip("/") if key else self.inner

    # Workers

    def _work(self, waiting: queue.Queue[Entry | None]) -> None:
        draft = f"{self._drafts.name}/{threading.get_native_id()}"
        while (entry := waiting.get()) is not None:
            if self._ended():
                continue
            try:
                self._take(entry, draft)
                self._failed_in_a_row = 0
            except Cancelled:
                continue
            except OSError as error:
                self._fail(entry, error.strerror or str(error))
                if error.errno in NO_ROOM:
                    self._abort = WorkFailed(self._no_room(error))
            except StorageError as error:
                self._fail(entry, str(error))
                self._failed_in_a_row += 1
                if self._failed_in_a_row > 2 * self.options.threads:
                    self._abort = error
            except WorkFailed as error:
                self._fail(entry, str(error))

    def _fail(self, entry: Entry, why: str) -> None:
        shown = entry.key.encode("utf-8", "replace").decode() or "the file"
        self.task.progress.fail(f"{shown}: {why}")

    def _take(self, entry: Entry, draft: str) -> None:
        """Do with one entry what the options say."""
        if entry.refused:
            raise WorkFailed(entry.refused)
        target, dry = self._target(entry), self.options.dry
        parts = target.split("/")
        if not target or any(part in ("", ".", "..") for part in parts) or parts[0] == OWN or "\0" in target:
            raise WorkFailed("its name cannot be a file here")
        if entry.is_folder:
            if not dry:
                self._tree.make_folder(target)
            self.task.progress.done(0)
            return
        wanted = self._wanted(entry, target)
        if wanted and not dry:
            self._copy(entry, target, draft)
        self.task.progress.done(entry.size, skipped=not wanted)
        if self.options.delete_src and not dry:
            self.source.delete(entry)

    def _wanted(self, entry: Entry, target: str) -> bool:
        """Whether to copy over what is there. `update` and `force-update` have the rules of `juicefs sync`. Without
        them a file is kept only if nothing says that the source has another one: the hash that the store gives decides,
        else size and time, as rclone decides; `juicefs sync` would look at the size alone and keep what is stale."""
        if self.options.force_update:
            return True
        path = os.path.join(self.root, target)
        try:
            there = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        if self.options.update:
            return int(entry.mtime) > int(there.st_mtime)
        if there.st_size != entry.size:
            return True
        if not entry.md5 and not has_time_of(entry, there.st_mtime_ns):
            return True
        known = self.manifest.get(target)
        is_noted = known is not None and (known.size, known.mtime) == (there.st_size, there.st_mtime_ns)
        digest = known.hash if known is not None and is_noted else ""
        if not digest or (entry.md5 and not digest.startswith("md5:")):
            digest = hash_of(path, entry)
            self._ledger.note(File(target, there.st_size, there.st_mtime_ns, digest))
        return bool(entry.md5) and digest != f"md5:{entry.md5}"

    def _copy(self, entry: Entry, target: str, draft: str) -> None:
        self._tree.make_folder(target.rpartition("/")[0])
        pieces, perms = self._pieces(entry), self.options.perms
        self._ledger.note(land(entry, pieces, root=self.root, target=target, draft=draft, perms=perms))

    def _pieces(self, entry: Entry) -> Iterator[bytes]:
        # What is empty is not read: some file systems have files that never end, such as a mount's access log.
        for piece in self.source.read(entry) if entry.size else ():
            self.task.check()
            if self._limit is not None:
                self._limit.take(len(piece))
            yield piece

    # Around the work

    def _no_room(self, error: OSError) -> str:
        free = shutil.disk_usage(self.root).free
        rest = self.task.progress.bytes_total - self.task.progress.bytes
        needs = f"{free} bytes are free, at least {rest} more are needed"
        return f"{error.strerror} on {self.root}: {needs}; make room and run again"

    def _flush(self) -> None:
        """Have the disk write everything once, instead of once per file."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _syncfs(descriptor)
        finally:
            os.close(descriptor)


def _syncfs(descriptor: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).syncfs(descriptor)
