"""What is refused in a CronWorkflow when it is written: schedules, zone, policy, limits, conditions. Pure.

The Workflow inside is judged by `admission.py` like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.api.cron import BadSchedule
from paddlecloud.kube.timetable import UnknownZone, timetable, zone_of
from paddlecloud.local.workflow.expressions.evaluation import parsed
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.validation.problems import Problem, forbidden, invalid_value, required

_POLICIES = ("Allow", "Forbid", "Replace")
_NUMBERS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
LONGEST_NAME = 52
"""Characters: the names of its Workflows have a time behind it."""
MOST_SCHEDULES = 100


def schedule_problems(name: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    if len(name) > LONGEST_NAME:
        yield invalid_value("metadata.name", name, f"must be at most {LONGEST_NAME} characters: a time is added to it")
    yield from _schedules(spec)
    if zone := spec.get("timezone"):
        try:
            zone_of(str(zone))
        except UnknownZone as why:
            yield invalid_value("spec.timezone", zone, str(why))
    if spec.get("concurrencyPolicy") not in (None, "", *_POLICIES):
        yield invalid_value(
            "spec.concurrencyPolicy", spec["concurrencyPolicy"], f"must be one of {', '.join(_POLICIES)}"
        )
    for field in _NUMBERS:
        value = spec.get(field)
        if value is not None and (type(value) is not int or not 0 <= value < 2**31):
            yield invalid_value(f"spec.{field}", value, "must be a whole number, 0 or more")
    if spec.get("suspend") not in (None, True, False):
        yield invalid_value("spec.suspend", spec["suspend"], "must be true or false")
    strategy = spec.get("stopStrategy") or {}
    if not isinstance(strategy, dict):
        yield invalid_value("spec.stopStrategy", "…", "must be a map with an expression")
    elif expression := strategy.get("expression") or strategy.get("condition"):
        try:
            parsed(str(expression))
        except ExpressionError as why:
            yield invalid_value("spec.stopStrategy.expression", expression, str(why))


def _schedules(spec: Mapping[str, Any]) -> Iterator[Problem]:
    one, many = spec.get("schedule"), spec.get("schedules")
    if one and many:
        yield forbidden("spec.schedules", "there is a spec.schedule already; give one of the two")
        return
    if many is not None and (not isinstance(many, list) or len(many) > MOST_SCHEDULES):
        yield invalid_value("spec.schedules", "…", f"must be a list of at most {MOST_SCHEDULES} schedules")
        return
    given = [("spec.schedule", one)] if one else [(f"spec.schedules[{at}]", each) for at, each in enumerate(many or ())]
    if not given:
        yield required("spec.schedules", 'when to run, as in ["30 2 * * *"]')
    for path, schedule in given:
        try:
            if not isinstance(schedule, str):
                raise BadSchedule("must be a text: put it in quotes")
            timetable(schedule)
        except BadSchedule as why:
            yield invalid_value(path, schedule, str(why))
