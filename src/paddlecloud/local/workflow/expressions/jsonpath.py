"""`jsonpath(text, path)` of Argo's expressions, as the library evilmonkeyinc/jsonpath answers it.

A path of names and indexes gives the value it leads to, or an error where there is none; one with a wildcard, a slice,
a filter, a union or `..` gives a list of all that it leads to. Filters compare what `@` leads to with text, numbers
and words, joined by `&&` and `||`. Scripts (`[(@.length-1)]`) and functions are not served.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from paddlecloud.local.workflow.expressions.budget import take_work
from paddlecloud.local.workflow.expressions.functions import GROWING
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import Value, equal, from_json, is_number

MOST_SELECTORS = 32
MOST_VISITS = 50_000
"""Values that one path may come by: `..` of `..` would come by each many times."""
LONGEST_PATH = 4096
MOST_FILTERS = 16
"""Of one path: a filter may be inside of another."""

_NAME = re.compile(r"[^\s.\[\]()'\"]+")
_INDEX = re.compile(r"-?\d+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_SLICE = re.compile(r"(-?\d*)\s*:\s*(-?\d*)(?:\s*:\s*(-?\d*))?")
_COMPARISON = re.compile(r"(@[^=!<>&|\s]*)\s*(?:(==|!=|<=|>=|<|>)\s*(.+))?")
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}


class _Visits:
    """Counts every value that a part of a path or of a filter is applied to, or leads to, while they are found. What
    is counted is work of the whole pass too."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1
        if self.count > MOST_VISITS:
            raise ExpressionError(f"jsonpath: the path leads to more than {MOST_VISITS} values")
        if self.count % 100 == 0:
            take_work(100)


Select = Callable[[Value, _Visits], Iterator[Value]]
Holds = Callable[[Value, _Visits], bool]


class Selector(NamedTuple):
    select: Select
    single: bool
    """It leads to one value, which must be there."""


def jsonpath(text: Value, path: Value) -> Value:
    if not isinstance(text, str) or not isinstance(path, str):
        raise ExpressionError("jsonpath takes two texts: the JSON and the path")
    return query(from_json(text), path)


def _work(text: Value, path: Value) -> int:
    """Each part of a path, of a union and of a filter may go through all of the document."""
    return len(str(text)) * sum(str(path).count(sign) for sign in (".", "[", ",", "||", "&&"))


GROWING[jsonpath] = _work


def query(document: Value, path: str) -> Value:
    if len(path) > LONGEST_PATH or path.count("?(") > MOST_FILTERS:
        raise ExpressionError(f"jsonpath: a path has at most {LONGEST_PATH:,} characters and {MOST_FILTERS} filters")
    selectors = parse(path)
    is_single = all(each.single for each in selectors)
    found = _found(selectors, document, _Visits())
    if is_single and not found:
        raise ExpressionError(f"jsonpath {path}: key not found")
    return found[0] if is_single else found


def _found(selectors: list[Selector], value: Value, visits: _Visits) -> list[Value]:
    found = [value]
    for selector in selectors:
        following: list[Value] = []
        for one in found:
            visits.add()
            for each in selector.select(one, visits):
                visits.add()
                following.append(each)
        found = following
    return found


def parse(path: str) -> list[Selector]:
    rest = path.strip()
    if not rest.startswith(("$", "@")):
        raise ExpressionError(f"jsonpath {path}: a path begins with $")
    rest = rest[1:]
    selectors: list[Selector] = []
    while rest:
        if len(selectors) == MOST_SELECTORS:
            raise ExpressionError(f"jsonpath: a path has at most {MOST_SELECTORS} parts")
        if rest.startswith(".."):
            selectors.append(Selector(_descendants, single=False))
            rest = rest[2:] if rest[2:3] == "[" else rest[1:]
        elif rest.startswith("["):
            inside, rest = _bracket(rest, path)
            selectors.append(_selector(inside.strip(), path))
        elif rest.startswith(".*"):
            selectors.append(Selector(_children, single=False))
            rest = rest[2:]
        elif match := _NAME.match(rest, 1) if rest.startswith(".") else None:
            selectors.append(_member(match[0]))
            rest = rest[match.end() :]
        else:
            raise ExpressionError(f"jsonpath {path}: cannot read {rest[:20]!r}")
    return selectors


