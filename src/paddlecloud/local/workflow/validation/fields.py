"""Checks that fields of different parts of a workflow share: which are served, and which type they have. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.workflow.validation.problems import EMPTY, Problem, invalid_value, unserved

_TYPE_NAMES: dict[type, str] = {dict: "map", list: "list"}
MOST_NAMED = 10
"""Causes in one answer, and names in one of them."""


def unserved_fields(value: Mapping[str, Any], served: frozenset[str], path: str) -> Iterator[Problem]:
    others = [name for name in value if name not in served and value[name] not in EMPTY]
    yield from (unserved(path, name, served) for name in others)


def wrong_types(value: Mapping[str, Any], types: Mapping[str, type], path: str) -> Iterator[Problem]:
    for name, wanted in types.items():
        if value.get(name) is not None and not isinstance(value[name], wanted):
            yield invalid_value(f"{path}.{name}", shortened(value[name]), f"must be a {_TYPE_NAMES[wanted]}")


def not_whole_numbers(value: Mapping[str, Any], names: tuple[str, ...], path: str) -> Iterator[Problem]:
    """As Argo's API types have them: no texts, no fractions, and no more than 64 bits hold."""
    for name in names:
        number = value.get(name)
        if number is not None and (type(number) is not int or abs(number) >= 2**63):
            yield invalid_value(f"{path}.{name}", shortened(number), "must be a whole number")


def shortened(value: Any) -> str:
    return str(value)[:60]
