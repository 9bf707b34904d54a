"""The words of an expression. Pure."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

LONGEST = 64 * 1024
"""Characters of an expression; longer ones are not read."""

Kind = Literal["name", "number", "string", "sign", "end"]

_WORD_OPERATORS = frozenset(
    ("in", "or", "and", "not", "matches", "contains", "startsWith", "endsWith", "let", "if", "else")
)
_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)+)
    |(?P<number>0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+
        |(?:[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?)
    |(?P<name>[^\W\d]\w*|\$\w+)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<raw>`(?:[^`]|``)*`)
    |(?P<sign>\?\?|\?\.|\.\.|\*\*|&&|\|\||::|[=!<>]=|[-+*/%^<>!?:.,;|=\#()\[\]{}])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))"
)
_SHORT = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip


class ExpressionError(ValueError):
    """The text is no expression, or has no value here. The message is for its author."""


class Token(NamedTuple):
    kind: Kind
    text: str
    at: int


def tokens(text: str) -> list[Token]:
    if len(text) > LONGEST:
        raise ExpressionError(f"the expression is longer than {LONGEST} characters")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"unrecognized character {text[at]!r} at {at + 1}")
        if match.lastgroup != "space":
            found.append(_token(str(match.lastgroup), match[0], at))
        at = match.end()
    found.append(Token("end", "", at))
    return found


def _token(group: str, text: str, at: int) -> Token:
    if group == "raw":
        return Token("string", text[1:-1].replace("``", "`"), at)
    if group == "string":
        return Token("string", _ESCAPE.sub(_unescaped, text[1:-1]), at)
    if group == "name":
        return Token("sign" if text in _WORD_OPERATORS else "name", text, at)
    return Token("number" if group == "number" else "sign", text, at)


def _unescaped(match: re.Match[str]) -> str:
    two, braced, four, eight, octal, short = match.groups()
    if short is not None:
        if short not in _SHORT:
            raise ExpressionError(f"unable to unescape \\{short} in a string")
        return _SHORT[short]
    code = int(octal, 8) if octal else int(two or braced or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ExpressionError(f"{match[0]} in a string is no character")
    return chr(code)
