"""Copies what a source has into a folder: with many threads, verified, and so that it can be broken off at any moment.

A file is written beside its place, its size and, where the source tells one, its hash are compared, and only then does
it get its name. What is there under its name is therefore whole, and a sync that begins again skips it. Hashes go to
the manifest; a file that it does not know (the server died before noting it) is hashed again instead of trusted.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from paddlecloud.cache.confine import OWN, Confined
from paddlecloud.cache.errors import Cancelled, WorkFailed
from paddlecloud.cache.manifest import File, Manifest, walk
from paddlecloud.cache.options import SyncOptions
from paddlecloud.cache.progress import Task
from paddlecloud.cache.sync.patterns import Selection
from paddlecloud.storage.errors import StorageError
from paddlecloud.storage.sources import CHUNK, Entry, Source

BATCH = 500
"""Files noted in the manifest at a time."""
UNFINISHED = f"{OWN}/unfinished"


@dataclass
class Copier:
    """One sync. `root` is the data folder, `inner` the place in it that the source's root becomes."""

    source: Source
    root: str
    inner: str
    options: SyncOptions
    manifest: Manifest
    task: Task
    single_name: str = ""
    """Name for a source that is one file."""
    _tree: Confined = field(init=False)
    _limit: Limiter | None = field(init=False)
    _noted: list[File] = field(default_factory=list, init=False)
    _noting: threading.Lock = field(default_factory=threading.Lock, init=False)
    _abort: Exception | None = field(default=None, init=False)
    _failed_in_a_row: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._tree = Confined(self.root)
        self._limit = Limiter(self.options.bwlimit * 1_000_000 / 8, self.task.pause) if self.options.bwlimit else None

    def run(self) -> None:
        """Raises `WorkFailed` when not everything was copied, `StorageError` when the source cannot be listed."""
        options = self.options
        selection = Selection(include=options.include, exclude=options.exclude, start=options.start, end=options.end)
        threads = max(1, options.threads)
        waiting: queue.Queue[Entry | None] = queue.Queue(maxsize=threads * 8)
        self._clean_up()
        workers = [threading.Thread(target=self._work, args=(waiting,), name=f"sync-{n}") for n in range(threads)]
        seen: set[str] = set()
        for worker in workers:
            worker.start()
        try:
            for entry in self._chosen(selection):
                if options.delete_dst:
                    seen.add(self._target(entry))
                self.task.progress.expect(entry.size)
                while not self._ended():
                    with contextlib.suppress(queue.Full):
                        waiting.put(entry, timeout=0.2)
                        break
                if self._ended():
                    break
        finally:
            for _ in workers:
                waiting.put(None)
            for worker in workers:
                worker.join()
            self._note(())
            self._clean_up()
        self.task.check()
        if self._abort is not None:
            raise self._abort
        self._judge()
        if options.delete_dst and not options.dry:
            self._delete_others(seen, selection)
        if not options.dry:
            self._flush()

    def _ended(self) -> bool:
        return self._abort is not None or self.task.cancelled

    def _judge(self) -> None:
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
        scratch = f"{UNFINISHED}/{threading.get_native_id()}"
        while (entry := waiting.get()) is not None:
            if self._ended():
                continue
            try:
                self._take(entry, scratch)
                self._failed_in_a_row = 0
            except Cancelled:
                continue
            except OSError as error:
                self._fail(entry, error.strerror or str(error))
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                    self._abort = WorkFailed(_full(self.root, error, self.task))
            except StorageError as error:
                self._fail(entry, str(error))
                self._failed_in_a_row += 1
                if self._failed_in_a_row > 2 * self.options.threads:
                    self._abort = error
            except WorkFailed as error:
                self._fail(entry, str(error))

    def _fail(self, entry: Entry, why: str) -> None:
        self.task.progress.fail(f"{_shown(entry.key)}: {why}")

    def _take(self, entry: Entry, scratch: str) -> None:
        target = self._target(entry)
        parts = target.split("/")
        if not target or any(part in ("", ".", "..") for part in parts) or parts[0] == OWN or "\0" in target:
            raise WorkFailed("its name cannot be a file here")
        path = os.path.join(self.root, target)
        if entry.is_folder:
            if not self.options.dry:
                self._tree.make_folder(target)
            self.task.progress.done(0)
            return
        if not self._wanted(entry, target, path):
            self.task.progress.done(entry.size, skipped=True)
        elif self.options.dry:
            self.task.progress.done(entry.size)
        else:
            self._copy(entry, target, path, scratch)
            self.task.progress.done(entry.size)
        if self.options.delete_src and not self.options.dry:
            self.source.delete(entry)

    def _wanted(self, entry: Entry, target: str, path: str) -> bool:
        """Whether to copy over what is there, by the rules of `juicefs sync`, and never trusting what nobody noted."""
        if self.options.force_update:
            return True
        try:
            there = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        if self.options.update:
            return int(entry.mtime) > int(there.st_mtime)
        if there.st_size != entry.size:
            return True
        known = self.manifest.get(target)
        if known is not None and known.hash and (known.size, known.mtime) == (there.st_size, there.st_mtime_ns):
            return False
        digest = _hash_of(path, "md5" if entry.md5 else "sha256")
        if entry.md5 and digest != f"md5:{entry.md5}":
            return True
        self._note((File(target, there.st_size, there.st_mtime_ns, digest),))
        return False

    def _copy(self, entry: Entry, target: str, path: str, scratch: str) -> None:
        self._tree.make_folder(target.rpartition("/")[0])
        draft = os.path.join(self.root, scratch)
        kind = "md5" if entry.md5 else "sha256"
        digest = hashlib.new(kind, usedforsecurity=False)
        size = 0
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            # What is empty is not read: some file systems have files that never end, such as a mount's access log.
            for piece in self.source.read(entry) if entry.size else ():
                self.task.check()
                if self._limit is not None:
                    self._limit.take(len(piece))
                digest.update(piece)
                size += len(piece)
                view = memoryview(piece)
                while len(view):
                    view = view[os.write(descriptor, view) :]
            if size != entry.size:
                raise WorkFailed(f"{size} bytes arrived, {entry.size} were promised: it changed while it was read")
            if entry.md5 and digest.hexdigest() != entry.md5:
                raise WorkFailed("what arrived has another hash than the store tells")
            if self.options.perms and entry.mode is not None:
                os.fchmod(descriptor, entry.mode)
            times = (int(entry.mtime * 1e9), int(entry.mtime * 1e9))
            os.utime(descriptor, ns=times)
        finally:
            os.close(descriptor)
        try:
            os.rename(draft, path)
        except IsADirectoryError:
            raise WorkFailed("a folder of that name is in the way") from None
        self._note((File(target, size, times[1], f"{kind}:{digest.hexdigest()}"),))

    # Book-keeping

    def _note(self, files: tuple[File, ...]) -> None:
        """Gather for the manifest; nothing at all writes what was gathered."""
        with self._noting:
            self._noted += files
            if self._noted and (not files or len(self._noted) >= BATCH):
                try:
                    self.manifest.put(self._noted)
                except OSError as error:  # the files are whole all the same: the next sync looks at them again
                    self._abort = self._abort or WorkFailed(_full(self.root, error, self.task))
                self._noted.clear()

    def _clean_up(self) -> None:
        folder = os.path.join(self.root, UNFINISHED)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, exist_ok=True)

    def _delete_others(self, seen: set[str], selection: Selection) -> None:
        """What the source does not have, as far as the selection reaches. Hidden files are left alone."""
        cut = len(self.inner) + 1 if self.inner else 0
        doomed = [
            file.path
            for file in walk(self.root, self.inner)
            if file.path not in seen and selection.takes(file.path[cut:])
        ]
        for path in doomed:
            self.task.check()
            with contextlib.suppress(FileNotFoundError):
                self._tree.remove(path)
        self.manifest.remove(doomed)
        self._remove_empty_folders({path.rpartition("/")[0] for path in doomed})

    def _remove_empty_folders(self, folders: set[str]) -> None:
        for folder in sorted(folders, key=len, reverse=True):
            while folder and folder != self.inner:
                try:
                    os.rmdir(os.path.join(self.root, folder))
                except OSError:
                    break  # something is left in it
                folder = folder.rpartition("/")[0]

    def _flush(self) -> None:
        """Have the disk write everything once, instead of once per file."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _syncfs(descriptor)
        finally:
            os.close(descriptor)


class Limiter:
    """So many bytes a second for all threads together."""

    def __init__(
        self, rate: float, pause: Callable[[float], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock()

    def take(self, size: int) -> None:
        with self._lock:
            now = self._clock()
            begin = max(now, self._free_at)
            self._free_at = begin + size / self._rate
        if begin > now:
            self._pause(begin - now)


def _hash_of(path: str, kind: str) -> str:
    digest = hashlib.new(kind, usedforsecurity=False)
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return f"{kind}:{digest.hexdigest()}"


def _full(root: str, error: OSError, task: Task) -> str:
    free = shutil.disk_usage(root).free
    rest = task.progress.bytes_total - task.progress.bytes
    return (
        f"{error.strerror} on {root}: {free} bytes are free, at least {rest} more are needed; make room and run again"
    )


def _shown(key: str) -> str:
    return key.encode("utf-8", "replace").decode() or "the file"


def _syncfs(descriptor: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).syncfs(descriptor)
