"""The juicefs engine: the set is a JuiceFS mount, and the node's cache is that mount's block cache.

The mount belongs to the CSI driver or the embedded kubelet; here it is read, written and asked.
`juicefs warmup` reports success for data its cache could not keep, so `warmup --check` decides. The cache is emptied
with `warmup --evict`: blocks deleted behind the mount's back stay in its books.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from paddlecloud.cache import manifest as manifests
from paddlecloud.cache import warmup
from paddlecloud.cache.confine import OWN, Confined
from paddlecloud.cache.engines.base import EngineSettings, LevelStatus, Status
from paddlecloud.cache.errors import WorkFailed
from paddlecloud.cache.levels import disks
from paddlecloud.cache.manifest import File, SampleManifest
from paddlecloud.cache.options import Options, PathOptions, SyncOptions, WarmupOptions
from paddlecloud.cache.orders import Orders
from paddlecloud.cache.programs import find_juicefs, run
from paddlecloud.cache.progress import EXAMPLES, Task
from paddlecloud.storage.credentials import Credentials

FEW_FILES = 10_000
"""So many are counted one by one."""
TOTALS_FRESH = 10.0
"""Seconds for which the size of the set is not asked for again."""
CHECKED_AT_ONCE = 1000
"""Files per `juicefs warmup --check`, which is exact to a tenth of a percent: about one file of so many."""
MOST_CHECKS = 24
"""Runs of `juicefs warmup --check` spent on finding out which files are missing."""

_CHECKED = re.compile(r"(\d+) files checked, .* \(([\d.]+)%\) cached")
_SIZES = re.compile(r"^\s*(files|length):.*?(\d+)(?: Bytes\)?)?\s*$", re.MULTILINE)


class JuiceFsEngine:
    def __init__(self, settings: EngineSettings) -> None:
        self._data = settings.data.rstrip("/")
        self._levels = list(settings.levels)
        self._state = settings.state
        self._partition = settings.partition
        self._environment = settings.environment
        self._program = find_juicefs(settings.environment)
        if not os.path.exists(f"{self._data}/.stats"):
            raise WorkFailed(f"{self._data} is no JuiceFS mount: mount the set there, or use --driver=local")
        self._manifest = SampleManifest(settings.state / manifests.NAME)
        folders = [folder for level in settings.levels for folder in level.folders]
        self._orders = Orders(self._data, folders, self._manifest, settings.environment, settings.sources)
        self._lock = threading.Lock()
        self._totals: tuple[float, int, int] = (-TOTALS_FRESH, FEW_FILES + 1, 0)  # not asked for yet: maybe many

    def close(self) -> None:
        self._manifest.close()

    def check(self, kind: str, options: Options) -> None:
        self._orders.check(kind, options)

    # Work

    def sync(self, options: SyncOptions, credentials: Credentials, task: Task) -> None:
        self._orders.copy(options, credentials, task)
        self._stale()
        if not options.dry:
            # What went through the mount lies in this node's cache; it belongs to the server that warms it up.
            self._juicefs(task, "warmup", "--evict", os.path.join(self._data, self._orders.destination(options)))

    def warmup(self, options: WarmupOptions, task: Task) -> None:
        files = warmup.listed(options, self._data, below=self._below, look_up=self._look_up)
        wanted = warmup.share_of(files, options, self._partition)
        task.progress.expect(sum(file.size for file in wanted), len(wanted))
        if not wanted:
            task.cover(0, [])
            return
        if any("\n" in file.path for file in wanted):
            raise WorkFailed("a file name holds a line break; JuiceFS cannot warm it up")
        threads = f"--threads={options.threads or 50}"
        whole = len(wanted) == len(files) and not options.file
        if whole:
            # Everything below some folders: half the time that the same takes as a list of files.
            folders = [os.path.join(self._data, inner) for inner in warmup.inner_paths(options, self._data)]
            self._juicefs(task, "warmup", threads, *folders)
        else:
            with self._list(wanted) as name:
                self._juicefs(task, "warmup", threads, f"--file={name}")
        partial = []
        cached = 0
        for part, folders in parts_of(wanted, by_folder=whole):
            share = self._cached_share(part, task, folders)
            cached += int(share * len(part))
            task.progress.report(files=int(share * len(part)), size=int(share * sum(file.size for file in part)))
            if share < 1:
                partial.append(part)
        missing = self._missing(partial, task)
        task.cover(len(wanted), missing, cached=cached)
        if partial:
            raise WorkFailed(
                f"only about {cached} of {len(wanted)} files are whole in the cache (partition {self._partition}): "
                "raise cache-size or lower free-space-ratio, free disk space, or cache a part"
            )

    def _below(self, inner: str) -> Iterator[File]:
        path = os.path.join(self._data, inner)
        if inner and not os.path.isdir(path):
            if (file := self._look_up(inner)) is not None:
                yield file
            return
        yield from manifests.walk(self._data, inner)

    def _look_up(self, inner: str) -> File | None:
        try:
            info = os.stat(os.path.join(self._data, inner))
        except OSError:
            return None
        return File(inner, info.st_size, info.st_mtime_ns)

    def _missing(self, partial: list[list[File]], task: Task) -> list[str]:
        """The first files that the cache does not hold whole, found by halving."""
        missing: list[str] = []
        waiting = list(reversed(partial))
        for _ in range(MOST_CHECKS):
            if not waiting or len(missing) > EXAMPLES:
                break
            part = waiting.pop()
            if not part or self._cached_share(part, task) == 1:
                continue
            if len(part) == 1:
                missing.append(part[0].path)
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
        return missing

    def _cached_share(self, files: list[File], task: Task, folders: Sequence[str] = ()) -> float:
        """The part of the files' bytes that is cached, from 0 to 1. `folders` hold just these files."""
        files = [file for file in files if file.size]
        if not files:
            return 1.0
        if folders:
            text = self._juicefs(task, "warmup", "--check", *(f"{self._data}/{folder}" for folder in folders))
        else:
            with self._list(files) as name:
                text = self._juicefs(task, "warmup", "--check", f"--file={name}")
        match = _CHECKED.search(text)
        if match is None:
            raise WorkFailed(f"juicefs warmup --check cannot be understood: {text.strip()[-200:]}")
        share = float(match[2]) / 100
        return share if int(match[1]) >= len(files) else min(share, 0.999)  # rounded, or some were not even found

    def _list(self, files: list[File]) -> _ListFile:
        return _ListFile(self._state, [os.path.join(self._data, file.path) for file in files])

    def rmr(self, options: PathOptions, task: Task) -> None:
        try:
            self._orders.remove(options, task)
        finally:
            self._stale()

    def clear(self, options: PathOptions, task: Task) -> None:
        cleared = self._orders.cleared(options)
        if {folder for folder, inner in cleared if not inner} >= set(self._orders.folders):
            self._juicefs(task, "warmup", "--evict", self._data)
        for folder, inner in cleared:
            task.check()
            try:
                if inner:
                    _remove_blocks(folder, inner)
                else:
                    _empty_blocks(folder)
            except OSError as error:
                raise WorkFailed(f"{folder}/{inner} cannot be cleared: {error.strerror}") from error

    def _juicefs(self, task: Task, *arguments: str) -> str:
        return run([self._program, *arguments], task, environment=self._environment)

    # Figures

    def status(self) -> Status:
        files, size = self._set_size()
        cached, blocks = self._cached()
        return Status(
            totalBytes=size,
            totalFiles=files,
            cachedBytes=cached,
            cachedFiles=blocks,
            disks=disks(self._orders.folders),
            levels=tuple(
                LevelStatus(level.medium, ":".join(level.folders), level.quota, cached if number == 0 else 0)
                for number, level in enumerate(self._levels)
            ),
        )

    def _set_size(self) -> tuple[int, int]:
        """JuiceFS keeps the sums of folders itself; asking costs one request, not a walk. The sums may stay wrong by
        folders that came and went meanwhile: a set of few files is counted."""
        with self._lock:
            at, files, size = self._totals
            if time.monotonic() - at < TOTALS_FRESH:
                return files, size
        count = ["--strict"] if files <= FEW_FILES else []
        text = self._juicefs(Task(), "info", "--recursive", *count, self._data)
        found = {name: int(number) for name, number in _SIZES.findall(text)}
        with self._lock:
            self._totals = (time.monotonic(), found.get("files", 0), found.get("length", 0))
            return self._totals[1:]

    def _stale(self) -> None:
        with self._lock:
            self._totals = (-TOTALS_FRESH, *self._totals[1:])

    def _cached(self) -> tuple[int, int]:
        """From the mount's own counters: bytes and blocks in the cache of this node."""
        values = {}
        with open(f"{self._data}/.stats") as file:
            for line in file:
                name, _, value = line.partition(" ")
                values[name.removeprefix("juicefs_")] = value
        return int(float(values.get("blockcache_bytes", 0))), int(float(values.get("blockcache_blocks", 0)))


