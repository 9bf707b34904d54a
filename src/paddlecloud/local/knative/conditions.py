"""Conditions in Knative's manner: a few that decide, and `Ready`, which holds when all of them do. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.kube.conditions import ConditionState, condition_in, conditions_of, state_of, with_condition
from paddlecloud.kube.resource import Object

YES = ConditionState("True")


def judged(
    obj: Object, states: Mapping[str, ConditionState], now: float, *, informative: Mapping[str, ConditionState]
) -> list[Object]:
    """The conditions of `obj` in these states, and Ready made of them; `informative` ones do not count.

    An informative one that is no longer given is gone.
    """
    conditions = [c for c in conditions_of(obj) if c.get("severity") != "Info" or c["type"] in informative]
    for kind, state in {**states, **informative, "Ready": together(states.values())}.items():
        conditions = with_condition(conditions, kind, state.status, reason=state.reason, message=state.message, now=now)
    marked = [{**c, "severity": "Info"} if c["type"] in informative else c for c in conditions]
    return [_trimmed(condition) for condition in sorted(marked, key=lambda c: str(c["type"]))]


def together(states: object) -> ConditionState:
    """What is wrong first, then what is not known yet."""
    found = [state for state in states if isinstance(state, ConditionState)]  # type: ignore[attr-defined]
    for status in ("False", "Unknown"):
        for state in found:
            if state.status == status:
                return state
    return YES


def ready_of(obj: Object | None) -> ConditionState:
    """The Ready condition of an object, if it is about the object's present spec."""
    if obj is None:
        return ConditionState("Unknown", "Missing", "")
    seen = (obj.get("status") or {}).get("observedGeneration")
    found = condition_in(conditions_of(obj), "Ready")
    if found is None or (seen is not None and seen < obj["metadata"].get("generation", 0)):
        return ConditionState("Unknown", "", "")
    return state_of(found)


def _trimmed(condition: Object) -> Object:
    return {name: value for name, value in condition.items() if value != ""}
