"""The steps of a compiled JSONPath: each takes the values found so far to the next ones.

`strict` refuses objects that lack what a step names; otherwise what is missing is not found. Paths come here as steps
and never as text: reading that is `jsonpath`'s part.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class JsonPathError(ValueError):
    """The text is no JSONPath of this dialect, or (in strict mode) the object lacks what it names."""


def to_text(value: Any) -> str:
    """A value as kubectl prints it: text bare, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class PathStep:
    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Path(PathStep):
    steps: tuple[PathStep, ...]
    from_root: bool = False

    def find(self, value: Any, root: Any, *, strict: bool) -> list[Any]:
        return self.apply([root if self.from_root else value], root, strict=strict)

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        for step in self.steps:
            values = step.apply(values, root, strict=strict)
        return values


@dataclass(frozen=True, slots=True)
class Field(PathStep):
    name: str

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        found = [value[self.name] for value in values if isinstance(value, dict) and self.name in value]
        if strict and values and not found:
            raise JsonPathError(f"{self.name} is not found")
        return found


@dataclass(frozen=True, slots=True)
class Slice(PathStep):
    start: int | None
    stop: int | None
    step: int | None

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        return [item for value in _lists(values, strict) for item in value[self.start : self.stop : self.step]]


@dataclass(frozen=True, slots=True)
class Index(PathStep):
    index: int

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        found = []
        for value in _lists(values, strict):
            if -len(value) <= self.index < len(value):
                found.append(value[self.index])
            elif strict:
                raise JsonPathError(f"array index out of bounds: index {self.index}, length {len(value)}")
        return found


def _lists(values: list[Any], strict: bool) -> list[list[Any]]:
    if strict:
        for value in values:
            if not isinstance(value, list):
                raise JsonPathError(f"{to_text(value)} is not array or slice")
    return [value for value in values if isinstance(value, list)]


@dataclass(frozen=True, slots=True)
class Wildcard(PathStep):
    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        return [item for value in values for item in _children(value)]


@dataclass(frozen=True, slots=True)
class Descend(PathStep):
    """Every value itself and all below it, parents first."""

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        found, waiting = [], list(reversed(values))
        while waiting:
            value = waiting.pop()
            found.append(value)
            waiting.extend(reversed(_children(value)))
        return found


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Union(PathStep):
    members: tuple[PathStep, ...]

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        return [item for member in self.members for item in member.apply(values, root, strict=strict)]


@dataclass(frozen=True, slots=True)
class Literal(PathStep):
    value: Any

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        return [self.value]


@dataclass(frozen=True, slots=True)
class Filter(PathStep):
    left: PathStep
    compare: Callable[[Any, Any], bool] | None
    right: PathStep | None

    def apply(self, values: list[Any], root: Any, *, strict: bool) -> list[Any]:
        return [item for value in _lists(values, strict) for item in value if self._keeps(item, root)]

    def _keeps(self, item: Any, root: Any) -> bool:
        lefts = _side(self.left, item, root)
        if self.compare is None or self.right is None:
            return bool(lefts)
        rights = _side(self.right, item, root)
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        if not lefts or not rights:
            return False
        try:
            return self.compare(lefts[0], rights[0])
        except TypeError:  # values of different types have no order
            return False


def _side(side: PathStep, item: Any, root: Any) -> list[Any]:
    if isinstance(side, Path):
        return side.find(item, root, strict=False)
    return side.apply([item], root, strict=False)
