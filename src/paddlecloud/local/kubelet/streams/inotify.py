"""Wakes a coroutine when files in some directories change: following a log must not poll."""

from __future__ import annotations

import asyncio
import ctypes
import os

_CLOEXEC, _NONBLOCK = os.O_CLOEXEC, os.O_NONBLOCK
_MODIFY, _MOVED_TO, _CREATE, _DELETE_SELF = 0x2, 0x80, 0x100, 0x400

_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Directories under observation. `wait` returns after any change since the last `wait`, or at once if one fell
    between; it says nothing about what changed."""

    def __init__(self, *folders: str) -> None:
        self._fd = _libc.inotify_init1(_CLOEXEC | _NONBLOCK)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._changed = asyncio.Event()
        for folder in folders:
            self.add(folder)
        asyncio.get_running_loop().add_reader(self._fd, self._on_event)

    def add(self, folder: str) -> bool:
        """False when the directory is not there (yet)."""
        mask = _MODIFY | _MOVED_TO | _CREATE | _DELETE_SELF
        return bool(_libc.inotify_add_watch(self._fd, os.fsencode(folder), mask) >= 0)

    def _on_event(self) -> None:
        try:
            os.read(self._fd, 65536)
        except BlockingIOError:
            return
        self._changed.set()

    async def wait(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
