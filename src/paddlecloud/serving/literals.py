"""Values that Paddle Serving's pipeline clients send as text: JSON, or Python's lists, tuples, texts and numbers.

Python's notation is rewritten as JSON piece by piece and read by the JSON parser: both are linear in the length of the
text, where `ast.literal_eval` needs hundreds of bytes for each character. What is neither is a plain text.
"""

from __future__ import annotations

import json
import re
from typing import Any

LONGEST = 1 << 20
"""Characters of Python's notation that are read; a longer text that is not JSON is a plain text."""

_PIECE = re.compile(
    r"""(?P<text>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")"""
    r"""|(?P<stray>['"])|(?P<mark>[()])|(?P<word>\b(?:True|False|None)\b)"""
    r"""|(?P<point>(?<=[0-9])\.(?![0-9]))|(?P<comma>,(?=\s*(?:[\])}]|$)))"""
)
"""A quote that begins no text is `stray` and ends the reading: to go on from the next one would take quadratic time."""
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
"""What `repr` writes with a backslash."""
_REWRITTEN = {"(": "[", ")": "]", "True": "true", "False": "false", "None": "null", ".": ".0", ",": ""}
_WORDS = {"True": True, "False": False, "None": None}
_BEGINS = frozenset("[({'\"-.0123456789")


def read(text: str) -> Any:
    """The value that the text denotes, or the text itself. Tuples become lists."""
    stripped = text.strip()
    if stripped in _WORDS:
        return _WORDS[stripped]
    if stripped[:1] not in _BEGINS:
        return text
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        pass  # perhaps Python's notation
    if len(stripped) > LONGEST:
        return text
    try:
        found = json.loads(f"[{_PIECE.sub(_as_json, stripped)}]")
    except (ValueError, OverflowError, RecursionError):  # OverflowError: a number that no character has
        return text
    return found[0] if len(found) == 1 else found


def _as_json(piece: re.Match[str]) -> str:
    if piece.lastgroup == "stray":
        raise ValueError("a text without an end")
    if piece.lastgroup != "text":
        return _REWRITTEN[piece[0]]
    inner = piece[0][1:-1]
    return json.dumps(_ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner)


def _unescaped(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2] or escape[3]
    if number:
        return chr(int(number, 16))
    if escape[4] not in _ESCAPED:
        raise ValueError(f"unknown escape {escape[0]!r}")
    return _ESCAPED[escape[4]]
