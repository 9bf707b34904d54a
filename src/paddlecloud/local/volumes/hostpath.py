"""hostPath volumes: a path of the machine, with the checks its type asks for.

Where everybody may write (`/tmp`, `/dev/shm`), another user can make a folder or a link first, under the name that a
pod is about to use. A pod that expects a directory there is not led by a link of another user, and one that would have
made the directory itself takes none of another user's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from paddlecloud.local.volumes.errors import VolumeError


def host_path(path: str, kind: str = "") -> Path:
    place = Path(path)
    if not place.is_absolute() or ".." in place.parts:
        raise VolumeError(f"hostPath {path!r} must be absolute and without '..'")
    create = _CREATE.get(kind)
    if kind in ("Directory", "DirectoryOrCreate"):
        _refuse_others(place, makes_it=kind == "DirectoryOrCreate")
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


def _refuse_others(place: Path, *, makes_it: bool) -> None:
    """Look at each step of the path below a folder that everybody may write to; root and we ourselves are trusted."""
    shared = False
    for step in (*reversed(place.parents), place):
        try:
            info = step.lstat()
        except OSError:
            return  # the rest is not there, or cannot be looked at: the checks of the type say so
        if shared and info.st_uid not in (0, os.geteuid()) and (makes_it or stat.S_ISLNK(info.st_mode)):
            what = "a link" if stat.S_ISLNK(info.st_mode) else "a folder"
            raise VolumeError(
                f"hostPath {place}: {step} is {what} of another user (uid {info.st_uid}); use another path"
            )
        shared = shared or bool(stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_IWOTH)


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
