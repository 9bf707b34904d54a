"""Reads container logs back: tail, since, timestamps, limits, over rotated files, and on as they grow.

Depends on nothing but the pod directory, so the logs of a pod that ended are read like those of one that runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.kube.clock import rfc3339_micro
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.kubelet.streams.inotify import Watch

BLOCK = 256 * 1024


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    tail: int | None = None
    since: float | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: str = "All"
    """`All`, `Stdout` or `Stderr`."""


def segments(path: Path) -> list[Path]:
    """The files of one container run, oldest first."""
    rotated = []
    number = 1
    while (older := path.with_name(f"{path.name}.{number}")).exists():
        rotated.append(older)
        number += 1
    return [*reversed(rotated), *([path] if path.exists() else [])]


class Formatter:
    """From lines of the log format to what the container printed, minus what the options leave out."""

    def __init__(self, options: LogOptions) -> None:
        self._stamps = options.timestamps
        self._since = rfc3339_micro(options.since).removesuffix("Z").encode() if options.since is not None else b""
        self._stream = b"" if options.stream == "All" else options.stream.lower().encode()
        self._left = options.limit_bytes
        self._midline = False
        self.full = False
        """The byte limit is reached."""

    def format(self, lines: list[bytes]) -> bytes:
        pieces = []
        for line in lines:
            stamp, _, rest = line.partition(b" ")
            stream, _, rest = rest.partition(b" ")
            tag, _, text = rest.partition(b" ")
            if (self._since and stamp < self._since) or (self._stream and stream != self._stream):
                continue
            if self._stamps and not self._midline:
                pieces.append(stamp + b" ")
            self._midline = tag == b"P"
            pieces.append(text if self._midline else text + b"\n")
        data = b"".join(pieces)
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
            self.full = self._left <= 0
        return data


def tail_position(path: Path, count: int) -> tuple[list[Path], int]:
    """The segments that hold the last `count` lines, and where in the first of them they begin."""
    chosen: list[Path] = []
    for segment in reversed(segments(path)):
        chosen.insert(0, segment)
        offset, found = _last_lines(segment, count)
        if found >= count:
            return chosen, offset
        count -= found
    return chosen, 0


def _last_lines(segment: Path, count: int) -> tuple[int, int]:
    """Offset of the last `count` whole lines in a file, and how many there are (pieces of one line count as one)."""
    if count <= 0:
        return segment.stat().st_size, 0
    with segment.open("rb") as handle:
        starts = [0]
        position = 0
        for line in handle:
            position += len(line)
            if line.split(b" ", 3)[2:3] == [b"F"]:
                starts.append(position)
    if starts[-1] == position and len(starts) > 1:
        starts.pop()
    wanted = starts[-count:]
    return wanted[0], len(wanted)


def read_end(path: Path, limit: int) -> bytes:
    """What the container printed last, as much as `limit` bytes of its log hold. No more is read."""
    pieces: list[bytes] = []
    for segment in reversed(segments(path)):
        with segment.open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            handle.seek(max(0, size - limit - 1))
            piece = handle.read(limit + 1)
        whole = piece if size <= limit else piece.partition(b"\n")[2]  # from the first line that is not cut
        pieces.insert(0, whole)
        limit -= len(piece)
        if limit <= 0:
            break
    return Formatter(LogOptions()).format(b"".join(pieces).split(b"\n")[:-1])


def _blocks(fd: int, start: bytes = b"") -> Iterator[list[bytes]]:
    """Whole lines of the rest of a file; an unfinished one at its end is left for the next reader."""
    rest = start
    while block := os.read(fd, BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield lines
    if rest:
        os.lseek(fd, -len(rest), os.SEEK_CUR)


async def read_log(
    path: Path, options: LogOptions, *, pod_dir: Path, ended: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The log of one container run. With `follow` it goes on until `ended` says that nothing more will come.

    `ended` is asked after every change in the pod directory.
    """
    if not options.follow:
        async for data in _follow(path, options, None, lambda: True):
            yield data
        return
    watch = Watch(str(pod_dir), str(path.parent))
    try:
        async for data in _follow(path, options, watch, ended):
            yield data
    finally:
        watch.close()


def _open_first(path: Path, tail: int | None) -> int | None:
    """The file to begin with, open where to begin."""
    files, offset = (segments(path), 0) if tail is None else tail_position(path, tail)
    if not files:
        return None
    fd = os.open(files[0], os.O_RDONLY | os.O_CLOEXEC)
    os.lseek(fd, offset, os.SEEK_SET)
    return fd


async def _follow(
    path: Path, options: LogOptions, watch: Watch | None, ended: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Without a `watch` it must have ended. Lines are counted in a thread, and others are served between blocks: a log
    has a million lines, of which none may be asked for."""
    formatter = Formatter(options)
    slice_ = TimeSlice()
    fd: int | None = None
    try:
        if not options.tail:  # no lines to count; and who asked for what comes from now on must miss nothing
            fd = _open_first(path, options.tail)
        else:
            fd = await asyncio.to_thread(_open_first, path, options.tail)
        while True:
            last = ended()  # asked before reading: what was written before the end is read after it
            while True:
                if fd is not None:
                    for block in _blocks(fd):
                        if data := formatter.format(block):
                            yield data
                        if formatter.full:
                            return
                        await slice_.checkpoint()
                newer = _next_segment(path, fd)
                if newer is None:
                    break
                if fd is not None:
                    os.close(fd)
                fd = os.open(newer, os.O_RDONLY | os.O_CLOEXEC)
            if last or watch is None:
                return
            watch.add(str(path.parent))  # the container may not have run when the reader came
            await watch.wait()
    finally:
        if fd is not None:
            os.close(fd)


def _next_segment(path: Path, fd: int | None) -> Path | None:
    """The file that follows the open one; rotation renames files, so files are identified by inode."""
    files = segments(path)
    if fd is None:
        return files[0] if files else None
    inode = os.fstat(fd).st_ino
    for number, segment in enumerate(files):
        if segment.stat().st_ino == inode:
            return files[number + 1] if number + 1 < len(files) else None
    return files[0] if files else None  # rotated away altogether while the reader was slow
