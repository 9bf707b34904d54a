"""Conditions of a status as values: a new list for every change, times moved only by what changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.api.fields import Condition
from paddlecloud.kube.clock import parse_rfc3339, rfc3339

Conditions = list[Condition]


def find(conditions: Iterable[Condition] | None, name: str) -> Condition | None:
    return next((condition for condition in conditions or () if condition.type == name), None)


def holds(conditions: Iterable[Condition] | None, name: str) -> bool:
    found = find(conditions, name)
    return found is not None and found.status == "True"


def since(conditions: Iterable[Condition] | None, name: str) -> float | None:
    """When the condition last changed."""
    found = find(conditions, name)
    return parse_rfc3339(found.last_transition_time) if found is not None and found.last_transition_time else None


def put(
    conditions: Iterable[Condition] | None, name: str, value: bool | None, *, reason: str, message: str = "", now: float
) -> Conditions:
    """The list with this condition set; None means unknown."""
    kept = list(conditions or ())
    old = find(kept, name)
    status = "Unknown" if value is None else str(value)
    moved = old is None or old.status != status
    fresh = Condition(
        type=name,
        status=status,
        reason=reason,
        message=message or None,
        last_transition_time=rfc3339(now) if moved or old is None else old.last_transition_time,
    )
    return [fresh if condition is old else condition for condition in kept] if old is not None else [*kept, fresh]
