"""The tiers of a node's cache: medium, folders, quota. Pure but for asking file systems how much room they have.

On the command line a level is `MEDIUM,MIB,PATH[:PATH]`, for example `MEM,1024,/cache/dev-shm-imagenet`; 0 MiB means as
much as the disk gives while a tenth of it stays free.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.cache.errors import BadOptions

MIB = 1 << 20
MEDIA = ("MEM", "SSD", "HDD")
FREE_RATIO = 0.1


@dataclass(frozen=True)
class Level:
    medium: str
    folders: tuple[str, ...]
    quota: int = 0
    """Bytes; 0 means no quota of its own."""


@dataclass(frozen=True)
class Disk:
    """What a file system says of itself, in bytes."""

    id: str
    """The same for every server that has folders on it, and for no other; empty where that cannot be found out."""
    size: int = 0
    used: int = 0
    available: int = 0


def parse_levels(texts: Sequence[str], folders: Sequence[str]) -> list[Level]:
    """Levels as given; a cache folder that none of them names is a level by itself."""
    levels = [_level(text) for text in texts]
    named = {folder for level in levels for folder in level.folders}
    return levels + [Level("", (folder,)) for folder in map(_plain, folders) if folder not in named]


def _level(text: str) -> Level:
    medium, _, rest = text.partition(",")
    size, _, paths = rest.partition(",")
    folders = tuple(_plain(path) for path in paths.split(":") if path)
    if medium not in (*MEDIA, "") or not size.isdigit() or not folders:
        raise BadOptions(f"cache level {text!r} is not MEDIUM,MIB,PATH[:PATH] with MEDIUM one of {', '.join(MEDIA)}")
    return Level(medium, folders, int(size) * MIB)


def _plain(path: str) -> str:
    if not path.startswith("/"):
        raise BadOptions(f"cache folder {path!r} must be absolute")
    return path.rstrip("/") or "/"


def disks(folders: Sequence[str]) -> tuple[Disk, ...]:
    """The file systems of folders, each once however many of them lie on it."""
    seen: dict[int, os.statvfs_result] = {}
    for folder in folders:
        try:
            seen[os.stat(folder).st_dev] = os.statvfs(folder)
        except FileNotFoundError:
            continue
    machine = _machine()
    return tuple(
        Disk(
            id=f"{machine}-{device}" if machine else "",
            size=info.f_blocks * info.f_frsize,
            used=(info.f_blocks - info.f_bfree) * info.f_frsize,
            available=info.f_bavail * info.f_frsize,
        )
        for device, info in seen.items()
    )


def _machine() -> str:
    """What containers and virtual nodes of one machine have in common: the kernel they run on, since it was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def spare(folder: str) -> int:
    """Bytes a copy may still take on the file system of a folder."""
    info = os.statvfs(folder)
    return max(0, info.f_bavail * info.f_frsize - int(FREE_RATIO * info.f_blocks * info.f_frsize))
