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


NAMED = 5
"""Objects that one message names."""


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
        blockers = case.observed.blockers
        taken = ", ".join(blockers[:NAMED]) + (f" and {len(blockers) - NAMED} more" if len(blockers) > NAMED else "")
        return Obstacle("Created", "NameTaken", f"{taken} exists and is not ours: rename the job or delete it")
    if case.port is None:
        return Obstacle("Created", "NoPorts", "no free block of ports: wait for another job to end")
    if not case.missing:
        return None
    text = "" if _has_begun(case) else data.being_deleted(case.settings, case.observed)
    text = text or data.missing(case.settings, case.observed)
    text = text or ("" if _has_begun(case) else data.not_imported(case.settings, case.observed))
    return Obstacle("DataReady", "DataNotReady", text) if text else None


def _has_begun(case: JobCase) -> bool:
    """A set waits for the jobs that have begun with it, so these may form their gang anew; and they had its data."""
    created = status.condition(case.old, "Created")
    return case.phase in ("Restarting", "Scaling") or (created is not None and created.status == "True")


def report(case: JobCase, plan: Plan, found: Obstacle) -> PaddleJobStatus:
    """The status that says so, with an event when it is new."""
    before = status.condition(case.old, found.condition)
    if before is None or before.message != found.text:
        plan.events.append(PlannedEvent(found.reason, found.text, type="Warning"))
    if case.port is None:
        plan.requeue_after(PORTS_AGAIN)
    return status.with_condition(
        case.old, found.condition, "False", reason=found.reason, message=found.text, now=case.now
    )
