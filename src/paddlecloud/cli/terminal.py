"""This program's own standard input and terminal, for programs that run elsewhere: raw keys, its size, its bytes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

CHUNK = 32 * 1024


@contextmanager
def raw_keys() -> Iterator[None]:
    """Every key goes to the remote program, Ctrl-C included; the terminal is restored whatever happens."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def on_resize(resized: Callable[[int, int], None]) -> Iterator[None]:
    """Calls `resized(columns, rows)` now and whenever the window changes, in the running event loop."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        size = os.get_terminal_size(sys.stdin.fileno())
        resized(size.columns, size.lines)

    loop.add_signal_handler(signal.SIGWINCH, look)
    look()
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def standard_input() -> AsyncIterator[bytes]:
    """The bytes of standard input as they come, whatever it is: a terminal, a pipe, a file.

    A thread reads, because a file cannot be watched and a terminal must not be made non-blocking under the shell that
    owns it. The thread is left behind when nobody listens any more: a read from a terminal cannot be called off.
    """
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4)

    def read() -> None:
        descriptor = sys.stdin.fileno()
        while True:
            try:
                data = os.read(descriptor, CHUNK)
            except OSError:
                data = b""
            try:
                asyncio.run_coroutine_threadsafe(pieces.put(data), loop).result()
            except RuntimeError:
                return  # the loop has ended meanwhile
            if not data:
                return

    threading.Thread(target=read, daemon=True, name="stdin").start()
    while data := await pieces.get():
        yield data
