"""Trees of files that tenants wrote: entered from their root part by part, never through a link nor by recursion.

Names, links and depth of such a tree are a tenant's. A path as one text would follow a link in the middle of it; here
each part is opened below the one before it. Used by the controller on what is stored, and by the executor in pods.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from paddlecloud.local.workflow.executor.orders import ExecutorError

MOST_ENTRIES = 1_000_000
MOST_DEPTH = 256
"""Folders inside one another: more than programs make, and little enough for those that recurse."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_HOPS = 40
"""Links on the way of a link, as in Linux."""

Parts = tuple[str, ...]


class Unfit(ExecutorError):
    """A tree, or a link in it, that is not accepted; the message says why."""


@contextmanager
def entered(root: str | os.PathLike[str] | int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder below `root`. OSError where a part is missing, no folder, or a link.

    `root` itself is trusted: a path, or a descriptor that stays open. With `make`, missing folders are made.
    """
    folder = os.dup(root) if isinstance(root, int) else os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                try:
                    os.mkdir(part, dir_fd=folder)
                except FileExistsError:
                    pass  # opened next, which fails if it is no folder
            deeper = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


def opened(root: str | os.PathLike[str] | int, parts: Sequence[str]) -> int:
    """A descriptor of a file or folder below `root`, for reading. OSError as in `entered`, or for a link itself."""
    with entered(root, parts[:-1]) as folder:
        return os.open(parts[-1], _FILE, dir_fd=folder)


def mode_of(name: str, folder: int) -> int | None:
    """None where there is nothing of that name."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def walk(root: int) -> Iterator[tuple[Parts, int]]:
    """What lies below a folder, each with its mode; a folder comes before its content. Raises `Unfit` for too much."""
    todo: list[Parts] = [()]
    seen = 0
    while todo:
        parts = todo.pop()
        with entered(root, parts) as folder:
            for name in sorted(os.listdir(folder), reverse=True):
                seen += 1
                if seen > MOST_ENTRIES:
                    raise Unfit(f"it has more than {MOST_ENTRIES:,} files and folders; store it as a tar")
                mode = mode_of(name, folder)
                if mode is None:
                    continue
                if stat.S_ISDIR(mode):
                    if len(parts) >= MOST_DEPTH:
                        raise Unfit(f"it has more than {MOST_DEPTH} folders inside one another: {_shown(parts)}…")
                    todo.append((*parts, name))
                yield (*parts, name), mode


def check_stored(root: int) -> None:
    """A tree that is stored as it is has files and folders alone: keys of other artifacts may lead into it."""
    for parts, mode in walk(root):
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
            raise Unfit(f"{_shown(parts)} in it is {what}; store it as a tar")


def leads_to(root: int, link: Parts) -> Parts:
    """Where a link below `root` leads, as parts from there: links on its way are followed, nothing of it need exist.

    Raises `Unfit` where any step of the way is outside: the tree may be mounted elsewhere later.
    """
    todo, hops, steps = list(reversed(link)), 0, 0
    done: list[str] = []
    while todo:
        part = todo.pop()
        steps += 1
        if steps > _MOST_HOPS * 100:
            raise Unfit(f"its link {_shown(link)} has too long a way")
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise Unfit(f"its link {_shown(link)} leads outside of its folder")
            done.pop()
            continue
        text = _link(root, (*done, part))
        if text is None:
            done.append(part)
            continue
        hops += 1
        if text.startswith("/"):
            raise Unfit(f"its link {_shown(link)} leads outside of its folder")
        if hops > _MOST_HOPS:
            raise Unfit(f"its link {_shown(link)} leads through too many links, or to itself")
        todo += reversed(text.split("/"))
    return tuple(done)


def _link(root: int, parts: Parts) -> str | None:
    """The text of a link; None for what is no link, or is not there."""
    try:
        with entered(root, parts[:-1]) as folder:
            return os.readlink(parts[-1], dir_fd=folder)
    except OSError as why:
        if why.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


def copy(root: int, target: str) -> None:
    """A tree as files and folders alone, to a folder that is not there yet.

    A link to a file of the tree becomes that file, as in an S3 store, which has no links; another link is refused.
    Sockets and pipes are left out, as in an archive.
    """
    os.mkdir(target)
    modes: list[tuple[str, int]] = []
    for parts, mode in walk(root):
        place = os.path.join(target, *parts)
        if stat.S_ISDIR(mode):
            os.mkdir(place)
            modes.append((place, stat.S_IMODE(mode) | stat.S_IRWXU))
            continue
        if stat.S_ISLNK(mode):
            parts = leads_to(root, parts)
            try:
                with entered(root, parts[:-1]) as folder:
                    mode = (mode_of(parts[-1], folder) if parts else None) or 0
            except OSError:
                mode = 0
            if not stat.S_ISREG(mode):
                shown = os.path.relpath(place, target)[:60]
                raise Unfit(f"its link {shown!r} leads to no file of the folder; store it as a tar, which keeps links")
        if stat.S_ISREG(mode):
            with open(opened(root, parts), "rb") as source, open(place, "xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            os.chmod(place, stat.S_IMODE(mode) & 0o777)
    for place, mode in modes:
        os.chmod(place, mode & 0o777)


def _shown(parts: Parts) -> str:
    return repr("/".join(parts)[:60])
