"""How a decision ends: a plan, and the status that reports it.

The rules (`decide`, `failures`) say what is to happen and why. Here that becomes a phase with its conditions, counts
and times, and what every end of a generation has in common is done once.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from paddlecloud.api.outputs import verdict_of
from paddlecloud.api.paddlejob import PaddleJobStatus
from paddlecloud.api.paddlejob.status import Failure as FailureRecord
from paddlecloud.controllers.paddlejob import status
from paddlecloud.controllers.paddlejob.decision import finish, gang_formation, last_valid_spec
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.failure import cause
from paddlecloud.controllers.paddlejob.reports import report
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import number_of


def conclude(case: JobCase, plan: Plan, new: PaddleJobStatus, phase: str, *, reason: str, message: str = "") -> Plan:
    """The plan, with `new` in its phase as the status to be written, unless nothing would change."""
    new = report.fold(new, case.observed.reports, runs=phase == "Running", began=case.phase != "Running")
    new = msgspec.structs.replace(
        new,
        elastic=status.elastic_state(case.settings, new.elastic, phase),
        last_valid_spec=_last_valid_spec(case, phase),
    )
    new = status.in_phase(
        new, phase, now=case.now, reason=reason, message=message, generation=case.job["metadata"].get("generation")
    )
    if case.reading.goes_on and not message:
        new = msgspec.structs.replace(new, message=case.reading.complaint)
    plan.status = status.finish(new, case.job.get("status") or {}, now=case.now)
    return plan


def _last_valid_spec(case: JobCase, phase: str) -> Object | None:
    """A job that has ended by the spec that is written needs no other."""
    if case.reading.problems:
        return last_valid_spec.kept(case.job.get("spec")) if case.reading.goes_on else None
    return None if phase in status.FINISHED else last_valid_spec.kept(case.job.get("spec"))


def take_down(
    case: JobCase,
    plan: Plan,
    new: PaddleJobStatus,
    phase: str,
    *,
    reason: str,
    message: str,
    advance: bool = True,
) -> Plan:
    """End this generation, whatever comes next: under the next number all pods are stale, and none meets its successor.

    The number is written before anything is deleted, so that a crash in between loses no restart. A generation that is
    down already stays down without another number (`advance`).
    """
    if advance:
        plan.status_first = True
        new = msgspec.structs.replace(new, generation=case.generation + 1)
    gang_formation.clear_stale(replace(case, old=new), plan)
    return conclude(case, plan, status.with_counts(new, case.settings, ()), phase, reason=reason, message=message)


def complete(case: JobCase, text: str) -> Plan:
    plan = Plan(status_first=True)
    if ended := finish.clean_up(case, plan, "Completed"):
        text += f"; {number_of(ended, 'pod')} that still ran {'was' if ended == 1 else 'were'} ended"
    plan.events.append(PlannedEvent("Completed", text))
    return _end(case, plan, "Completed", reason="Completed", message=text)


def fail(case: JobCase, reason: str, text: str) -> Plan:
    plan = Plan(status_first=True, events=[PlannedEvent("Failed", f"{reason}: {text}", type="Warning")])
    finish.clean_up(case, plan, "Failed")
    return _end(case, plan, "Failed", reason=reason, message=text)


def _end(case: JobCase, plan: Plan, phase: str, *, reason: str, message: str) -> Plan:
    pods = tuple(case.current.values())
    counted = status.with_counts(case.old, case.settings, pods, failed=phase == "Failed")
    return conclude(case, plan, status.with_start(counted, pods), phase, reason=reason, message=message)


def on_record(case: JobCase, first: cause.Failure, action: str) -> JobCase:
    """The case with a failure among the last few that its status lists, and what was done about it.

    The last lines of output are those of the newest; of older ones the line remains that says why.
    """
    record = FailureRecord(
        time=rfc3339(case.now),
        pod=first.pod,
        node=first.node or None,
        failure_class=first.kind,
        exit_code=first.exit_code,
        message=first.message or None,
        action=action,
    )
    older = [
        msgspec.structs.replace(known, message=verdict_of(known.message or "") or None)
        for known in case.old.failures or ()
    ]
    kept = [*older, record][-status.FAILURES_KEPT :]
    return replace(case, old=msgspec.structs.replace(case.old, failures=kept))
