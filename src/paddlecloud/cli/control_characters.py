"""Text that others wrote, on the user's terminal: its control characters are shown and not carried out.

Names, messages, annotations and what pods answer may be written by anybody. On a terminal an escape sequence in them
could hide lines, forge output or change its settings. Tables replace such characters, and JSON and YAML escape them;
what a user asks for as raw text (a template, a log, a program's output) is left as it is.
"""

from __future__ import annotations

import re

COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "bold": "1"}
RESET = "\x1b[0m"

_OURS = rf"\x1b\[(?:0|{'|'.join(COLOURS.values())})m"
_CONTROL = re.compile(rf"({_OURS})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_LEFT_BY_JSON = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def painted(text: str, colour: str) -> str:
    return f"\x1b[{COLOURS[colour]}m{text}{RESET}"


def visible(text: str) -> str:
    """The text with all control characters but line ends, tabs and our colours written out: `^[` for ESC."""
    return _CONTROL.sub(_shown, text)


def in_json(text: str) -> str:
    """JSON with those control characters escaped that its encoder leaves as they are. Its meaning is the same."""
    return _LEFT_BY_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _shown(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    code = ord(match[0])
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"\\u{code:04x}"
