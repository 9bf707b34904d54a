"""Conditions in Knative's manner: a few that decide, and `Ready`, which holds when all of them do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.kube.conditions import condition_in, conditions_of, with_condition
from paddlecloud.kube.resource import Object


class Verdict(NamedTuple):
    """`status` is True, False or Unknown; a reason is not needed for what holds."""

    status: str
    reason: str = ""
    message: str = ""


YES = Verdict("True")


def judged(
    obj: Object, verdicts: Mapping[str, Verdict], now: float, *, informative: Mapping[str, Verdict]
) -> list[Object]:
    """The conditions of `obj` with these verdicts, and Ready made of them; `informative` ones do not count.

    An informative one that is no longer given is gone.
    """
    conditions = [c for c in conditions_of(obj) if c.get("severity") != "Info" or c["type"] in informative]
    for kind, verdict in {**verdicts, **informative, "Ready": together(verdicts.values())}.items():
        conditions = with_condition(
            conditions, kind, verdict.status, reason=verdict.reason, message=verdict.message, now=now
        )
    marked = [{**c, "severity": "Info"} if c["type"] in informative else c for c in conditions]
    return [_trimmed(condition) for condition in sorted(marked, key=lambda c: str(c["type"]))]


def together(verdicts: object) -> Verdict:
    """What is wrong first, then what is not known yet."""
    found = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]  # type: ignore[attr-defined]
    for status in ("False", "Unknown"):
        for verdict in found:
            if verdict.status == status:
                return verdict
    return YES


def ready_of(obj: Object | None) -> Verdict:
    """The Ready condition of an object, if it is about the object's present spec."""
    if obj is None:
        return Verdict("Unknown", "Missing", "")
    seen = (obj.get("status") or {}).get("observedGeneration")
    found = condition_in(conditions_of(obj), "Ready")
    if found is None or (seen is not None and seen < obj["metadata"].get("generation", 0)):
        return Verdict("Unknown", "", "")
    return Verdict(str(found["status"]), found.get("reason", ""), found.get("message", ""))


def _trimmed(condition: Object) -> Object:
    return {name: value for name, value in condition.items() if value != ""}
