"""What an engine does for the server, and the figures it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from paddlecloud.api.folders import ANYWHERE, FolderRule
from paddlecloud.cache.levels import Disk, Level
from paddlecloud.cache.options import Options, PathOptions, SyncOptions, WarmupOptions
from paddlecloud.cache.progress import Task
from paddlecloud.storage.credentials import Credentials


class EngineSettings(NamedTuple):
    data: str
    """The folder where the set is mounted."""
    levels: Sequence[Level]
    state: Path
    """The server's own folder."""
    partition: int
    environment: Mapping[str, str]
    sources: FolderRule = ANYWHERE
    """Which files `file://` sources may read."""
    shared: Path | None = None
    """Of a set that is a folder: what its servers share; None for a hidden folder in the set."""


@dataclass(frozen=True)
class LevelStatus:
    medium: str
    path: str
    quotaBytes: int
    usedBytes: int


@dataclass(frozen=True)
class Status:
    """Whole numbers; field names are those of the API."""

    totalBytes: int = 0
    totalFiles: int = 0
    cachedBytes: int = 0
    cachedFiles: int = 0
    disks: tuple[Disk, ...] = ()
    error: str = ""
    levels: tuple[LevelStatus, ...] = field(default_factory=tuple)

    @property
    def diskBytes(self) -> int:
        return sum(disk.size for disk in self.disks)

    @property
    def diskUsedBytes(self) -> int:
        return sum(disk.used for disk in self.disks)

    @property
    def diskAvailBytes(self) -> int:
        return sum(disk.available for disk in self.disks)

    def shown(self) -> dict[str, Any]:
        """With the sums over its disks, which is all that earlier controllers read."""
        sums = {name: getattr(self, name) for name in ("diskBytes", "diskUsedBytes", "diskAvailBytes")}
        return {**asdict(self), **sums}


class Engine(Protocol):
    """All methods are called from one working thread, `status` from another; work raises `WorkFailed`,
    `StorageError`, `BadOptions`, `Cancelled` or OSError."""

    def check(self, kind: str, options: Options) -> None:
        """Whether an order could be carried out at all, as far as its fields say. Raises `BadOptions`."""

    def sync(self, options: SyncOptions, credentials: Credentials, task: Task) -> None: ...

    def warmup(self, options: WarmupOptions, task: Task) -> None: ...

    def rmr(self, options: PathOptions, task: Task) -> None: ...

    def clear(self, options: PathOptions, task: Task) -> None: ...

    def status(self) -> Status:
        """Cheap: no tree is walked. `error` says what could not be determined."""

    def close(self) -> None: ...
