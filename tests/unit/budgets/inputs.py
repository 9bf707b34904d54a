"""Inputs made to be slow, and what a row of the budgets is.

`covers` names the place where such input comes in: a route, a media type, a query option.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    covers: str
    shape: str
    make: Callable[[int], Any]
    """Input of about so many bytes."""
    run: Callable[[Any], Any]
    largest: int = 1 << 21
    """Bytes beyond which the input is refused, or is not tried."""
    smallest: int = 1 << 11

    def __str__(self) -> str:
        return f"{self.covers}: {self.shape}"


def times(unit: Any, before: Any = None, after: Any = None) -> Callable[[int], Any]:
    """Inputs that repeat a unit."""
    empty = unit[:0]
    return lambda size: (before or empty) + unit * max(1, size // len(unit)) + (after or empty)


def of(make: Callable[[int], Any], then: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda size: then(make(size))


JSON: dict[str, Callable[[int], bytes]] = {
    "lists in lists": times(b"["),
    "objects in objects": times(b'{"a":'),
    "many lists": times(b"[],", b"[", b"0]"),
    "many objects": times(b"{},", b"[", b"0]"),
    "many keys": lambda size: b"{" + b",".join(b'"%d":0' % n for n in range(size // 9)) + b"}",
    "one key many times": times(b'"a":0,', b"{", b'"b":0}'),
    "many keys twice": lambda size: b"{" + b",".join(b'"%d":0,"%d":0' % (n, n) for n in range(size // 18)) + b"}",
    "escapes": times(b"\\u0041", b'{"a":"', b'"}'),
    "an unterminated text": times(b"a", b'{"a":"'),
    "a long number": times(b"1", b'{"a":', b"}"),
    "a long fraction": times(b"1", b'{"a":0.', b"}"),
    "many numbers": times(b"1.5,", b'{"a":[', b"0]}"),
    "spaces": times(b" ", b"{", b"}"),
}


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def nested(number: int, size: int) -> bytes:
    found = b""
    while len(found) < size and len(found) < 20_000:
        found = field(number, found)
    return found


def run(row: Row, given: Any) -> None:
    """Refusals are as good as answers, as long as they cost no more."""
    with contextlib.suppress(Exception):
        found = row.run(given)
        if asyncio.iscoroutine(found):
            asyncio.run(found)
