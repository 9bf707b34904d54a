"""Reads container logs back: tail, since, timestamps, limits, over rotated files, and on as they grow.

Depends on nothing but the pod directory, so the logs of a pod that ended are read like those of one that runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.kube.clock import rfc3339_micro
from paddlecloud.local.kubelet.streams.inotify import Watch

BLOCK = 256 * 1024
TAIL = 64 * 1024
"""Bytes of the end of a file in which its last lines are looked for first."""
MOST_ATTEMPTS = 100
"""To find the files of a log in their order, between rotations."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    tail: int | None = None
    since: float | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: str = "All"
    """`All`, `Stdout` or `Stderr`."""


@dataclass(slots=True)
class Segment:
    """One of the files of a log, open: a rotation renames it, or removes its name, under the reader."""

    fd: int
    inode: int
    size: int
    """When it was opened."""


def open_segments(path: Path) -> list[Segment]:
    """The files of one container run, oldest first.

    A rotation meanwhile hides none of them. Several, while this process did not run, would mix up their order: then
    they are opened again.
    """
    for _ in range(MOST_ATTEMPTS):
        found = _open_once(path)
        if not found or _rotated_at_most_once(path, *found[0]):
            break
        _close(segment for _, segment in found)
    return [segment for _, segment in reversed(found)]


