"""Rules that several built-in kinds share: names, ports, numbers, selectors, what must not change.

Each takes a value and the path of its field and gives causes. Types have been checked before; only meaning is judged.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from paddlecloud.kube.name_rules import label_value_problems, qualified_name_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.schema.causes import MAX_CAUSES, Cause, duplicate, forbidden, invalid, required

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PORT_NAME = re.compile(r"[-a-z0-9]+")


def problems(field: str, value: Any, found: Iterable[str]) -> list[Cause]:
    return [invalid(field, value, problem) for problem in found]


def not_negative(spec: Mapping[str, Any], path: str, *fields: str) -> list[Cause]:
    return [invalid(f"{path}.{name}", spec[name], NOT_NEGATIVE) for name in fields if spec.get(name, 0) < 0]


def in_range(field: str, value: int, *, low: int, high: int) -> list[Cause]:
    if low <= value <= high:
        return []
    return [invalid(field, value, f"must be between {low} and {high}, inclusive")]


def port(field: str, value: int) -> list[Cause]:
    return in_range(field, value, low=1, high=65535)


def port_or_name(field: str, value: Any) -> list[Cause]:
    """A port by number, or by the name a container gave it."""
    if isinstance(value, int):
        return port(field, value)
    return problems(field, value, port_name_problems(value))


def port_name_problems(value: str) -> list[str]:
    found = []
    if len(value) > 15:
        found.append("must be no more than 15 characters")
    if not _PORT_NAME.fullmatch(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def key_problems(value: str) -> list[str]:
    """Keys of ConfigMaps and Secrets become file names."""
    found = ["must be no more than 253 characters"] if len(value) > 253 else []
    if not _KEY.fullmatch(value):
        found.append(_KEY_RULE)
    elif value in (".", ".."):
        found.append(f"must not be '{value}'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return found


def labels(field: str, values: Mapping[str, str]) -> list[Cause]:
    found: list[Cause] = []
    for key, value in values.items():
        found += problems(field, key, qualified_name_problems(key))
        found += problems(field, value, label_value_problems(value))
        if len(found) > MAX_CAUSES:
            break
    return found


def label_selector(field: str, selector: Mapping[str, Any]) -> list[Cause]:
    found = labels(f"{field}.matchLabels", selector.get("matchLabels") or {})
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{index}]"
        found += problems(f"{place}.key", expression.get("key", ""), qualified_name_problems(expression.get("key", "")))
        found += _operator_values(place, expression)
        for at, value in enumerate(expression.get("values") or ()):
            found += problems(f"{place}.values[{at}]", value, label_value_problems(value))
    return found


def node_requirement(field: str, expression: Mapping[str, Any]) -> list[Cause]:
    found = problems(f"{field}.key", expression.get("key", ""), qualified_name_problems(expression.get("key", "")))
    if expression.get("operator") in ("Gt", "Lt"):
        if len(expression.get("values") or ()) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(f"{field}.values", detail))
        return found
    return found + _operator_values(field, expression)


def _operator_values(field: str, expression: Mapping[str, Any]) -> list[Cause]:
    operator, values = expression.get("operator"), expression.get("values")
    if operator in ("In", "NotIn") and not values:
        return [required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and values:
        return [forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    return []


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def unique(field: str, items: Iterable[tuple[int, Any]]) -> list[Cause]:
    """`items` are (index, value); `field` has a `{}` where the index goes. Every repetition is a cause."""
    seen: set[Any] = set()
    found = []
    for index, value in items:
        if value in seen:
            found.append(duplicate(field.format(index), value))
        seen.add(value)
    return found


def immutable(new: Mapping[str, Any], old: Mapping[str, Any], path: str, *fields: str) -> list[Cause]:
    """Fields of `path` that an update must leave as they are."""
    prefix = f"{path}." if path else ""
    changed = [name for name in fields if new.get(name) != old.get(name)]
    return [invalid(f"{prefix}{name}", new.get(name), IMMUTABLE) for name in changed]


def one_of(spec: Mapping[str, Any], choices: Iterable[str]) -> list[str]:
    """Which of the alternatives are there, in the order given."""
    return [name for name in choices if spec.get(name) is not None]


Validator = Callable[[Object, "Object | None"], list[Cause]]
"""(new, old or None when created) → causes."""
