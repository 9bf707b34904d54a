"""Where a message's body ends, found piece by piece as it arrives. Pure: no I/O, no waiting.

A body takes data and gives back what of it is content, whether that was the end, and what belongs to the next message.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from paddlecloud.local.knative.gateway.http1 import CHUNKED, UNTIL_CLOSE, BadMessage

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_LONGEST_LINE = 4096
_LONGEST_TRAILER = 16 * 1024


class Piece(NamedTuple):
    content: bytes
    ended: bool
    rest: bytes


class Body(Protocol):
    def feed(self, data: bytes) -> Piece: ...


class Counted:
    """So many bytes."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    def feed(self, data: bytes) -> Piece:
        left = self._left - len(data)
        if left > 0:
            self._left = left
            return Piece(data, False, b"")
        self._left = 0
        return Piece(data, True, b"") if left == 0 else Piece(data[:left], True, data[left:])


class UntilClose:
    """All that comes until the connection is closed."""

    __slots__ = ()

    def feed(self, data: bytes) -> Piece:
        return Piece(data, False, b"")


class Chunked:
    """Chunks with their sizes taken off. Extensions and trailers are read and dropped."""

    __slots__ = ("_buffer", "_left", "_state", "_status", "_trailer")

    def __init__(self, status: int) -> None:
        self._buffer = b""
        self._left = 0
        self._state = "size"
        self._status = status
        self._trailer = 0

    def feed(self, data: bytes) -> Piece:
        data = self._buffer + data if self._buffer else data
        self._buffer = b""
        contents: list[bytes] = []
        at = 0
        while True:
            if self._state == "data":
                taken = min(self._left, len(data) - at)
                if taken:
                    contents.append(data[at : at + taken])
                    at += taken
                    self._left -= taken
                if self._left:
                    return Piece(b"".join(contents), False, b"")
                self._state = "gap"
            line = self._line(data, at)
            if line is None:
                self._buffer = data[at:]
                return Piece(b"".join(contents), False, b"")
            at += len(line) + 2
            if self._state == "gap":
                if line:
                    raise BadMessage(self._status, "a chunk is longer than its size")
                self._state = "size"
            elif self._state == "size":
                self._begin(line)
            elif not line:
                return Piece(b"".join(contents), True, data[at:])
            else:
                self._trailer += len(line)
                if self._trailer > _LONGEST_TRAILER:
                    raise BadMessage(self._status, "the trailer is too long")

    def _line(self, data: bytes, at: int) -> bytes | None:
        end = data.find(b"\n", at, at + _LONGEST_LINE)
        if end < 0:
            if len(data) - at >= _LONGEST_LINE:
                raise BadMessage(self._status, "a chunk's size is too long")
            if self._state == "gap" and data[at : at + 2] not in (b"", b"\r", b"\r\n"):
                raise BadMessage(self._status, "a chunk is longer than its size")
            return None
        if end == at or data[end - 1] != 13:
            raise BadMessage(self._status, "a line ends without CR LF")
        return data[at : end - 1]

    def _begin(self, line: bytes) -> None:
        size = _SIZE.fullmatch(line)
        if size is None:
            raise BadMessage(self._status, "a chunk's size is not a number")
        self._left = int(size[1], 16)
        self._state = "data" if self._left else "trailer"


def body_of(length: int, *, status: int) -> Body | None:
    """What reads a body of this length; None where there is none. `status` says whose mistake a broken one is."""
    if length == 0:
        return None
    if length == CHUNKED:
        return Chunked(status)
    return UntilClose() if length == UNTIL_CLOSE else Counted(length)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content) if content else b""


LAST_CHUNK = b"0\r\n\r\n"
