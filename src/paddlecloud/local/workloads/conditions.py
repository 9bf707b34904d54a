"""Conditions in a status, as lists that change only where something did. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object


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
    """The list with this condition set; content that is there already is left as it is, times included.

    `lastTransitionTime` moves only with the status. Kinds whose conditions have a `lastUpdateTime` too ask for it with
    `update_time`, and with `touch` for a new one even though nothing else changed.
    """
    conditions = list(conditions)
    old = condition_in(conditions, kind)
    fresh: Object = {"type": kind, "status": status, "reason": reason, "message": message}
    if old is not None and not touch and all(old.get(field) == value for field, value in fresh.items()):
        return conditions
    moment = rfc3339(now)
    kept = old.get("lastTransitionTime") if old is not None and old.get("status") == status else None
    fresh["lastTransitionTime"] = kept or moment
    if update_time:
        fresh["lastUpdateTime"] = moment
    return [fresh if c is old else c for c in conditions] if old is not None else [*conditions, fresh]


def without_condition(conditions: Iterable[Object], kind: str) -> list[Object]:
    return [c for c in conditions if c.get("type") != kind]


def condition_in(conditions: Iterable[Object], kind: str) -> Object | None:
    for condition in conditions:
        if condition.get("type") == kind:
            return condition
    return None


def conditions_of(obj: Object) -> list[Object]:
    return list((obj.get("status") or {}).get("conditions") or ())
