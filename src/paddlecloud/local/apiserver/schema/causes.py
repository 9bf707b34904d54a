"""Why a field was refused: one constructor per reason of Kubernetes, worded as its users know it.

A cause is `(field, reason, message)`, what `kube.errors.invalid` takes; the message does not repeat the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Cause = tuple[str, str, str]

MAX_CAUSES = 100
"""Enough to mend an object by; a hostile one must not make an answer of megabytes."""

_LONGEST_SHOWN = 512


def required(field: str, detail: str = "") -> Cause:
    return (field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str) -> Cause:
    return (field, "FieldValueInvalid", f"Invalid value: {show(value)}: {detail}")


def type_invalid(field: str, found: str, detail: str) -> Cause:
    """`found` is the name of the type that was there, which is what Kubernetes shows in place of the value."""
    return (field, "FieldValueTypeInvalid", f"Invalid value: {quote(found)}: {detail}")


def not_supported(field: str, value: Any, choices: Iterable[str]) -> Cause:
    listed = ", ".join(quote(choice) for choice in choices)
    return (field, "FieldValueNotSupported", f"Unsupported value: {show(value)}: supported values: {listed}")


def duplicate(field: str, value: Any) -> Cause:
    return (field, "FieldValueDuplicate", f"Duplicate value: {show(value)}")


def forbidden(field: str, detail: str) -> Cause:
    return (field, "FieldValueForbidden", f"Forbidden: {detail}")


def not_found(field: str, value: Any) -> Cause:
    return (field, "FieldValueNotFound", f"Not found: {show(value)}")


def too_long(field: str, limit: int) -> Cause:
    unit = "byte" if limit == 1 else "bytes"
    return (field, "FieldValueTooLong", f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> Cause:
    unit = "item" if limit == 1 else "items"
    return (field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} {unit}")


def show(value: Any) -> str:
    """A value as messages print it: strings in quotes, the rest as JSON, long ones cut."""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + "…"


def quote(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
