"""Paths that must not leave their root, and deletion that cannot be led out of it.

User text names these paths, the runtime may be root, and the tree belongs to programs that can put links anywhere. So a
path is first judged by its words and then opened step by step from the root, links refused.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable

from paddlecloud.cache.errors import BadOptions

OWN = ".paddlecloud"
"""Our folder in the roots: state, manifest, unfinished files. Never deleted, copied or warmed."""


def relative(path: str, roots: Iterable[str]) -> tuple[str, str]:
    """The root a path lies in, and its way from there ("" for the root itself). Raises `BadOptions`."""
    roots = list(roots)
    if not path.startswith("/") or "\0" in path:
        raise BadOptions(f"path {path!r} must be absolute")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadOptions(f"path {path!r} must not contain '..'")
    for root in roots:
        base = [part for part in root.split("/") if part]
        if parts[: len(base)] == base:
            inner = parts[len(base) :]
            if inner[:1] == [OWN]:
                raise BadOptions(f"path {path!r} is the server's own")
            return root, "/".join(inner)
    raise BadOptions(f"path {path!r} lies outside of {' and '.join(roots)}")


class Confined:
    """A tree that is only entered from its root."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._made: set[str] = set()

    def folder(self, inner: str) -> int:
        """A descriptor of a folder inside. Raises OSError for what is missing, no folder, or a link."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in filter(None, inner.split("/")):
            try:
                deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = deeper
        return descriptor

    def make_folder(self, inner: str) -> None:
        """Have a folder, its parents included; none of them may be a link. Remembers what it made."""
        if inner in self._made or not inner:
            return
        parent, _, name = inner.rpartition("/")
        self.make_folder(parent)
        descriptor = self.folder(parent)
        try:
            os.mkdir(name, dir_fd=descriptor)
        except FileExistsError:
            os.close(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor))
        finally:
            os.close(descriptor)
        self._made.add(inner)

    def measure(self, inner: str) -> tuple[int, int]:
        """How many files and bytes a file, link or tree has; what is not there is an OSError."""
        parent, _, name = inner.rpartition("/")
        descriptor = self.folder(parent)
        try:
            info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISDIR(info.st_mode):
                return 1, info.st_size
            sizes = [
                os.stat(file, dir_fd=place, follow_symlinks=False).st_size
                for _, _, files, place in os.fwalk(name, dir_fd=descriptor, follow_symlinks=False)
                for file in files
            ]
            return len(sizes), sum(sizes)
        finally:
            os.close(descriptor)

    def remove(self, inner: str) -> None:
        """Delete a file, link or tree. A link is removed, never followed; what is not there is an OSError."""
        self._made.clear()
        parent, _, name = inner.rpartition("/")
        descriptor = self.folder(parent)
        try:
            _remove_entry(name, descriptor)
        finally:
            os.close(descriptor)

    def empty(self, inner: str = "") -> None:
        """Delete everything in a folder but what is ours."""
        self._made.clear()
        descriptor = self.folder(inner)
        try:
            for name in os.listdir(descriptor):
                if inner or name != OWN:
                    _remove_entry(name, descriptor)
        finally:
            os.close(descriptor)


def _remove_entry(name: str, parent: int) -> None:
    info = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISDIR(info.st_mode):
        os.unlink(name, dir_fd=parent)
    elif shutil.rmtree.avoids_symlink_attacks:
        shutil.rmtree(f"/proc/self/fd/{parent}/{name}")  # Python 3.10 takes no descriptor of the parent
    else:
        raise OSError("this system cannot delete trees safely")
