"""Who read what: every process of a rank reports it to one thread of the main process.

DataLoader workers are forked processes. Each read is a record in a pipe that they inherit: small enough to be written
whole, never waited for. The thread adds up hits, misses and waiting by epoch, and passes the order of reads on.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

LOG = logging.getLogger("paddlecloud.data")
_RECORD = struct.Struct("<qdB")
_AT_ONCE = 4096 // _RECORD.size
"""Records that a pipe takes whole."""
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
INTERVAL = 2.0
"""Seconds between two reports."""
_MISS, _HIT, _UNKNOWN = 0, 1, 2


@dataclass
class Epoch:
    """How one epoch was read."""

    hits: int = 0
    misses: int = 0
    stall_seconds: float = 0.0


class ReadListener(Protocol):
    """Is called on each read, in the order of reads."""

    def begin(self, epoch: int) -> None: ...

    def on_read(self, index: int) -> int:
        """Says which epoch the read belongs to."""
        ...


class Tally:
    """`note` may be called in any process; everything else belongs to the process that made the tally."""

    def __init__(self, report: Callable[[dict[int, Epoch]], None]) -> None:
        """`report` is called with the figures of all epochs now and then."""
        self._report = report
        self._process = os.getpid()
        self._listener: ReadListener | None = None
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        os.set_blocking(self._reading, False)
        try:
            fcntl.fcntl(self._writing, _F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass  # the usual 64 KiB do as well, only sooner full
        self._unsent: deque[bytes] = deque(maxlen=1 << 16)
        self._lock = threading.Lock()
        self._epochs: dict[int, Epoch] = {}
        self._epoch = 0
        self._watched = False
        self._reported_at = 0.0
        self._news = False
        self._thread = threading.Thread(target=self._run, name="paddlecloud-tally", daemon=True)
        self._thread.start()

    def follow(self, listener: ReadListener) -> None:
        """Pass all further reads on."""
        with self._lock:
            self._listener = listener

    def note(self, index: int, seconds: float, *, hit: bool | None) -> None:
        """A sample was read, in so many seconds; from the cache, from elsewhere, or (None) unknown."""
        record = _RECORD.pack(index, seconds, _UNKNOWN if hit is None else hit)
        try:
            if not self._unsent:  # as nearly always; this runs once for every sample
                os.write(self._writing, record)
                return
        except OSError:
            pass  # the pipe is full: it is kept for the next read to try
        self._unsent.append(record)
        try:
            while self._unsent:
                count = min(len(self._unsent), _AT_ONCE)
                os.write(self._writing, b"".join(self._unsent[number] for number in range(count)))
                for _ in range(count):
                    self._unsent.popleft()
        except (OSError, IndexError):
            return  # the pipe is full, or another thread sent them: the next read tries again

    def begin(self, epoch: int) -> None:
        """An epoch begins; from here on the training loop itself says how long it waits."""
        self._drain()
        with self._lock:
            self._epoch, self._watched = epoch, True
            if self._listener is not None:
                self._listener.begin(epoch)

    def waited(self, seconds: float) -> None:
        """The training loop waited for data."""
        with self._lock:
            self._epochs.setdefault(self._epoch, Epoch()).stall_seconds += seconds
            self._news = True

    def epochs(self) -> dict[int, Epoch]:
        """All there is to know by now."""
        self._drain()
        with self._lock:
            return {number: Epoch(**vars(epoch)) for number, epoch in self._epochs.items()}

    def finish(self) -> None:
        """Report the last figures, at the end of the program; a fork of it that ends has none."""
        if os.getpid() == self._process:
            self._report(self.epochs())

    def _run(self) -> None:
        while True:
            try:
                select.select([self._reading], [], [], INTERVAL)
                self._drain()
                if self._news and time.monotonic() - self._reported_at >= INTERVAL:
                    self._reported_at, self._news = time.monotonic(), False
                    self._report(self.epochs())
            except Exception:
                LOG.warning("reads are counted no more, training goes on", exc_info=True)
                return

    def _drain(self) -> None:
        with self._lock:
            while True:
                try:
                    got = os.read(self._reading, _RECORD.size * _AT_ONCE)
                except BlockingIOError:
                    return
                for index, seconds, kind in _RECORD.iter_unpack(got):
                    self._account(index, seconds, kind)

    def _account(self, index: int, seconds: float, kind: int) -> None:
        planned = self._epoch if self._listener is None else self._listener.on_read(index)
        epoch = self._epochs.setdefault(self._epoch if self._watched else planned, Epoch())
        epoch.hits += kind == _HIT
        epoch.misses += kind == _MISS
        if kind == _MISS and not self._watched:  # nobody times the training loop: the readers' time has to do
            epoch.stall_seconds += seconds
        self._news = True