def _open_once(path: Path) -> list[tuple[int, Segment]]:
    """With the number in their names, from the newest to the oldest.

    In that order a rotation meanwhile shows a file twice and hides none. It has one number missing at a time.
    """
    found: list[tuple[int, Segment]] = []
    number = missing = 0
    while missing < 2:
        try:
            fd = os.open(_numbered(path, number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            missing += 1
        else:
            missing = 0
            state = os.fstat(fd)
            if found and found[-1][1].inode == state.st_ino:
                os.close(fd)
            else:
                found.append((number, Segment(fd, state.st_ino, state.st_size)))
        number += 1
    return found


def _rotated_at_most_once(path: Path, number: int, segment: Segment) -> bool:
    """Since the file was opened by that number. While it is open, its inode is that of no other file."""
    for name in (_numbered(path, number), _numbered(path, number + 1)):
        try:
            if os.stat(name).st_ino == segment.inode:
                return True
        except FileNotFoundError:
            continue  # a rotation has one number missing at a time
    return False


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


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


def _seek_tail(files: list[Segment], count: int) -> list[Segment]:
    """The files that hold the last `count` lines, the first of them at the place where these begin."""
    for index in range(len(files) - 1, -1, -1):
        offset, found = _last_lines(files[index], count)
        count -= found
        if count <= 0:
            os.lseek(files[index].fd, offset, os.SEEK_SET)
            return files[index:]
    return files


def _last_lines(segment: Segment, count: int) -> tuple[int, int]:
    """Offset of the last `count` whole lines in a file, and how many there are (pieces of one line count as one). Of a
    long file only its end is read, as much as these lines take."""
    if count <= 0:
        return segment.size, 0
    begin, span = segment.size, TAIL
    while True:
        begin = max(0, segment.size - span)
        starts = _line_starts(segment, begin)
        if len(starts) >= count or begin == 0:
            wanted = starts[-count:]
            return wanted[0], len(wanted)
        span *= 4


def _line_starts(segment: Segment, begin: int) -> list[int]:
    """Where lines begin, from an offset on. What follows it at once is the rest of a line, unless it is the beginning
    of the file."""
    starts = [] if begin else [0]
    position = begin
    rest = os.pread(segment.fd, segment.size - begin, begin)
    for number, line in enumerate(_lines(rest)):
        position += len(line)
        if (number or not begin) and line.split(b" ", 3)[2:3] == [b"F"]:
            starts.append(position)
    if len(starts) > 1 and starts[-1] == position:
        starts.pop()
    return starts


def _lines(data: bytes) -> list[bytes]:
    *lines, rest = data.split(b"\n")
    return [*(line + b"\n" for line in lines), *([rest] if rest else [])]


def read_end(path: Path, limit: int) -> bytes:
    """What the container printed last, as much as `limit` bytes of its log hold. No more is read."""
    pieces: list[bytes] = []
    files = open_segments(path)
    for segment in reversed(files):
        piece = os.pread(segment.fd, limit + 1, max(0, segment.size - limit - 1))
        whole = piece if segment.size <= limit else piece.partition(b"\n")[2]  # from the first line that is not cut
        pieces.insert(0, whole)
        limit -= len(piece)
        if limit <= 0:
            break
    _close(files)
    return Formatter(LogOptions()).format(b"".join(pieces).split(b"\n")[:-1])


def _blocks(fd: int, until: int | None = None) -> Iterator[list[bytes]]:
    """Whole lines of the rest of a file, or of it up to `until`; an unfinished one is left for the next reader."""
    rest = b""
    left = until - os.lseek(fd, 0, os.SEEK_CUR) if until is not None else BLOCK
    while left > 0 and (block := os.read(fd, min(BLOCK, left))):
        left -= len(block) if until is not None else 0
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield lines
    if rest:
        os.lseek(fd, -len(rest), os.SEEK_CUR)


async def read_log(
    path: Path, options: LogOptions, *, pod_dir: Path, ended: Callable[[], bool], turn: asyncio.Lock | None = None
) -> AsyncIterator[bytes]:
    """The log of one container run: what it holds now. With `follow` it goes on until `ended` says that nothing more
    will come.

    `ended` is asked after every change in the pod directory. Readers that have a `turn` in common work one after the
    other, and everybody else is served in between: a program that prints very much may have very many readers.
    """
    turn = turn or asyncio.Lock()
    if not options.follow:
        async for data in _read_now(path, options, turn):
            yield data
        return
    watch = Watch(str(pod_dir), str(path.parent))
    try:
        async for data in _follow(path, options, watch, ended, turn):
            yield data
    finally:
        watch.close()


async def _open_first(path: Path, tail: int | None) -> list[Segment]:
    """The files to read, the first of them at the place where to begin. Lines are counted in a thread: somebody may ask
    for a million of them."""
    files = open_segments(path)
    if tail is None:
        return files
    if tail == 0:  # no lines to count; and who asked for what comes from now on must miss nothing
        chosen = _seek_tail(files, 0)
    else:
        counting = asyncio.ensure_future(asyncio.to_thread(_seek_tail, files, tail))
        try:
            chosen = await asyncio.shield(counting)
        except BaseException:
            counting.add_done_callback(lambda _: _close(files))  # a thread is not cancelled: it reads them to its end
            raise
    _close(files[: len(files) - len(chosen)])
    return chosen


def _close(files: Iterable[Segment]) -> None:
    for segment in files:
        os.close(segment.fd)


async def _pieces(blocks: Iterator[list[bytes]], formatter: Formatter, turn: asyncio.Lock) -> AsyncIterator[bytes]:
    """What the blocks say, until the byte limit is reached."""
    while not formatter.full:
        async with turn:
            block = next(blocks, None)
            if block is None:
                return
            data = formatter.format(block)
            await asyncio.sleep(0)
        if data:
            yield data


async def _read_now(path: Path, options: LogOptions, turn: asyncio.Lock) -> AsyncIterator[bytes]:
    """To where the log ended when it was asked for: a program that prints faster than it is read has no other end."""
    formatter = Formatter(options)
    async with turn:
        files = await _open_first(path, options.tail)
    try:
        for segment in files:
            async for data in _pieces(_blocks(segment.fd, segment.size), formatter, turn):
                yield data
    finally:
        _close(files)


async def _follow(
    path: Path, options: LogOptions, watch: Watch, ended: Callable[[], bool], turn: asyncio.Lock
) -> AsyncIterator[bytes]:
    formatter = Formatter(options)
    async with turn:
        files = await _open_first(path, options.tail)
    try:
        while True:
            last = ended()  # asked before reading: what was written before the end is read after it
            while True:
                async with turn:  # before reading: what follows a file in a newer one is read after it
                    newer = _newer_segments(path, files)
                    files += newer
                    await asyncio.sleep(0)
                for segment in files:
                    async for data in _pieces(_blocks(segment.fd), formatter, turn):
                        yield data
                    if formatter.full:
                        return
                _close(files[:-1])
                del files[:-1]
                if not newer:
                    break
            if last:
                return
            watch.add(str(path.parent))  # the container may not have run when the reader came
            await watch.wait()
    finally:
        _close(files)


def _newer_segments(path: Path, files: list[Segment]) -> list[Segment]:
    """What follows the newest of the open files. Files are identified by inode, which an open file keeps for itself."""
    found = open_segments(path)
    inodes = [segment.inode for segment in found]
    known = inodes.index(files[-1].inode) + 1 if files and files[-1].inode in inodes else 0
    _close(found[:known])
    return found[known:]
