"""Files in a folder that several users may write to: entered part by part, and never through a link.

A path as one text follows a link in the middle of it. Any writer of a shared store could put one there, and what
others remove or write would lie wherever it leads. Here each part is opened below the one before it, and a link is a
failure, not something that is missing: a reader that skipped it would take versions behind it for removed ones.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class LinkError(OSError):
    """A link, or something else that is neither a file nor a folder."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ELOOP, f"{name!r} is a link, or else neither a file nor a folder; a store has no such")


@contextmanager
def entered(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder below `root`, which itself may be a link: users name it. With `make`, missing folders
    are made. Raises `LinkError`, and other OSErrors for what is missing or no folder."""
    if make:
        os.makedirs(root, exist_ok=True)
    folder = os.open(root, _FOLDER)
    try:
        for part in parts:
            if make:
                _make(part, folder)
            deeper = _opened(part, _FOLDER, folder)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


def open_file(name: str, folder: int) -> int:
    """For reading. What is no file is not waited for: a pipe without a writer would never open."""
    descriptor = _opened(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise LinkError(name)


def entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    """Files and folders in a folder that is open. Raises `LinkError`."""
    for name in os.listdir(folder):
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue  # removed while we look
        if not stat.S_ISDIR(info.st_mode) and not stat.S_ISREG(info.st_mode):
            raise LinkError(name)
        yield name, info


def _make(name: str, folder: int) -> None:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        pass  # opened next, which fails if it is no folder


def _opened(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO) and not _is_file(name, folder):
            raise LinkError(name) from error
        raise


def _is_file(name: str, folder: int) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
