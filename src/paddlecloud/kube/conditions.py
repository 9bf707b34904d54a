"""Conditions of a status, as Kubernetes keeps them (apimachinery's `meta.SetStatusCondition`). Pure.

`lastTransitionTime` moves only with `status`: a new reason or message leaves it as it was. A condition keeps its place
in the list, and content that is there already is left alone: a status that says the same again is not written.

Conditions of objects are mappings; those of this project's own kinds are `api.fields.Condition`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from paddlecloud.api.conditions import condition_in as condition_in
from paddlecloud.api.conditions import condition_of as condition_of
from paddlecloud.api.conditions import conditions_of as conditions_of
from paddlecloud.api.conditions import has_condition as has_condition
from paddlecloud.api.conditions import status_in as status_in
from paddlecloud.api.fields import Condition
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.resource import Object


class ConditionState(NamedTuple):
    """What a condition says: `status` is True, False or Unknown; what holds needs no reason."""

    status: str
    reason: str = ""
    message: str = ""


# Conditions of objects


def state_of(condition: Object) -> ConditionState:
    return ConditionState(str(condition["status"]), condition.get("reason", ""), condition.get("message", ""))


def dated(condition: Object, old: Object | None, now: float) -> Object:
    """The condition with its `lastTransitionTime`; `old` is the one of the same type before."""
    same = old is not None and old.get("status") == condition["status"]
    kept = old.get("lastTransitionTime") if old is not None and same else None
    return {**condition, "lastTransitionTime": kept or rfc3339(now)}


def with_condition(
    conditions: Iterable[Object],
    kind: str,
    status: str,
    *,
    reason: str,
    message: str,
    now: float,
    update_time: bool = False,
    touch: bool = False,
) -> list[Object]:
    """The list with this condition set.

    Kinds whose conditions have a `lastUpdateTime` too (Deployments) ask for it with `update_time`, and with `touch` for
    a new one even though nothing else changed.
    """
    conditions = list(conditions)
    old = condition_in(conditions, kind)
    fresh: Object = {"type": kind, "status": status, "reason": reason, "message": message}
    if old is not None and not touch and all(old.get(field) == value for field, value in fresh.items()):
        return conditions
    fresh = dated(fresh, old, now)
    if update_time:
        fresh["lastUpdateTime"] = rfc3339(now)
    return [fresh if c is old else c for c in conditions] if old is not None else [*conditions, fresh]


def without_condition(conditions: Iterable[Object], kind: str) -> list[Object]:
    return [c for c in conditions if c.get("type") != kind]


# Conditions of this project's own kinds


def find(conditions: Iterable[Condition] | None, kind: str) -> Condition | None:
    return next((condition for condition in conditions or () if condition.type == kind), None)


def holds(conditions: Iterable[Condition] | None, kind: str) -> bool:
    found = find(conditions, kind)
    return found is not None and found.status == "True"


def since(conditions: Iterable[Condition] | None, kind: str) -> float | None:
    """When the condition last changed."""
    found = find(conditions, kind)
    return parse_rfc3339(found.last_transition_time) if found is not None and found.last_transition_time else None


def put(conditions: Iterable[Condition] | None, condition: Condition, now: float) -> list[Condition]:
    """The list with this condition set, dated as by `dated`."""
    kept = list(conditions or ())
    old = find(kept, condition.type)
    moment = old.last_transition_time if old is not None and old.status == condition.status else None
    fresh = msgspec.structs.replace(condition, last_transition_time=moment or rfc3339(now))
    return [fresh if c is old else c for c in kept] if old is not None else [*kept, fresh]
