"""A limit of concurrent requests to one pod that all gateway processes keep together.

It is a named pipe with as many bytes in it as requests may be in progress: who reads one may send a request, and writes
it back afterwards. The kernel does the counting, and an event loop can wait for a byte. Should a gateway be killed with
bytes read, the control plane makes new pipes under other names.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path


def create(path: Path, count: int) -> None:
    os.mkfifo(path, 0o600)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(fd, b"." * count)
        # A pipe nobody has open loses what is in it: the maker keeps this descriptor until it removes the pipe.
        _kept[path] = fd
    except OSError:
        os.close(fd)
        raise


def remove(path: Path) -> None:
    fd = _kept.pop(path, None)
    if fd is not None:
        os.close(fd)
    path.unlink(missing_ok=True)


_kept: dict[Path, int] = {}


class Slots:
    """One process's hold on the pipe of a pod."""

    __slots__ = ("_fd", "_waiting")

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._waiting = False

    def take(self) -> bool:
        try:
            return bool(os.read(self._fd, 1))
        except BlockingIOError:
            return False

    def give(self) -> None:
        os.write(self._fd, b".")

    def call_when_free(self, ready: Callable[[], None] | None) -> None:
        """Call `ready` whenever a place may be free, or no longer."""
        loop = asyncio.get_running_loop()
        if ready is not None and not self._waiting:
            loop.add_reader(self._fd, ready)
            self._waiting = True
        elif ready is None and self._waiting:
            loop.remove_reader(self._fd)
            self._waiting = False

    def close(self) -> None:
        self.call_when_free(None)
        os.close(self._fd)
