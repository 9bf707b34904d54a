"""Whether a JSON text becomes too many values, found out before it is decoded. Pure.

A list takes some sixty bytes of memory and three of text, `[],`: a limit of bytes alone lets few of them become many.
"""

from __future__ import annotations

import re

_BEFORE_A_VALUE = (b",", b"[", b"{")
"""One of these is before every value, but for the first one."""
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)', re.DOTALL)


def has_more_values(data: bytes, limit: int) -> bool:
    """Texts, which may hold any number of commas, count once."""
    if _marks(data) <= limit:
        return False
    quotes = data.count(b'"')
    if not quotes or quotes - data.count(b'\\"') > 4 * limit:  # each text is a value or the name of one
        return True
    return _marks(_TEXT.sub(b"", data)) > limit


def _marks(data: bytes) -> int:
    return sum(data.count(each) for each in _BEFORE_A_VALUE)
