"""Wakes coroutines when files in some directories change: following a log must not poll.

A user may have few inotify instances (128 as a rule, with editors and desktops among them), and anybody who may read
logs can follow as many as they like: all of them share one instance. Where there is none to be had, `wait` looks again
after a while.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
from typing import ClassVar

_CLOEXEC, _NONBLOCK = os.O_CLOEXEC, os.O_NONBLOCK
_MODIFY, _MOVED_TO, _CREATE, _DELETE_SELF = 0x2, 0x80, 0x100, 0x400
_IGNORED = 0x8000  # the directory is gone, and its number with it
_EVENT = struct.Struct("iIII")  # number, mask, cookie, length of the name that follows
POLL = 0.5
"""Seconds between two looks where nothing can be watched."""

_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Directories under observation. `wait` returns after any change since the last `wait`, or at once if one fell
    between; it says nothing about what changed."""

    def __init__(self, *folders: str) -> None:
        self._instance = _Instance.shared()
        self._changed = asyncio.Event()
        self._polls = self._instance is None
        self._numbers: set[int] = set()
        for folder in folders:
            self.add(folder)

    def add(self, folder: str) -> bool:
        """False when the directory is not there (yet), or cannot be watched."""
        if self._instance is None:
            return False
        try:
            self._numbers.add(self._instance.add(folder, self))
        except OSError as error:
            self._polls = self._polls or error.errno == errno.ENOSPC  # no more directories for this user
            return False
        return True

    def changed(self) -> None:
        self._changed.set()

    async def wait(self) -> None:
        if self._polls:
            await asyncio.sleep(POLL)
        else:
            await self._changed.wait()
        self._changed.clear()

    def close(self) -> None:
        if self._instance is not None:
            self._instance.remove(self, self._numbers)


class _Instance:
    """One for each event loop, while there is a `Watch`."""

    _of_loop: ClassVar[dict[asyncio.AbstractEventLoop, _Instance]] = {}

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop = loop
        self._fd = fd
        self._users = 0
        self._watches: dict[int, set[Watch]] = {}
        loop.add_reader(fd, self._on_events)

    @classmethod
    def shared(cls) -> _Instance | None:
        """None when the user has no more of them."""
        loop = asyncio.get_running_loop()
        if loop not in cls._of_loop:
            fd = _libc.inotify_init1(_CLOEXEC | _NONBLOCK)
            if fd < 0:
                return None
            cls._of_loop[loop] = cls(loop, fd)
        found = cls._of_loop[loop]
        found._users += 1
        return found

    def add(self, folder: str, watch: Watch) -> int:
        """The number of the directory: the same for all who watch it."""
        mask = _MODIFY | _MOVED_TO | _CREATE | _DELETE_SELF
        number = int(_libc.inotify_add_watch(self._fd, os.fsencode(folder), mask))
        if number < 0:
            raise OSError(ctypes.get_errno(), folder)
        self._watches.setdefault(number, set()).add(watch)
        return number

    def remove(self, watch: Watch, numbers: set[int]) -> None:
        for number in numbers & self._watches.keys():
            watches = self._watches[number]
            watches.discard(watch)
            if not watches:
                del self._watches[number]
                _libc.inotify_rm_watch(self._fd, number)
        self._users -= 1
        if not self._users:
            del self._of_loop[self._loop]
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _on_events(self) -> None:
        try:
            events = os.read(self._fd, 65536)
        except BlockingIOError:
            return
        position = 0
        while position < len(events):
            number, mask, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            # Less than zero: events were lost, and they may have been anybody's.
            concerned = [self._watches.get(number, set())] if number >= 0 else list(self._watches.values())
            for watches in concerned:
                for watch in watches:
                    watch.changed()
            if mask & _IGNORED:
                self._watches.pop(number, None)
