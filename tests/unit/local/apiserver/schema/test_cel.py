"""Expressions of CEL: the subset that is understood, its values, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.apiserver.schema.cel import LONGEST, Unsupported, compile_rule
from paddlecloud.local.apiserver.schema.cel_operations import EvaluationError

SELF: dict[str, Any] = {
    "low": 1,
    "huge": 10**400,
    "high": 3,
    "rate": 0.5,
    "name": "a",
    "on": True,
    "list": [1, 2],
    "inner": {"count": 2},
    "in": 1,
    "contains": 1,
}

VALUES: list[tuple[str, Any]] = [
    ("self.low + self.high * 2", 7),
    ("(self.low + self.high) * 2", 8),
    ("-7 / 2", -3),
    ("-7 % 2", -1),
    ("self.rate * 2 == 1", True),
    ("self.name + '.' + 'b'", "a.b"),
    ("self.list + [self.low] == [1] + [2, 1]", True),
    ("self.low == 1.0", True),
    ("true == 1", False),
    ("self.name == 'a' && self.name != \"b\"", True),
    ("self.name < 'b'", True),
    ("self['name']", "a"),
    ("self.list[1]", 2),
    ("self.low in self.list", True),
    ("'low' in self", True),
    ("3 in [1, 2]", False),
    ("size(self.list) + size(self.name)", 3),
    ("self.name.startsWith('a') && self.name.endsWith('a') && self.name.contains('')", True),
    ("self.name.matches('^[a-c]$') && 'xab'.matches('a+b')", True),
    ("self.name.matches('^b') || 'a@b'.matches('^[a-z]+$')", False),
    ("self.name.startsWith('b') || self.name.contains('ab') || 'ba'.endsWith('b')", False),
    ("self.contains == self.low", True),
    ("has(self.low) && !has(self.lower)", True),
    ("has(self.inner) ? self.inner.count : 0", 2),
    ("has(self.outer) ? self.outer.count : 0", 0),
    ("!self.on || self.high >= 3", True),
    ("true ? 1 : false ? 2 : 3", 1),
    ("null == self.list", False),
    # the decisive side of && and || makes an error on the other irrelevant
    ("self.none > 1 || true", True),
    ("true || self.none > 1", True),
    ("self.none > 1 && false", False),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_an_expression_has_the_value_that_the_language_gives_it(text: str, value: Any) -> None:
    found = compile_rule(text)(SELF)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "self.none",
        "self.none.deeper == 1",
        "has(self.outer.count)",
        "self.list[2]",
        "self.list[-1]",
        "self.name + 1",
        "self.list + 1",
        "self.name + self.list",
        "self.list - self.list",
        "self.name < 1",
        "!self.low",
        "self.low ? 1 : 2",
        "self.low && true",
        "1 / 0",
        "1 % 0",
        "9223372036854775807 + 1",
        "self.huge * 0.5",
        "size(1)",
        "self.low.startsWith('1')",
        "self.name.contains(1)",
        "self.low.matches('1')",
        "1 in self.name",
        "self.none > 1 || false",
    ],
)
def test_what_has_no_value_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationError):
        compile_rule(text)(SELF)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "self.",
        "self.low ==",
        "self.low = 1",
        "(self.low",
        "self.low self.high",
        "1 2",
        "self.list.all(x, x > 0)",
        "self.name.matches(self.name)",
        "self.name.matches('(')",
        "matches('a')",
        "duration(self.name)",
        "self.__in__ == 1",
        "has(self)",
        "has(self.list[0])",
        "'a\\n' == self.name",
        "(" * 100 + "1" + ")" * 100,
        "!" * 100 + "true",
        " + ".join(["1"] * 1000),
        "self" + ".inner" * 100,
        "true || " * LONGEST + "true",
    ],
)
def test_what_is_outside_of_the_subset_is_not_understood(text: str) -> None:
    with pytest.raises(Unsupported):
        compile_rule(text)
