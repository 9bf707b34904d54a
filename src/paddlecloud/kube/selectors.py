"""Label selectors: the text of a query, or a `LabelSelector` of an object, as a thing that matches.

Parsing follows the grammar of Kubernetes and its wording of errors, so that both the embedded API server and a client
that filters by itself agree with a real cluster. A selector is refused for the same reasons as the label that it could
never match (`name_rules.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.name_rules import is_label_value, label_value_problems, qualified_name_problems

T = TypeVar("T")
FEW = 10
"""How many of their parts messages name."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. `operator` is one of `= != in notin exists ! gt lt`."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        return _TESTS[self.operator](value, self.values)

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in ("in", "notin"):
            return f"{self.key} {self.operator} ({values or ','})"  # `()` would be the empty set
        return f"{self.key}{_SYMBOLS[self.operator]}{values}"

    def brief(self) -> str:
        """For messages: of many values only their number."""
        return str(self) if len(self.values) <= FEW else f"{self.key} {self.operator} ({len(self.values)} values)"


def few(parts: Sequence[T], joint: str, text: Callable[[T], str]) -> str:
    """Those of a list that a message has room for."""
    rest = [f"{len(parts) - FEW} more"] if len(parts) > FEW else []
    return joint.join([*map(text, parts[:FEW]), *rest])


def _compare(value: str | None, values: Collection[str], wanted: Callable[[int, int], bool]) -> bool:
    if value is None:
        return False
    try:
        return wanted(int(value), int(next(iter(values))))
    except ValueError:  # a label that is not a number satisfies no comparison
        return False


_TESTS: dict[str, Callable[[str | None, Collection[str]], bool]] = {
    "=": lambda value, values: value in values,
    "!=": lambda value, values: value not in values,
    "in": lambda value, values: value in values,
    "notin": lambda value, values: value not in values,
    "exists": lambda value, values: value is not None,
    "!": lambda value, values: value is None,
    "gt": lambda value, values: _compare(value, values, lambda a, b: a > b),
    "lt": lambda value, values: _compare(value, values, lambda a, b: a < b),
}
_SYMBOLS = {"=": "=", "!=": "!=", "gt": ">", "lt": "<"}
_EXPRESSION_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class LabelSelector:
    """A conjunction of requirements. Made by `parse` (query text) or `from_dict` (a field of an object)."""

    __slots__ = ("_nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        found = tuple(requirements)  # one needs no order, and may have a hundred thousand values
        in_order = sorted(found, key=lambda r: (r.key, r.operator, sorted(r.values))) if len(found) > 1 else found
        self.requirements = tuple(in_order)
        self._nothing = nothing

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """`a=b,c!=d,e in (x,y),f notin (z),g,!h`. Empty text selects everything."""
        return cls(_LabelParser(text).requirements()) if text else cls()

    @classmethod
    def from_dict(cls, selector: Mapping[str, Any] | None) -> LabelSelector:
        """`{matchLabels, matchExpressions}`. An empty one selects everything, an absent one nothing."""
        if selector is None:
            return cls(nothing=True)
        found = [_requirement(key, "=", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
        for expression in selector.get("matchExpressions") or ():
            operator = expression.get("operator", "")
            if operator not in _EXPRESSION_OPERATORS:
                raise BadRequest(f'"{operator}" is not a valid label selector operator')
            values = expression.get("values") or ()
            found.append(_requirement(expression.get("key", ""), _EXPRESSION_OPERATORS[operator], values))
        return cls(found)

    @classmethod
    def of_workload(cls, obj: Mapping[str, Any]) -> LabelSelector:
        """Of what makes pods, the selector that finds them. That of a ReplicationController is a map of labels."""
        selector = obj["spec"].get("selector")
        if obj.get("kind") != "ReplicationController":
            return cls.from_dict(selector)
        wanted = (Requirement(key, "=", frozenset((value,))) for key, value in (selector or {}).items())
        return cls(wanted, nothing=not selector)

    @property
    def empty(self) -> bool:
        """True when every object is selected."""
        return not self.requirements and not self._nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self._nothing:
            return False
        for requirement in self.requirements:  # a plain loop: all() costs three times as much
            if not _TESTS[requirement.operator](labels.get(requirement.key), requirement.values):
                return False
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self._nothing == other._nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self._nothing))

    def __str__(self) -> str:
        """Text that parses back to an equal selector (a selector of nothing has no text)."""
        return ",".join(map(str, self.requirements))

    def brief(self) -> str:
        """For messages."""
        return few(self.requirements, ",", Requirement.brief)

    def __repr__(self) -> str:
        return f"LabelSelector({'nothing' if self._nothing else str(self)!r})"


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """What `LabelSelector.from_dict(selector).matches(labels)` says of a stored object's selector, for one question: to
    check and arrange a hundred thousand values takes a hundred times as long as to compare them once."""
    if selector is None:
        return False
    return _has(labels, selector.get("matchLabels")) and all(
        _satisfied(labels.get(each["key"]), each["operator"], each.get("values") or ())
        for each in selector.get("matchExpressions") or ()
    )


def workload_selects(owner: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """The same for what `LabelSelector.of_workload` is made of."""
    selector = owner["spec"].get("selector")
    if owner.get("kind") == "ReplicationController":
        return bool(selector) and _has(labels, selector)
    return selects(selector, labels)


def _has(labels: Mapping[str, str], wanted: Mapping[str, str] | None) -> bool:
    return all(labels.get(key) == value for key, value in (wanted or {}).items())


def _satisfied(value: str | None, operator: str, values: Collection[str]) -> bool:
    test = _TESTS.get(_EXPRESSION_OPERATORS.get(operator, ""))
    return test is not None and test(value, values)


def _requirement(key: str, operator: str, values: Collection[str]) -> Requirement:
    """A checked requirement; the messages are those of Kubernetes' `NewRequirement`."""
    problems = [_invalid("key", key, problem) for problem in qualified_name_problems(key)]
    if operator in ("in", "notin") and not values:
        problems.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("exists", "!") and values:
        shown = "[" + ",".join(f'"{value}"' for value in values) + "]"
        problems.append(f"values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    if operator in ("gt", "lt") or not all(map(is_label_value, values)):
        problems += _value_problems(key, operator, values)
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise BadRequest(f"unable to parse requirement: {text}")
    return Requirement(key, operator, frozenset(values))


def _value_problems(key: str, operator: str, values: Iterable[str]) -> Iterable[str]:
    for index, value in enumerate(sorted(values)):
        if operator in ("gt", "lt") and not re.fullmatch(r"[+-]?[0-9]+", value):
            yield _invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
        for problem in label_value_problems(value):
            yield _invalid(f"values[{index}][{key}]", value, problem)


def _invalid(field: str, value: str, problem: str) -> str:
    return f'{field}: Invalid value: "{value}": {problem}'


_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^=!(),<>\s]+|$)")
_OPERATORS = {"in": "in", "notin": "notin", "=": "=", "==": "=", "!=": "!=", ">": "gt", "<": "lt"}
_SPECIAL = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))


