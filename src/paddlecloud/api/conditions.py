"""Finding a condition in the status of an object. Imports nothing, so that every layer can use it.

Setting conditions is the business of controllers: `kube.conditions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def conditions_of(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((obj.get("status") or {}).get("conditions") or ())


def condition_in(conditions: Iterable[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def status_in(conditions: Iterable[dict[str, Any]], kind: str) -> str:
    """True, False or Unknown; empty where there is no such condition."""
    return str((condition_in(conditions, kind) or {}).get("status") or "")


def condition_of(obj: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    return condition_in(conditions_of(obj), kind)


def has_condition(obj: Mapping[str, Any], kind: str, status: str = "True") -> bool:
    """Whether the object has this condition in this status."""
    return status_in(conditions_of(obj), kind) == status
