"""What must change before a pod makes sense: names or ports that are taken, data that is not there."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.api.paddlejob import PaddleJobStatus
from paddlecloud.controllers.paddlejob import status
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.pods import data
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.wording import number_of

PORTS_AGAIN = 10.0
"""Seconds after which ports are looked for again: no watch reports that another job has ended."""


class Obstacle(NamedTuple):
    condition: str
    """The condition that is False as long as it lasts."""
    reason: str
    text: str


def find(case: JobCase) -> Obstacle | None:
    if case.observed.leftovers:
        left = number_of(case.observed.leftovers, "object")
        return Obstacle("Created", "Leftovers", f"waiting for the {left} of an earlier job of this name to go")
    if case.observed.blockers:
        taken = ", ".join(case.observed.blockers)
        return Obstacle("Created", "NameTaken", f"{taken} exists and is not ours: rename the job or delete it")
    if case.port is None:
        return Obstacle("Created", "NoPorts", "no free block of ports: wait for another job to end")
    if case.observed.leaving_sets and case.missing and not _has_begun(case):
        sets = ", ".join(f"SampleSet {case.settings.namespace}/{name}" for name in case.observed.leaving_sets)
        verb = "is" if len(case.observed.leaving_sets) == 1 else "are"
        return Obstacle("DataReady", "DataNotReady", f"{sets} {verb} being deleted")
    if case.missing and (text := data.missing(case.settings, case.observed)):
        return Obstacle("DataReady", "DataNotReady", text)
    return None


def _has_begun(case: JobCase) -> bool:
    """A set waits for the jobs that have begun with it, so these may form their gang anew."""
    created = status.condition(case.old, "Created")
    return case.phase in ("Restarting", "Scaling") or (created is not None and created.status == "True")


def tell(case: JobCase, plan: Plan, found: Obstacle) -> PaddleJobStatus:
    """The status that says so, with an event when it is new."""
    before = status.condition(case.old, found.condition)
    if before is None or before.message != found.text:
        plan.events.append(PlannedEvent(found.reason, found.text, type="Warning"))
    if case.port is None:
        plan.requeue_after(PORTS_AGAIN)
    return status.with_condition(
        case.old, found.condition, "False", reason=found.reason, message=found.text, now=case.now
    )
