"""`when` of a step or task: a condition over texts that were substituted before. Pure.

The language is govaluate's, as Argo uses it: a bare word is a text, so `{{item}} == heads` needs no quotes. Texts that
read as numbers are numbers, and `==` compares whatever there is.
"""

from __future__ import annotations

import re
from typing import Any

from paddlecloud.api.pattern import PatternError, TooCostly, compile_pattern
from paddlecloud.local.workflow.expressions.budget import take_work

LONGEST = 64 * 1024
DEEPEST = 60

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |\[(?P<bracketed>[^\]]*)\]
    |(?P<word>[^\W\d][\w.]*|\d+[^\W\d]\w*)
    |(?P<sign>==|!=|>=|<=|=~|!~|&&|\|\||\*\*|\?\?|[-+*/%<>!?:,()]))""",
    re.VERBOSE,
)
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!=", ">", "<", ">=", "<=", "=~", "!~", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)


class BadCondition(ValueError):
    """The text is no condition; the message says why."""


def holds(condition: str) -> bool:
    """Raises `BadCondition`."""
    if not condition:
        return True
    take_work(len(condition) // 4)
    try:
        value = _Condition(_tokens(condition)).whole()
    except RecursionError:
        raise BadCondition(f"Invalid 'when' expression '{condition[:200]}': nested too deeply") from None
    except BadCondition as why:
        raise BadCondition(f"Invalid 'when' expression '{condition[:200]}': {why}") from None
    if not isinstance(value, bool):
        raise BadCondition(f"Expected boolean evaluation for '{condition[:200]}'. Got {value}")
    return value


def _tokens(text: str) -> list[tuple[str, Any]]:
    if len(text) > LONGEST:
        raise BadCondition(f"longer than {LONGEST} characters")
    found: list[tuple[str, Any]] = []
    text, at = text.rstrip(), 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            hint = '(hint: try wrapping the affected expression in quotes ("))'
            raise BadCondition(f"Invalid token: '{text[at : at + 20].strip()}' {hint}")
        kind, word = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "word" and word in ("true", "false"):
            found.append(("value", word == "true"))
        elif kind == "word" and word == "in":
            found.append(("sign", "in"))
        elif kind == "number":
            found.append(("value", float(word)))
        elif kind == "sign":
            found.append(("sign", word))
        else:
            found.append(("value", re.sub(r"\\(.)", r"\1", word[1:-1]) if kind == "string" else word))
        at = match.end()
    return [*found, ("end", None)]


class _Condition:
    def __init__(self, tokens: list[tuple[str, Any]]) -> None:
        self._tokens = tokens
        self._at = 0

    def _is(self, *signs: str) -> bool:
        kind, value = self._tokens[self._at]
        return kind == "sign" and value in signs

    def _next(self) -> Any:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def whole(self) -> Any:
        value = self._level(0, 0)
        if self._tokens[self._at][0] != "end":
            raise BadCondition(f"unexpected '{self._tokens[self._at][1]}'")
        return value

    def _level(self, level: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise BadCondition(f"nested more than {DEEPEST} times")
        if level == len(_LEVELS):
            return self._operand(depth)
        left = self._level(level + 1, depth)
        while self._is(*_LEVELS[level]):
            sign = self._next()
            left = _applied(sign, left, self._level(level + 1, depth))
        return left

    def _operand(self, depth: int) -> Any:
        if self._is("!"):
            self._next()
            value = self._operand(depth + 1)
            if not isinstance(value, bool):
                raise BadCondition(f"Value '{value}' cannot be used with the logical prefix '!', it is not a bool")
            return not value
        if self._is("-"):
            self._next()
            return -_number("-", self._operand(depth + 1))
        if self._is("("):
            return self._bracket(depth)
        kind, value = self._tokens[self._at]
        if kind != "value":
            raise BadCondition("unexpected end of expression" if kind == "end" else f"unexpected '{value}'")
        self._at += 1
        return value

    def _bracket(self, depth: int) -> Any:
        """`(a || b)`, or a list: `(a, b)`."""
        self._next()
        items = [self._level(0, depth + 1)]
        while self._is(","):
            self._next()
            items.append(self._level(0, depth + 1))
        if not self._is(")"):
            raise BadCondition("Unbalanced parenthesis")
        self._next()
        return items if len(items) > 1 else items[0]


def _number(sign: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float):
        raise BadCondition(f"Value '{value}' cannot be used with the modifier '{sign}', it is not a number")
    return value


def _applied(sign: str, a: Any, b: Any) -> Any:
    if sign in ("&&", "||"):
        for value in (a, b):
            if not isinstance(value, bool):
                raise BadCondition(
                    f"Value '{value}' cannot be used with the logical operator '{sign}', it is not a bool"
                )
        return (a and b) if sign == "&&" else (a or b)
    if sign in ("==", "!="):
        same = type(a) is type(b) and a == b
        return same if sign == "==" else not same
    if sign == "in":
        return any(type(a) is type(each) and a == each for each in (b if isinstance(b, list) else [b]))
    if sign in ("=~", "!~"):
        return _matches(a, b) == (sign == "=~")
    if sign in ("<", ">", "<=", ">="):
        return _compared(sign, a, b)
    if sign == "+" and isinstance(a, str) and isinstance(b, str):
        return a + b
    return _calculated(sign, _number(sign, a), _number(sign, b))


def _matches(text: Any, pattern: Any) -> bool:
    take_work(0, (len(str(pattern)) + 1) * (len(str(text)) + 1))
    try:
        return compile_pattern(str(pattern)).search(str(text))
    except (PatternError, TooCostly) as why:
        raise BadCondition(f"'{pattern}' is no regular expression: {why}") from None


def _compared(sign: str, a: Any, b: Any) -> bool:
    if type(a) is not type(b) or not isinstance(a, (float, str)):
        raise BadCondition(f"Value '{a}' cannot be used with the comparator '{sign}', it is not a number")
    return bool({"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign])


def _calculated(sign: str, a: float, b: float) -> float:
    if sign in ("/", "%") and b == 0:
        raise BadCondition("division by zero")
    return {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0, "%": a % b if b else 0.0}[sign]
