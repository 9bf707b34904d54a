"""The local engine: the set is a folder, the cache of a node is folders beside it. No FUSE, no other programs."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paddlecloud.cache import manifest as manifests
from paddlecloud.cache import warmup
from paddlecloud.cache.confine import OWN
from paddlecloud.cache.engines.base import EngineSettings, LevelStatus, Status
from paddlecloud.cache.errors import Cancelled, WorkFailed
from paddlecloud.cache.levels import disks
from paddlecloud.cache.manifest import File, SampleManifest
from paddlecloud.cache.nodecache import NodeCache
from paddlecloud.cache.options import Options, PathOptions, SyncOptions, WarmupOptions
from paddlecloud.cache.orders import Orders
from paddlecloud.cache.placement import WantedFile, place
from paddlecloud.cache.progress import Task
from paddlecloud.cache.retained import note_source
from paddlecloud.kube.sizes import binary_size
from paddlecloud.storage.credentials import Credentials

MOST_THREADS = 16
"""Copies at the same time: more only queue up at the disk."""


class LocalEngine:
    def __init__(self, settings: EngineSettings) -> None:
        self._data = settings.data.rstrip("/")
        os.makedirs(self._data, exist_ok=True)
        self._partition = settings.partition
        self._shared = settings.shared
        hidden = Path(self._data) / OWN
        own = (settings.shared or hidden) / manifests.NAME
        if own.parent != hidden:
            _forget_hidden(hidden)
        fresh = not own.exists() or not os.listdir(self._data)  # or the data was deleted
        self._manifest = SampleManifest(own)
        self._manifest_path = str(own)
        self._cache = NodeCache(settings.state / "cache.db", settings.levels)
        folders = [folder for level in settings.levels for folder in level.folders]
        self._orders = Orders(self._data, folders, self._manifest, settings.environment, settings.sources)
        self._version = -1
        self._lock = threading.Lock()
        if fresh:  # a folder that somebody filled already
            self._manifest.reconcile(manifests.walk(self._data))

    def close(self) -> None:
        self._manifest.close()
        self._cache.close()

    def check(self, kind: str, options: Options) -> None:
        self._orders.check(kind, options)

    # Work

    def sync(self, options: SyncOptions, credentials: Credentials, task: Task) -> None:
        if self._shared is not None and not options.dry:
            note_source(self._shared, self._data, options.source)
        if not self._orders.copy(options, credentials, task):
            self._manifest.reconcile(manifests.walk(self._data))
        with self._lock:  # copies of what was replaced or deleted must not be read any more
            self._cache.drop_strangers(self._manifest_path)

    def warmup(self, options: WarmupOptions, task: Task) -> None:
        with self._lock:
            self._warmup(options, task)

    def _warmup(self, options: WarmupOptions, task: Task) -> None:
        self._cache.recount()
        self._manifest.reconcile(manifests.walk(self._data))
        task.check()
        files = warmup.listed(options, self._data, below=self._manifest.files, look_up=self._manifest.get)
        wanted = warmup.share_of(files, options, self._partition)
        by_path = {file.path: file for file in wanted}
        held = self._cache.held(by_path)
        capacities = [self._cache.capacity(level, self._data) for level in range(len(self._cache.levels))]
        placement = place([WantedFile(file.path, file.size) for file in wanted], held, capacities)
        task.progress.expect(sum(file.size for file in wanted), len(wanted))
        for path in by_path:
            if path in held:
                task.progress.done(by_path[path].size, skipped=True)
        self._cache.drop(placement.evict)
        self._fetch([(by_path[path], level) for path, level in placement.fetch], options, task)
        self._judge(wanted, placement.left_out, capacities, task)

    def _fetch(self, files: list[tuple[File, int]], options: WarmupOptions, task: Task) -> None:
        def bring(item: tuple[File, int]) -> None:
            file, level = item
            if task.cancelled:
                return
            try:
                self._cache.fetch(file, level, self._data)
                task.progress.done(file.size)
            except OSError as error:
                task.progress.fail(f"{file.path}: {error.strerror or error}")

        with ThreadPoolExecutor(max(1, min(options.threads, MOST_THREADS))) as pool:
            for _ in pool.map(bring, files):
                if task.cancelled:
                    pool.shutdown(cancel_futures=True)
                    raise Cancelled

    def _judge(self, wanted: list[File], left_out: list[str], capacities: list[float], task: Task) -> None:
        """Coverage is what is found on the disk afterwards, not what we meant to put there."""
        missing = [file.path for file in wanted if self._cache.find(file) is None]
        task.cover(len(wanted), missing)
        if not missing:
            return
        text = f"{len(missing)} of {len(wanted)} files are not cached (partition {self._partition})"
        if left_out:
            needed = sum(file.size for file in wanted)
            text += (
                f": they need {binary_size(needed)}, the cache holds {binary_size(sum(capacities))}; raise cacheSize, "
                "free disk space, or cache a part with paths"
            )
        elif task.progress.failures:
            text += f": {'; '.join(task.progress.failures[:3])}"
        raise WorkFailed(text)

    def rmr(self, options: PathOptions, task: Task) -> None:
        try:
            self._orders.remove(options, task)
        finally:
            with self._lock:
                self._cache.drop_strangers(self._manifest_path)

    def clear(self, options: PathOptions, task: Task) -> None:
        for folder, inner in self._orders.cleared(options):
            task.check()
            try:
                with self._lock:
                    self._cache.clear(folder, inner)
            except OSError as error:
                raise WorkFailed(f"{folder}/{inner} cannot be cleared: {error.strerror}") from error

    # Figures

    def status(self) -> Status:
        if self._lock.acquire(blocking=False):  # else work is under way, which leaves the figures right itself
            try:
                self._cache.recount_if_others_changed()
                version = self._manifest.version()
                if version != self._version:  # another server changed the set: its removed files are cached no longer
                    self._version = version
                    self._cache.drop_strangers(self._manifest_path)
            finally:
                self._lock.release()
        files, size = self._manifest.totals()
        levels = self._cache.levels
        return Status(
            totalBytes=size,
            totalFiles=files,
            cachedBytes=sum(self._cache.used(number) for number in range(len(levels))),
            cachedFiles=self._cache.files,
            disks=disks(self._orders.folders),
            levels=tuple(
                LevelStatus(level.medium, ":".join(level.folders), level.quota, self._cache.used(number))
                for number, level in enumerate(levels)
            ),
        )


def _forget_hidden(folder: Path) -> None:
    """The manifest of an earlier release, which pods saw in the set. What it knew is found out anew."""
    for name in (manifests.NAME, f"{manifests.NAME}-wal", f"{manifests.NAME}-shm", manifests.LOCK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # there is none, or a sync is under way
        folder.rmdir()