def _bracket(rest: str, path: str) -> tuple[str, str]:
    """What stands between `[` and the `]` that closes it, and what follows."""
    depth, quote = 0, ""
    for place, char in enumerate(rest):
        if quote:
            quote = "" if char == quote and rest[place - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return rest[1:place], rest[place + 1 :]
    raise ExpressionError(f"jsonpath {path}: a [ is not closed")


def _selector(inside: str, path: str) -> Selector:
    if inside == "*":
        return Selector(_children, single=False)
    if inside.startswith("?(") and inside.endswith(")"):
        holds = _condition(inside[2:-1], path)
        return Selector(
            lambda value, visits: (each for each in _children(value, visits) if holds(each, visits)), single=False
        )
    if match := _SLICE.fullmatch(inside):
        bounds = slice(*(int(bound) if bound else None for bound in match.groups()))
        if bounds.step == 0:
            raise ExpressionError(f"jsonpath {path}: the step of a slice is not 0")
        return Selector(lambda value, _: iter(value[bounds] if isinstance(value, list) else ()), single=False)
    if _INDEX.fullmatch(inside):
        return Selector(_element(int(inside)), single=True)
    if match := _QUOTED.fullmatch(inside):
        return _member(match[1] or match[2] or "")
    parts = [_selector(part.strip(), path) for part in inside.split(",")] if "," in inside else []
    if not parts:
        raise ExpressionError(f"jsonpath {path}: cannot read [{inside[:40]}]")
    return Selector(
        lambda value, visits: (each for part in parts for each in _found([part], value, visits)), single=False
    )


def _member(name: str) -> Selector:
    return Selector(
        lambda value, _: iter((value[name],) if isinstance(value, dict) and name in value else ()), single=True
    )


def _element(index: int) -> Select:
    def select(value: Value, visits: _Visits) -> Iterator[Value]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return select


def _children(value: Value, visits: _Visits) -> Iterator[Value]:
    if isinstance(value, dict):
        yield from (value[key] for key in sorted(value))
    elif isinstance(value, list):
        yield from value


def _descendants(value: Value, visits: _Visits) -> Iterator[Value]:
    """A value and all that it holds, from above; not recursive, since a tenant decides about the depth."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(list(_children(each, visits)))


def _condition(text: str, path: str) -> Holds:
    either = [[_comparison(part.strip(), path) for part in term.split("&&")] for term in text.split("||")]
    return lambda value, visits: any(all(holds(value, visits) for holds in term) for term in either)


def _comparison(text: str, path: str) -> Holds:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ExpressionError(f"jsonpath {path}: cannot read the filter {text[:40]!r}")
    selectors, operator = parse(match[1]), match[2]
    wanted = _literal(match[3].strip(), path) if operator else None

    def holds(value: Value, visits: _Visits) -> bool:
        visits.add()
        found = _found(selectors, value, visits)
        if not operator:
            return bool(found)
        return bool(found) and _compare(found[0], operator, wanted)

    return holds


def _literal(text: str, path: str) -> Value:
    if match := _QUOTED.fullmatch(text):
        return match[1] or match[2] or ""
    if text in _WORDS:
        return _WORDS[text]
    try:
        return float(text)
    except ValueError:
        raise ExpressionError(f"jsonpath {path}: cannot read the value {text[:40]!r}") from None


def _compare(left: Value, operator: str, right: Value) -> bool:
    if operator in ("==", "!="):
        return equal(left, right) == (operator == "==")
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        return False
    if operator in ("<", "<="):
        return bool(left < right or (operator == "<=" and left == right))
    return bool(left > right or (operator == ">=" and left == right))
