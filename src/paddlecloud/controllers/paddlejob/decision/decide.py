"""The PaddleJob controller's judgement. `decide(job, observed, now, options)` is pure and gives every action.

The rules are tried in order and the first that gives a plan decides: not ours, being deleted, finished, invalid,
suspended, succeeded, out of time, failed, unable to start, silent, resized, refused, and finally: form the gang. What
is done about failures stands in `failures`, how a decision becomes a status in `conclusion`. Whatever is remembered
between passes stands in the job's own status, so that any pass can follow any crash.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from paddlecloud.api.names import RETRY_AT
from paddlecloud.api.paddlejob import PaddleJobStatus, normalise
from paddlecloud.controllers.paddlejob import status
from paddlecloud.controllers.paddlejob.decision import (
    data_seen,
    failures,
    finish,
    gang_formation,
    last_valid_spec,
    obstacle,
    refusal,
    startup,
)
from paddlecloud.controllers.paddlejob.decision.case import JobCase, JobOptions
from paddlecloud.controllers.paddlejob.decision.conclusion import complete, conclude, take_down
from paddlecloud.controllers.paddlejob.failure import cause, secondary, silence
from paddlecloud.controllers.paddlejob.gang import podgroup
from paddlecloud.controllers.paddlejob.observe import Observed
from paddlecloud.controllers.paddlejob.pods import objects
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Plan, PlannedEvent
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import number_of


def decide(job: Object, observed: Observed, now: float, options: JobOptions) -> Plan:
    """Everything to be done for `job` now. An empty plan means: as it should be."""
    reading = last_valid_spec.read(job)
    job, parsed = reading.job, reading.parsed
    if parsed is None:
        return _reject(job, PaddleJobStatus(), reading.problems, now, begun=bool(observed.pods))
    settings, warnings = normalise(parsed)
    case = JobCase(job, settings, parsed.status or PaddleJobStatus(), observed, now, options, reading)
    if settings.managed_by not in ("", options.controller_name):
        return Plan()
    if job["metadata"].get("deletionTimestamp"):
        return _delete(case)
    if case.phase in status.FINISHED:
        if _asked_again(case):
            return _retry(case)
        if not _changed_since_refused(case):
            return _after_the_end(case)
        case = replace(case, old=PaddleJobStatus())
    if reading.problems and not reading.goes_on:
        return _reject(job, case.old, reading.problems, now, begun=bool(observed.pods))
    before = status.condition(parsed.status or PaddleJobStatus(), last_valid_spec.CONDITION)
    if reading.goes_on:
        case = _with_validity(case, "False", last_valid_spec.INVALID, reading.complaint)
    elif before is not None:
        case = _with_validity(case, "True", "Repaired", "")
    plan = _at_work(case, warnings)
    if reading.goes_on and (before is None or before.message != reading.complaint):
        plan.events.insert(0, PlannedEvent(last_valid_spec.INVALID, reading.complaint, type="Warning"))
    return plan


def _with_validity(case: JobCase, value: str, reason: str, text: str) -> JobCase:
    marked = status.with_condition(
        case.old, last_valid_spec.CONDITION, value, reason=reason, message=text, now=case.now
    )
    return replace(case, old=marked)


def _at_work(case: JobCase, warnings: list[str]) -> Plan:
    if case.settings.suspend:
        return _suspend(case)
    case = replace(case, old=secondary.reconsidered(case))
    for rule in (
        _success,
        failures.to_deadlines,
        failures.to_failures,
        failures.to_failed_starts,
        failures.to_silence,
        _resize,
        _refused,
    ):
        if (plan := rule(case)) is not None:
            return plan
    return _form(case, [*warnings, *_unheeded(case)])


def _unheeded(case: JobCase) -> list[str]:
    """What the job asks for and nobody here can give."""
    found = []
    if case.settings.heartbeat_seconds is not None and case.observed.reports is None:
        found.append("hangDetection.heartbeatSeconds is not watched here: use logSilenceSeconds")
    if podgroup.missed(case.settings, case.options.gangs):
        found.append(podgroup.NOBODY)
    return found


# Jobs that have ended, and those that will not begin


def _delete(case: JobCase) -> Plan:
    """The garbage collector takes everything the job owns; nothing new may be made meanwhile."""
    plan = Plan()
    finish.remove_original_finalizer(case, plan)
    return conclude(case, plan, case.old, "Terminating", reason="Deleted")


def _changed_since_refused(case: JobCase) -> bool:
    """An invalid job created nothing, so it may begin when its spec has changed."""
    return (
        case.phase == "Failed"
        and case.old.reason == last_valid_spec.INVALID
        and case.old.observed_generation != case.job["metadata"].get("generation")
    )


def _asked_again(case: JobCase) -> bool:
    """Whether the annotation asks for another run: once per value, and not when it was set before the job ended."""
    asked = (case.job["metadata"].get("annotations") or {}).get(RETRY_AT)
    if not asked or asked == case.old.retried_at:
        return False
    try:
        return case.old.completion_time is None or parse_rfc3339(asked) >= parse_rfc3339(case.old.completion_time)
    except ValueError:
        return True  # any word that is new will do


def _retry(case: JobCase) -> Plan:
    """Run a finished job again, with all its budgets and from its checkpoint. Only what a person needs is kept."""
    old = case.old
    new = PaddleJobStatus(
        port=old.port,
        conditions=old.conditions,
        failures=old.failures,
        progress=old.progress,
        checkpoint=old.checkpoint,
        retried_at=case.job["metadata"]["annotations"][RETRY_AT],
    )
    new = status.with_condition(new, "Created", "False", reason="Retried", now=case.now)
    text = f"run again, as asked: {number_of(case.settings.total, 'pod')}"
    plan = Plan(events=[PlannedEvent("Retried", text)])
    return take_down(case, plan, new, "Restarting", reason="Retried", message=text)


def _reject(job: Object, old: PaddleJobStatus, text: str, now: float, *, begun: bool) -> Plan:
    """Say what is wrong, create nothing. A job that has begun, of which no valid spec is known, keeps its pods."""
    new = status.with_condition(
        old, last_valid_spec.CONDITION, "False", reason=last_valid_spec.INVALID, message=text, now=now
    )
    if not begun:
        generation = job["metadata"].get("generation")
        new = status.in_phase(
            new, "Failed", now=now, reason=last_valid_spec.INVALID, message=text, generation=generation
        )
    written = status.finish(new, job.get("status") or {}, now=now)
    events = [PlannedEvent(last_valid_spec.INVALID, text, type="Warning")] if written else []
    return Plan(status=written, events=events)


def _after_the_end(case: JobCase) -> Plan:
    plan = Plan()
    finish.clean_up(case, plan, case.phase)
    finish.expire(case, plan)
    return plan


# Jobs that are at work


def _suspend(case: JobCase) -> Plan:
    """Take the gang down and keep it down."""
    plan, begins = Plan(), case.phase != "Suspended"
    if begins:
        plan.events.append(PlannedEvent("Suspended", "the job is suspended: its pods are removed"))
    gang_formation.drop_gang(case, plan)
    new = status.with_condition(case.old, "Created", "False", reason="Suspended", now=case.now)
    text = "spec.suspend is true"
    return take_down(case, plan, new, "Suspended", reason="Suspended", message=text, advance=begins)


def _success(case: JobCase) -> Plan | None:
    """The workers decide, or all roles where that was asked for or there are no workers."""
    worker = case.settings.role("worker")
    deciding = case.settings.roles
    if worker is not None and worker.replicas and case.settings.success_policy == "Workers":
        deciding = (worker,)
    wanted = sum(role.replicas for role in deciding)
    counted = {role.name for role in deciding}
    done = sum(1 for (role, _), pod in case.current.items() if role in counted and pod.state == "succeeded")
    if not wanted or done < wanted:
        return None
    noun = "worker" if len(deciding) < len(case.settings.roles) else "pod"
    return complete(case, f"{number_of(wanted, noun)} succeeded")


def _resize(case: JobCase) -> Plan | None:
    """Other numbers of pods than the gang was formed with: form it anew, from its checkpoint."""
    if not case.resized:
        return None
    text = f"the job is formed anew with {case.replicas.replace(',', ', ')}"
    plan = Plan(events=[PlannedEvent("Scaling", text)])
    return take_down(case, plan, case.old, "Scaling", reason="Scaling", message=text)


def _refused(case: JobCase) -> Plan | None:
    """The API server refuses some of the pods: the gang holds nothing until it is tried again as a whole."""
    retry_at = case.observed.retry_at
    if retry_at is None or case.now >= retry_at or not case.missing or case.etcd:
        return None
    plan, text = Plan(), case.observed.trouble
    plan.requeue_after(retry_at - case.now)
    _watch_the_clock(case, plan)
    new = status.with_condition(case.old, "Created", "False", reason=refusal.REASON, message=text, now=case.now)
    phase = status.phase_while_forming(case.settings, (), case.phase, reforming=_reforming(case))
    return take_down(case, plan, new, phase, reason=refusal.REASON, message=text, advance=bool(case.current))


def _form(case: JobCase, warnings: list[str]) -> Plan:
    """Make what is missing, and say how far it is."""
    plan = Plan()
    new, waiting = case.old, ""
    if (found := obstacle.find(case)) is not None:
        new, waiting = obstacle.report(case, plan, found), found.text
    elif case.port is not None and not gang_formation.clear_stale(case, plan):
        if case.settings.sample_set or case.observed.mounted_sets or status.condition(new, "DataReady"):
            new = status.with_condition(new, "DataReady", "True", reason="Ready", now=case.now)
        new, waiting = _create(case, plan, new, case.port)
    if warnings and case.old.phase is None:
        plan.events.append(PlannedEvent("Guessed", "; ".join(warnings), type="Warning"))
    pods = tuple(case.current.values())
    new = msgspec.structs.replace(new, generation=case.generation, port=case.port)
    if objects.restarts_in_place(case.settings, case.etcd):
        new = msgspec.structs.replace(new, restarts=cause.restarts_in_place(pods) or None)
    new = data_seen.noted(case, new)
    reforming = _reforming(case)
    phase = status.phase_while_forming(case.settings, pods, case.phase, reforming=reforming)
    new = startup.noted(case, plan, status.with_counts(new, case.settings, pods))
    if phase == "Running":
        return conclude(case, plan, new, phase, reason="Running")
    reason = (case.old.reason or phase) if reforming else phase
    message = case.observed.trouble or waiting or gang_formation.awaited(case)
    return conclude(case, plan, new, phase, reason=reason, message=message)


def _create(case: JobCase, plan: Plan, new: PaddleJobStatus, port: int) -> tuple[PaddleJobStatus, str]:
    """The next thing that can be made, and what it waits for if it cannot."""
    waiting = ""
    if case.missing:
        new = _tell_of_gang(case, new)
        waiting = gang_formation.ensure_gang(case, plan)
        if not waiting and (pause := gang_formation.restart_delay(case)):
            waiting = f"the next restart is due in {pause:.0f} seconds"
            plan.requeue_after(pause)
        if not waiting:
            gang_formation.ensure_pods(case, plan, port)
    else:
        waiting = gang_formation.ensure_config(case, plan, port)
    _watch_the_clock(case, plan)
    if case.observed.retry_at is None:  # otherwise the next pass knows whether it was granted this time
        new = status.with_condition(new, "Created", "True", reason="Created", now=case.now)
    return new, waiting


def _tell_of_gang(case: JobCase, new: PaddleJobStatus) -> PaddleJobStatus:
    """A gang that no scheduler takes is reported; that one does, only where it was not so before."""
    if podgroup.missed(case.settings, case.options.gangs):
        return status.with_condition(
            new, "GangScheduled", "False", reason="NoGangScheduler", message=podgroup.NOBODY, now=case.now
        )
    if status.condition(new, "GangScheduled"):
        return status.with_condition(new, "GangScheduled", "True", reason="EngineFound", now=case.now)
    return new


def _reforming(case: JobCase) -> bool:
    return case.generation > 0 and case.phase in ("Restarting", "Scaling")


def _watch_the_clock(case: JobCase, plan: Plan) -> None:
    """Come back when a deadline is due, or a verdict."""
    if (wait := secondary.awaited(case)) > 0:
        plan.requeue_after(wait)
    if case.phase == "Running":
        for moment in silence.due(case):
            plan.requeue_after(max(1.0, moment - case.now))
    limits = (case.settings.active_deadline_seconds, case.settings.scheduling.timeout_seconds)
    created = status.condition(case.old, "Created")
    since = parse_rfc3339(created.last_transition_time) if created and created.last_transition_time else case.now
    for limit in limits:
        if limit is not None and since + limit > case.now:
            plan.requeue_after(since + limit - case.now)
