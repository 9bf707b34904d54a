"""Filters of lists: predicates on the fields of a row, all of which must hold (KFP's filter.proto). Pure.

v1beta1 calls the operation `op`, v2beta1 `operation`; both send numbers or names, and values in snake or camel case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from paddlecloud.kube import times
from paddlecloud.pipelines.api.replies import RequestRefused

Row = Mapping[str, Any]
"""Texts by field; times of fields that end in `_at` are seconds since 1970."""

MAX_PREDICATES = 20
MAX_VALUES = 1000
_OPERATIONS: dict[Any, Callable[[Any, Any], bool]] = {
    "EQUALS": lambda found, given: found == given,
    "NOT_EQUALS": lambda found, given: found != given,
    "GREATER_THAN": lambda found, given: found > given,
    "GREATER_THAN_EQUALS": lambda found, given: found >= given,
    "LESS_THAN": lambda found, given: found < given,
    "LESS_THAN_EQUALS": lambda found, given: found <= given,
    "IN": lambda found, given: found in given,
    "IS_SUBSTRING": lambda found, given: given in found,
}
_NUMBERS = {1: "EQUALS", 2: "NOT_EQUALS", 3: "GREATER_THAN", 5: "GREATER_THAN_EQUALS", 6: "LESS_THAN",
            7: "LESS_THAN_EQUALS", 8: "IN", 9: "IS_SUBSTRING"}  # fmt: skip
_VALUES = ("string_value", "stringValue", "int_value", "intValue", "long_value", "longValue",
           "timestamp_value", "timestampValue", "string_values", "stringValues", "int_values", "intValues",
           "long_values", "longValues")  # fmt: skip
_SAME = {"display_name": "name", "status": "state", "pipeline_id": "id", "experiment_id": "id", "run_id": "id"}
"""Names that v2beta1 gives to a field that v1beta1 calls otherwise."""
_STATES = {"ERROR": "FAILED", "TERMINATING": "CANCELING", "OMITTED": "SKIPPED"}
"""Rows have the states of v2beta1; filters of v1beta1 have Argo's words."""


class Predicate(NamedTuple):
    field: str
    operation: str
    value: Any

    def holds(self, row: Row) -> bool:
        return _OPERATIONS[self.operation](row[self.field], self.value)


def parse(text: str, fields: Sequence[str]) -> list[Predicate]:
    """`fields` are those of a row that may be named. Raises `RequestRefused` with the field that is wrong."""
    if not text:
        return []
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestRefused(400, f"filter is not JSON: {error}") from error
    predicates = body.get("predicates") if isinstance(body, dict) else None
    if predicates is None and body == {}:
        return []
    if not isinstance(predicates, list) or len(predicates) > MAX_PREDICATES:
        raise RequestRefused(400, f"filter.predicates must be a list of at most {MAX_PREDICATES}")
    return [_predicate(each, f"filter.predicates[{at}]", fields) for at, each in enumerate(predicates)]


def field_named(key: Any, where: str, fields: Sequence[str]) -> str:
    name = key if isinstance(key, str) else ""
    name = name if name in fields else _SAME.get(name, name)
    if name not in fields:
        raise RequestRefused(400, f"{where} is {str(key)[:60]!r}; known are {', '.join(fields)}")
    return name


def _predicate(each: Any, where: str, fields: Sequence[str]) -> Predicate:
    if not isinstance(each, dict):
        raise RequestRefused(400, f"{where} must be an object")
    given = each.get("operation", each.get("op"))
    operation = _NUMBERS.get(given, "") if isinstance(given, int) else str(given)
    if operation not in _OPERATIONS:
        raise RequestRefused(400, f"{where}.operation is {str(given)[:60]!r}; known are {', '.join(_OPERATIONS)}")
    field = field_named(each.get("key"), f"{where}.key", fields)
    present = [name for name in _VALUES if each.get(name) is not None]
    if len(present) != 1:
        raise RequestRefused(400, f"{where} must have one value, such as stringValue")
    return Predicate(field, operation, _value(each[present[0]], f"{where}.{present[0]}", field, operation))


def _value(value: Any, where: str, field: str, operation: str) -> Any:
    if operation == "IN":
        values = value.get("values") if isinstance(value, dict) else value
        if not isinstance(values, list) or len(values) > MAX_VALUES:
            raise RequestRefused(400, f"{where} must be a list of at most {MAX_VALUES} values")
        return frozenset(_scalar(each, where, field) for each in values)
    if operation == "IS_SUBSTRING" and field.endswith("_at"):
        raise RequestRefused(400, f"{where}: a time has no substrings; compare it with GREATER_THAN and LESS_THAN")
    return _scalar(value, where, field)


def _scalar(value: Any, where: str, field: str) -> Any:
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise RequestRefused(400, f"{where} must be a text, a number or a time")
    if field == "state":
        return _STATES.get(str(value).upper(), str(value).upper())
    if not field.endswith("_at"):
        return str(value)
    if isinstance(value, int):
        return float(value)
    try:
        return times.parse_rfc3339(value)
    except ValueError as error:
        raise RequestRefused(400, f"{where} is no time: {error}") from error
