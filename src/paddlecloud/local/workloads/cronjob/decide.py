"""The CronJob controller's judgement: `decide(cron_job, observed, now)` is pure and says everything to do.

The last time that was run is on the CronJob (`lastScheduleTime`) and on the Jobs themselves, so nothing is remembered.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import format_datetime

from paddlecloud.api.cron import BadSchedule
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.conditions import has_condition
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent
from paddlecloud.kube.resource import JOBS, Object
from paddlecloud.kube.timetable import Timetable, UnknownZone, timetable, zone_of
from paddlecloud.local.workloads.cronjob.build import due_time_of, job_for, job_name, reference_to

MANY = 100
"""Missed times after which somebody should look: a long stop, a clock that jumped, or a deadline that is not set."""
SOONEST = 0.1
LATEST = 60.0
"""Seconds at most until the next look. Timers stand still while a machine sleeps; its clock does not."""
_LIMITS = (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1))


@dataclass(frozen=True, slots=True)
class Observed:
    """The Jobs that the CronJob controls."""

    jobs: tuple[Object, ...] = ()


@dataclass(slots=True)
class _Case:
    """`active` are the unfinished Jobs that the schedule made."""

    cron_job: Object
    jobs: Sequence[Object]
    active: list[Object]
    now: float
    plan: Plan

    @property
    def spec(self) -> Object:
        return dict(self.cron_job["spec"])

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.plan.events.append(
            PlannedEvent(reason, message, type="Warning" if warning else "Normal", if_done=not warning)
        )

    def delete(self, job: Object) -> None:
        meta = job["metadata"]
        if not meta.get("deletionTimestamp"):
            self.plan.delete.append(Delete(JOBS, meta["name"], meta["namespace"], uid=meta["uid"]))
            self.event("SuccessfulDelete", f"Deleted job {meta['name']}")


def decide(cron_job: Object, observed: Observed, now: float) -> Plan:
    if cron_job["metadata"].get("deletionTimestamp"):
        return Plan()
    jobs = sorted(observed.jobs, key=_age)
    runs = {job["metadata"]["name"]: due for job in jobs if (due := due_time_of(cron_job, job)) is not None}
    active = [job for job in jobs if job["metadata"]["name"] in runs and not _outcome(job)]
    case = _Case(cron_job, jobs, active, now, Plan(status_if_done=True))
    _report_changes(case)
    _forget_old(case)
    last = _last_run(case, list(runs.values()))
    if not case.spec.get("suspend") and (times := _timetable(case)) is not None:
        last = _keep_schedule(case, times, last)
    case.plan.status = _status(case, last)
    return case.plan


def _outcome(job: Object) -> str:
    """`Complete`, `Failed`, or empty while it is not over."""
    return next((kind for kind, _, _ in _LIMITS if has_condition(job, kind)), "")


def _age(job: Object) -> tuple[str, str]:
    """By start, as Kubernetes orders them; those that have not started come last."""
    return str((job.get("status") or {}).get("startTime") or "~"), str(job["metadata"]["name"])


# What happened to the Jobs there are


def _report_changes(case: _Case) -> None:
    known = {each["uid"]: each for each in (case.cron_job.get("status") or {}).get("active") or ()}
    by_uid = {job["metadata"]["uid"]: job for job in case.jobs}
    for uid, reference in known.items():
        job = by_uid.get(uid)
        if job is None:
            case.event("MissingJob", f"Active job went missing: {reference['name']}")
        elif outcome := _outcome(job):
            case.event("SawCompletedJob", f"Saw completed job: {reference['name']}, condition: {outcome}")
    for job in case.jobs:
        if not _outcome(job) and job not in case.active:
            text = f"Saw a job that the controller did not create or forgot: {job['metadata']['name']}"
            case.event("UnexpectedJob", text, warning=True)


def _forget_old(case: _Case) -> None:
    for outcome, field, usual in _LIMITS:
        ended = [job for job in case.jobs if _outcome(job) == outcome]
        for job in ended[: max(0, len(ended) - int(case.spec.get(field, usual)))]:
            case.delete(job)


def _last_run(case: _Case, due_times: list[float]) -> float | None:
    """The last time that was run: as it was reported, or as a Job shows whose report was lost."""
    reported = (case.cron_job.get("status") or {}).get("lastScheduleTime")
    times = [due for due in due_times if due <= case.now]
    return max([*times, *([parse_rfc3339(reported)] if reported else [])], default=None)


# What is due


def _timetable(case: _Case) -> Timetable | None:
    schedule, zone = case.spec["schedule"], case.spec.get("timeZone")
    try:
        return timetable(schedule, zone)
    except UnknownZone as why:
        case.event("UnknownTimeZone", f'invalid timeZone: "{zone}": {why}', warning=True)
    except BadSchedule as why:
        case.event("UnparseableSchedule", f'unparseable schedule: "{schedule}" : {why}', warning=True)
    return None


def _keep_schedule(case: _Case, times: Timetable, last: float | None) -> float | None:
    """Make the Job that is due, and say when to look again. Returns the last time that will have been run."""
    since = parse_rfc3339(case.cron_job["metadata"]["creationTimestamp"]) if last is None else last
    due = times.latest_until(case.now, since)
    if due is not None and job_name(case.cron_job, due) in {job["metadata"]["name"] for job in case.jobs}:
        due, last = None, due  # intervals below a minute: names of Jobs count minutes
    runs = due is not None and _may_run(case, times, since, due)
    following = times.next_after(case.now, since)
    if following is not None:
        wait = max(SOONEST, following - case.now)
        held_back = due is not None and not runs  # the reason was reported: nothing is new before the next time
        case.plan.requeue_after(wait if held_back else min(wait, LATEST))
    if due is None or not runs:
        return last
    _run(case, due)
    return due


def _may_run(case: _Case, times: Timetable, since: float, due: float) -> bool:
    deadline = case.spec.get("startingDeadlineSeconds")
    if deadline is not None and case.now - due > deadline:
        when = format_datetime(datetime.datetime.fromtimestamp(int(due), datetime.timezone.utc))
        case.event("MissSchedule", f"Missed scheduled time to start a job: {when}", warning=True)
        return False
    if _missed(times, since if deadline is None else max(since, case.now - deadline), due) > MANY:
        text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        case.event("TooManyMissedTimes", text, warning=True)
    if case.active and case.spec.get("concurrencyPolicy") == "Forbid":
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        case.event("JobAlreadyActive", text)
        return False
    return True


def _missed(times: Timetable, since: float, due: float) -> int:
    """How many times there were, estimated from the distance of the first two, as Kubernetes does."""
    first = times.next_after(since, since)
    second = None if first is None else times.next_after(first, since)
    if first is None or second is None or due <= first:
        return 1
    return int((due - first) // (second - first)) + 1


def _run(case: _Case, due: float) -> None:
    if case.spec.get("concurrencyPolicy") == "Replace":
        for job in case.active:
            case.delete(job)
        case.active = []
    zone = case.spec.get("timeZone")
    case.plan.create.append(job_for(case.cron_job, due, zone_of(zone) if zone else datetime.timezone.utc))
    case.event("SuccessfulCreate", f"Created job {job_name(case.cron_job, due)}")


def _status(case: _Case, last: float | None) -> Object:
    """A Job that is created now is in `active` from the next pass on, when it has a uid."""
    old = case.cron_job.get("status") or {}
    ended = [str((job.get("status") or {}).get("completionTime") or "") for job in case.jobs]
    succeeded = max([str(old.get("lastSuccessfulTime") or ""), *ended])
    status: Object = {}
    if case.active:
        known = {each["uid"]: each for each in old.get("active") or ()}
        status["active"] = [known.get(job["metadata"]["uid"]) or reference_to(job) for job in case.active]
    if last is not None:
        status["lastScheduleTime"] = rfc3339(last)
    if succeeded:
        status["lastSuccessfulTime"] = succeeded
    return status
