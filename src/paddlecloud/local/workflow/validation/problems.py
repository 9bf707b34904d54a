"""What is refused in an object of Argo, in the words of Kubernetes. Texts of tenants are shown shortened. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.api.problems import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED
from paddlecloud.api.problems import Problem as Problem

_SHOWN = 200
"""Characters of a value."""
UNSERVED = "this platform does not serve it"


def required(path: str, what: str = "") -> Problem:
    return Problem(path, REQUIRED, f"Required value: {what}" if what else "Required value")


def invalid(path: str, why: str) -> Problem:
    return Problem(path, INVALID, f"Invalid value: {why}")


def invalid_value(path: str, value: Any, why: str) -> Problem:
    return invalid(path, f"{repr(value)[:_SHOWN]}: {why}")


def forbidden(path: str, why: str = UNSERVED) -> Problem:
    return Problem(path, FORBIDDEN, f"Forbidden: {why}")


def not_supported(path: str, why: str) -> Problem:
    return Problem(path, NOT_SUPPORTED, f"Unsupported value: {why}")


def duplicate(path: str, value: str) -> Problem:
    return Problem(path, "FieldValueDuplicate", f"Duplicate value: {value!r}")


def too_many(path: str, why: str) -> Problem:
    return Problem(path, "FieldValueTooMany", f"Too many: {why}")