def parts_of(files: Sequence[File], *, by_folder: bool) -> Iterator[tuple[list[File], list[str]]]:
    """Files in parts to be checked together, and the folders that hold just them; none where they must be listed.

    JuiceFS looks at a folder in a fifth of the time it needs for the same files in a list.
    """
    inner: dict[str, list[File]] = {}
    for file in files:
        inner.setdefault(file.path.rpartition("/")[0], []).append(file)
    above = {
        "/".join(parts[:depth]) for folder in inner for parts in [folder.split("/")] for depth in range(len(parts))
    }
    leaves = [folder for folder in inner if by_folder and folder not in above and folder]
    part: list[File] = []
    folders: list[str] = []
    for folder in leaves:
        part += inner.pop(folder)
        folders.append(folder)
        if len(part) >= CHECKED_AT_ONCE:
            yield part, folders
            part, folders = [], []
    if part:
        yield part, folders
    rest = [file for held in inner.values() for file in held]
    for start in range(0, len(rest), CHECKED_AT_ONCE):
        yield rest[start : start + CHECKED_AT_ONCE], []


class _ListFile:
    """A list of paths for JuiceFS, gone afterwards."""

    def __init__(self, folder: Path, paths: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, self._name = tempfile.mkstemp(prefix="list-", dir=folder)
        with open(descriptor, "wb") as file:
            file.writelines(os.fsencode(path) + b"\n" for path in paths)

    def __enter__(self) -> str:
        return self._name

    def __exit__(self, *_: object) -> None:
        os.unlink(self._name)


def _remove_blocks(folder: str, inner: str) -> None:
    """What is named must be in the blocks of a volume: a folder that an earlier release was given may hold more."""
    if not f"{inner.partition('/')[2]}/".startswith("raw/chunks/"):
        raise WorkFailed(
            f"{folder}/{inner} is no block of a JuiceFS cache: clear the whole folder, or VOLUME/raw/chunks"
        )
    Confined(folder).remove(inner)


def _empty_blocks(folder: str) -> None:
    """Blocks of files that are gone: `--evict` cannot name them. The mount's own lock and our folder stay."""
    for volume in os.scandir(folder):
        if volume.name != OWN and volume.is_dir(follow_symlinks=False) and os.path.isdir(f"{volume.path}/raw/chunks"):
            Confined(folder).empty(f"{volume.name}/raw/chunks")
