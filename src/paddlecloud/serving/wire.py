"""Protobuf's wire format, walked without decoding: which fields there are and where they lie.

For what must be known before a message is decoded: how many fields it has, which files a model names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Buffer = Any
"""Bytes, a memoryview or an mmap."""

LAST_FIELD = (1 << 29) - 1
_FIXED = {1: 8, 5: 4}
_LENGTH_DELIMITED = 2


Schema = Mapping[int, Any]
"""Number of a field that holds a message → the schema of that message."""


class WireField(NamedTuple):
    message: Schema
    """Of the message that it is a field of."""
    number: int
    start: int
    end: int


class Malformed(ValueError):
    """Not protobuf, or of a form that proto3 does not write (groups)."""


def walk(data: Buffer, schema: Schema, *, most: int) -> Iterator[WireField]:
    """Every field, those inside the messages of the schema included; `Malformed` if there are more than `most`.

    Without recursion: messages may be nested as deeply as they like.
    """
    seen = 0
    waiting: list[tuple[Schema, int, int]] = [(schema, 0, len(data))]
    while waiting:
        inside, at, stop = waiting.pop()
        while at < stop:
            seen += 1
            if seen > most:
                raise Malformed(f"the message has more than {most} fields")
            tag, at = _varint(data, at, stop)
            number, kind = tag >> 3, tag & 7
            if not number or tag >> 32:  # parsers would take the low 32 bits, and so another field
                raise Malformed(f"field {number} is not between 1 and {LAST_FIELD}")
            if kind == _LENGTH_DELIMITED:
                size, at = _varint(data, at, stop)
                begin, at = at, at + size
            elif kind == 0:
                begin = at
                _, at = _varint(data, at, stop)
            elif kind in _FIXED:
                begin, at = at, at + _FIXED[kind]
            else:
                raise Malformed(f"wire type {kind} is not known")
            if at > stop:
                raise Malformed("a field is longer than its message")
            yield WireField(inside, number, begin, at)
            if kind == _LENGTH_DELIMITED and number in inside:
                waiting.append((inside[number], begin, at))


def _varint(data: Buffer, at: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while at < stop and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise Malformed("a number is cut off")