class _LabelParser:
    """Recursive descent over tokens. The empty token is the end of the text."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while token := self._peek():
            if token in _SPECIAL and token != "!":  # noqa: S105
                raise BadRequest(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            token = self._next()
            if not token:
                break
            if token != ",":  # noqa: S105
                raise BadRequest(f"found '{token}', expected: ',' or 'end of string'")
            if (after := self._peek()) in _SPECIAL and after != "!":
                raise BadRequest(f"found '{after}', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!" and bool(self._next())
        key = self._identifier("identifier")
        if problems := qualified_name_problems(key):
            raise _bad_requirement(_invalid("<nil>", key, "; ".join(problems)))
        if absent or self._peek() in ("", ","):
            return Requirement(key, "!" if absent else "exists")
        token = self._next()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise _bad_requirement(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._value_set() if operator in ("in", "notin") else {self._value()}
        return _requirement(key, operator, values)

    def _value(self) -> str:
        return "" if self._peek() in ("", ",") else self._identifier("identifier")

    def _value_set(self) -> set[str]:
        """`(x,y)`; a missing identifier between commas is the empty value."""
        if (token := self._next()) != "(":
            raise _bad_requirement(f"found '{token}' expected: '('")
        if self._peek() == ")":
            self._next()
            return set()
        values: set[str] = set()
        while True:
            values.add("" if self._peek() in (",", ")") else self._identifier("',', ')' or identifier"))
            token = self._next()
            if token == ")":  # noqa: S105
                return values
            if token != ",":  # noqa: S105
                raise _bad_requirement(f"found '{token}', expected: ',' or ')'")

    def _identifier(self, expected: str) -> str:
        token = self._next()
        if token in _SPECIAL:
            raise _bad_requirement(f"found '{token}', expected: {expected}")
        return token

    def _peek(self) -> str:
        return str(self._tokens[self._at]) if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _bad_requirement(text: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {text}")
