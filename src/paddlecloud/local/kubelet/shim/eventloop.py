"""A selector, timers and child exits: all the shim needs of an event loop, at a tenth of asyncio's memory.

Standard library only: the shim imports this.
"""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import signal
import time
from collections.abc import Callable

Callback = Callable[[], None]


class Timer:
    """A handle to cancel what was planned."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    """Single-threaded. Signals wake it through a pipe; handlers run between turns, never inside one."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._running = True
        self._handlers: dict[int, Callback] = {}
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self.watch(self._wake_read, self._on_signal)

    def watch(self, fd: int, callback: Callback) -> None:
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def unwatch(self, fd: int) -> None:
        self._selector.unregister(fd)

    def on_signal(self, number: int, handler: Callback) -> None:
        self._handlers[number] = handler
        signal.signal(number, lambda *_: None)

    def after(self, seconds: float, callback: Callback) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        while self._running:
            for key, _ in self._selector.select(self._next_timeout()):
                if key.fd in self._selector.get_map():  # an earlier callback of this turn may have closed it
                    key.data()
            self._run_timers()

    def _next_timeout(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            callback = heapq.heappop(self._timers)[2].callback
            if callback:
                callback()

    def _on_signal(self) -> None:
        try:
            numbers = set(os.read(self._wake_read, 4096))
        except BlockingIOError:
            return
        for number in numbers:
            if handler := self._handlers.get(number):
                handler()

    def forget_in_child(self) -> None:
        """After a fork: signals must no longer write into the parent's pipe."""
        signal.set_wakeup_fd(-1)
        for number in self._handlers:
            signal.signal(number, signal.SIG_DFL)
