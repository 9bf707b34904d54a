"""What is refused in an object of Argo, in the words of Kubernetes. Texts of tenants are shown shortened. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddlecloud.api.problems import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED
from paddlecloud.api.problems import Problem as Problem
from paddlecloud.kube.nearest import question

_SHOWN = 200
"""Characters of a value."""
_LONGEST_NAME = 60
"""Characters of the name of a field; no field has a longer one."""
UNSERVED = "this platform does not serve it"
EMPTY: tuple[Any, ...] = (None, {}, [])
"""Values that clients write in fields which they leave out."""


def required(path: str, what: str = "") -> Problem:
    return Problem(path, REQUIRED, f"Required value: {what}" if what else "Required value")


def invalid(path: str, why: str) -> Problem:
    return Problem(path, INVALID, f"Invalid value: {why}")


def invalid_value(path: str, value: Any, why: str) -> Problem:
    return invalid(path, f"{repr(value)[:_SHOWN]}: {why}")


def forbidden(path: str, why: str = UNSERVED) -> Problem:
    return Problem(path, FORBIDDEN, f"Forbidden: {why}")


def unserved(path: str, name: str, served: Iterable[str]) -> Problem:
    """A field of Argo that is not served, or a misspelt one that is."""
    return forbidden(f"{path}.{name[:_LONGEST_NAME]}", f"{UNSERVED}{_meant(name, served)}")


def unknown(path: str, name: str, known: Iterable[str]) -> Problem:
    """A field that neither Kubernetes nor Argo has."""
    return invalid(f"{path}.{name[:_LONGEST_NAME]}", f"there is no such field{_meant(name, known)}")


def _meant(name: str, known: Iterable[str]) -> str:
    asked = question(name, known) if len(name) <= _LONGEST_NAME else ""
    return f"; {asked}" if asked else ""


def not_supported(path: str, why: str) -> Problem:
    return Problem(path, NOT_SUPPORTED, f"Unsupported value: {why}")


def duplicate(path: str, value: str) -> Problem:
    return Problem(path, "FieldValueDuplicate", f"Duplicate value: {value!r}")


def too_many(path: str, why: str) -> Problem:
    return Problem(path, "FieldValueTooMany", f"Too many: {why}")
