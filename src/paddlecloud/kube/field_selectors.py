"""Field selectors: the text of a query as a thing that matches. The grammar and its errors are those of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from paddlecloud.kube.errors import BadRequest


class FieldRequirement(NamedTuple):
    field: str
    equal: bool
    value: str


class FieldSelector:
    """`metadata.name=x,status.phase!=Running`: exact comparisons on the fields a kind offers."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Iterable[FieldRequirement] = ()) -> None:
        self.requirements = tuple(sorted(requirements))

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        found = []
        for term in _split_terms(text):
            if not term:
                continue
            match = _FIELD_TERM.fullmatch(term)
            if match is None:
                raise BadRequest(f"invalid selector: '{text}'; can't understand '{term}'")
            field, operator, value = match.groups()
            found.append(FieldRequirement(field, operator != "!=", _unescape(value)))
        return cls(found)

    @property
    def empty(self) -> bool:
        return not self.requirements

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(requirement.field for requirement in self.requirements)

    def exact(self, field: str) -> str | None:
        """The one value `field` must have, if the selector says so: lets a list become a look-up."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.equal:
                return requirement.value
        return None

    def check(self, supported: Collection[str]) -> None:
        """Refuse fields that the kind does not offer for selection."""
        for requirement in self.requirements:
            if requirement.field not in supported:
                raise BadRequest(f"field label not supported: {requirement.field}")

    def matches(self, get: Callable[[str], str]) -> bool:
        """`get` gives the value of a field, the empty string when it is not set."""
        return all((get(field) == value) is equal for field, equal, value in self.requirements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSelector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __str__(self) -> str:
        return ",".join(f"{r.field}{'=' if r.equal else '!='}{_escape(r.value)}" for r in self.requirements)

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"


_FIELD_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_ESCAPED = re.compile(r"[\\,=]")


def _escape(value: str) -> str:
    return _ESCAPED.sub(lambda match: "\\" + match[0], value)


def _split_terms(text: str) -> list[str]:
    """Split at commas that no backslash escapes."""
    terms, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == ",":
            terms.append(text[start:at])
            start = at + 1
        at += 1
    return [*terms, text[start:]]


def _unescape(value: str) -> str:
    if not _ESCAPED.search(value):
        return value
    out, at = [], 0
    while at < len(value):
        char = value[at]
        if char == "\\":
            at += 1
            following = value[at : at + 1]
            if not following or following not in "\\,=":
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{following}")
            char = following
        elif char in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {char}")
        out.append(char)
        at += 1
    return "".join(out)
