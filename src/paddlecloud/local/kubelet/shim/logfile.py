"""Container output on disk: one line of the container becomes one line with time and stream, files rotate by size.

The format is the one Kubernetes' container runtimes write (`2026-11-15T09:46:56.123456Z stdout F text`; `P` marks a
piece of a line that is longer than one read), so that `--timestamps`, `--since` and a reader's place in the file need
no second index. A chunk costs one pass in C, not a loop over its lines, so that a flood of output does not starve
the shim. Standard library only: the shim imports this.
"""

from __future__ import annotations

import os
import time

DEFAULT_MAX_BYTES = 10 * 1024 * 1024
DEFAULT_MAX_FILES = 5


class LogFile:
    """Appends to `path`; older output is `path.1`, `path.2` … and the oldest is dropped."""

    def __init__(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES, max_files: int = DEFAULT_MAX_FILES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._fd = self._open()
        self._size = os.fstat(self._fd).st_size
        self._lost = 0

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def write(self, data: bytes) -> None:
        """A container is never stopped for a full disk: what the disk refuses is lost, and the log says how much
        as soon as it takes something again."""
        if self._lost and not self._append(_gap(self._lost)):
            self._lost = 0
        if self._size and self._size + len(data) > self._max_bytes:
            self._rotate()
        self._lost += self._append(data)

    def _append(self, data: bytes) -> int:
        """Returns how many bytes the disk refused."""
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._fd, view)
            except OSError:
                break
            self._size += written
            view = view[written:]
        return len(view)

    def _rotate(self) -> None:
        os.close(self._fd)
        for number in range(self._max_files - 1, 0, -1):
            source = self.path if number == 1 else f"{self.path}.{number - 1}"
            try:
                os.replace(source, f"{self.path}.{number}")
            except OSError:
                continue  # fewer files than allowed exist so far
        if self._max_files == 1:
            os.truncate(self.path, 0)
        self._fd = self._open()
        self._size = 0

    def close(self) -> None:
        os.close(self._fd)


def _gap(lost: int) -> bytes:
    """A new line, whatever the disk left of the one before."""
    return b"\n" + format_chunk(b"stderr", b"[%d bytes of output are missing: the disk was full]\n" % lost, time.time())


def format_chunk(stream: bytes, chunk: bytes, now: float) -> bytes:
    """One read of a stream in the log format. The open end of a last line is a `P` piece: readers join pieces."""
    stamp = _stamp(now) + b" " + stream
    full = stamp + b" F "
    head, newline, rest = chunk.rpartition(b"\n")
    lines = full + head.replace(b"\n", b"\n" + full) + b"\n" if newline else b""
    return lines + stamp + b" P " + rest + b"\n" if rest else lines


def _stamp(now: float) -> bytes:
    seconds = int(now)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{moment}.{int((now - seconds) * 1e9):09d}Z".encode()
