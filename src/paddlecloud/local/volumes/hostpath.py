"""hostPath volumes: a path of the machine, with the checks its type asks for."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from paddlecloud.local.volumes.errors import VolumeError


def host_path(path: str, kind: str = "") -> Path:
    place = Path(path)
    if not place.is_absolute() or ".." in place.parts:
        raise VolumeError(f"hostPath {path!r} must be absolute and without '..'")
    create = _CREATE.get(kind)
    try:
        if create is not None and not place.exists():
            create(place)
        mode = place.stat().st_mode
    except OSError as error:
        raise VolumeError(f"hostPath type check failed: {path}: {error.strerror}") from error
    check = _CHECKS.get(kind)
    if kind and check is None:
        raise VolumeError(f"hostPath type {kind!r} is unknown")
    if check is not None and not check(mode):
        raise VolumeError(f"hostPath type check failed: {path} is not a {_WORDS[kind]}")
    return place


def _make_folder(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)


def _make_file(place: Path) -> None:
    place.touch(mode=0o644)


# An untyped path that is not there becomes a directory, as container runtimes make it.
_CREATE: dict[str, Callable[[Path], None]] = {
    "": _make_folder,
    "DirectoryOrCreate": _make_folder,
    "FileOrCreate": _make_file,
}
_CHECKS: dict[str, Callable[[int], bool]] = {
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}
_WORDS = {
    "Directory": "directory",
    "DirectoryOrCreate": "directory",
    "File": "file",
    "FileOrCreate": "file",
    "Socket": "socket file",
    "CharDevice": "character device",
    "BlockDevice": "block device",
}
