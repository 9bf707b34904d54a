"""Removes trees that programs of pods made: of any depth, closed to their owner or not, never through a link.

`shutil.rmtree` recurses before Python 3.13: a thousand folders inside one another end it with a RecursionError, which
is no OSError. Here nothing recurses.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(place: str | os.PathLike[str]) -> None:
    """Delete a file, link or tree; nothing where there is none. OSError where something stays; it may be repeated."""
    folder, name = os.path.split(os.path.abspath(place))
    try:
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_below(name, parent)
    finally:
        os.close(parent)


def remove_below(name: str, parent: int) -> None:
    """As `remove_tree`, of a name in a folder that is open.

    Folders are moved up to the root of the tree and emptied there: so few descriptors are enough for any depth, and a
    tree that changes meanwhile cannot lead outside.
    """
    mode = _mode(name, parent)
    if mode is None:
        return
    if not stat.S_ISDIR(mode):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        return
    with suppress(FileNotFoundError):  # somebody else removed it: the outcome asked for
        top = _opened(name, parent)
        try:
            while folders := _only_folders(top):
                for each in folders:
                    with suppress(FileNotFoundError):
                        _remove_emptied(each, top)
        finally:
            os.close(top)
        os.rmdir(name, dir_fd=parent)


def _remove_emptied(name: str, top: int) -> None:
    folder = _opened(name, top)
    try:
        for inner in _only_folders(folder):
            os.close(_opened(inner, folder))  # Linux moves no folder that its owner may not write to
            os.rename(inner, f".{secrets.token_hex(16)}", src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _only_folders(folder: int) -> list[str]:
    """Deletes what is no folder; gives the names of the others."""
    folders = []
    for name in os.listdir(folder):
        mode = _mode(name, folder)
        if mode is not None and stat.S_ISDIR(mode):
            folders.append(name)
        elif mode is not None:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    return folders


def _opened(name: str, parent: int) -> int:
    """A folder may be closed to its owner: it is opened up, through a descriptor that follows no link."""
    place = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
    try:
        if stat.S_IMODE(os.fstat(place).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
        return os.open(".", os.O_RDONLY | _FOLDER, dir_fd=place)
    finally:
        os.close(place)


def _mode(name: str, folder: int) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
