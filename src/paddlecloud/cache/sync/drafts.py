"""The folder in which one sync writes files before they get their names.

Each run has its own folder. Two runs may overlap, since a server that is being replaced ends its last one while
the next server begins: with one folder for all, the end of the first would delete the drafts of the second. A run holds
a lock on its folder, which ends with its process, so that the next run can tell what a killed one left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil

from paddlecloud.cache.confine import OWN

UNFINISHED = f"{OWN}/unfinished"
"""The folder of all runs, below the data folder: a rename from there is never a copy."""


class Drafts:
    """`name` is the folder of this run, from the root."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.name = f"{UNFINISHED}/{secrets.token_hex(8)}"
        self._lock = -1

    def open(self) -> None:
        """Make the folder, and delete those of runs that were killed."""
        parent, own = (os.path.join(self._root, name) for name in (UNFINISHED, self.name))
        while self._lock < 0:
            with contextlib.suppress(FileNotFoundError):  # deleted by a run that ends, or begins, at this moment
                os.makedirs(own, exist_ok=True)
                self._lock = _locked(own)
        with os.scandir(parent) as found:
            for item in found:
                if item.path != own:
                    _delete_abandoned(item)

    def close(self) -> None:
        """Pods see the set: no folder of ours stays in it, unless something of ours lies there."""
        shutil.rmtree(os.path.join(self._root, self.name), ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        for folder in (UNFINISHED, OWN):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(self._root, folder))


def _locked(folder: str) -> int:
    """A descriptor that holds the lock of the folder; -1 where another run has it, or has deleted it meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass  # the other run has it, and will delete it
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return -1


def _delete_abandoned(item: os.DirEntry[str]) -> None:
    """What no run holds; earlier releases left single files."""
    with contextlib.suppress(FileNotFoundError):
        if not item.is_dir(follow_symlinks=False):
            os.unlink(item.path)
        elif (lock := _locked(item.path)) >= 0:
            shutil.rmtree(item.path, ignore_errors=True)
            os.close(lock)
