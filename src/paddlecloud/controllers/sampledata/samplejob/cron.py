"""A SampleJob with a schedule: it does nothing itself, it makes a SampleJob each time it is due.

`status.nextScheduleTime` is all it remembers. When that time has come, the last due time up to now is what counts:
of the runs missed while the controller was down, only the latest is run. The name of a run is derived from its time,
so no crash can make one twice.
"""

from __future__ import annotations

from paddlecloud.api.cron import parse
from paddlecloud.api.fields import ObjectReference
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.samplejob.draft import FINISHED, SampleJobDraft
from paddlecloud.kube import calendar
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.plan import Delete
from paddlecloud.kube.resource import SAMPLEJOBS, Object, owner_reference

PARENT = "paddlepaddle.org/samplejob"
"""Label of runs: the job whose schedule made them."""
_OF_THE_SCHEDULE = (
    *("schedule", "suspend", "concurrencyPolicy", "startingDeadlineSeconds"),
    *("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
)
_NAME_ROOM = 52
"""As with CronJobs: what is left of a name when the time has been added."""


def keep(draft: SampleJobDraft) -> None:
    """Make the run that is due, forget old ones, and say when the next comes."""
    schedule = parse(draft.settings.schedule)
    active = [child for child in draft.observed.children if _phase(child) not in FINISHED]
    changed = draft.old.observed_generation != draft.job["metadata"].get("generation")
    due = parse_rfc3339(draft.old.next_schedule_time) if draft.old.next_schedule_time and not changed else None
    if draft.settings.suspend:
        draft.set(next_schedule_time=None, message="suspended")
        draft.condition("Scheduled", False, "Suspended")
    else:
        if due is not None and due <= draft.now:
            active = _run(draft, calendar.latest_until(schedule, draft.now) or due, active)
        following = due if due is not None and due > draft.now else calendar.next_after(schedule, draft.now)
        _announce(draft, following)
    _forget(draft)
    succeeded = [child["status"] for child in draft.observed.children if _phase(child) == "Succeeded"]
    latest = max((str(status.get("completionTime") or "") for status in succeeded), default="")
    draft.set(
        phase="Running" if active else "Pending",
        active=[_reference(child) for child in active] or None,
        last_successful_time=max(latest, draft.old.last_successful_time or "") or None,
    )


def _announce(draft: SampleJobDraft, following: float | None) -> None:
    if following is None:
        draft.set(next_schedule_time=None, message="the schedule has no next time")
        draft.condition("Scheduled", False, "Never", "the schedule has no next time")
        return
    draft.set(next_schedule_time=rfc3339(following), message=f"next at {rfc3339(following)}")
    draft.condition("Scheduled", True, "Scheduled")
    draft.requeue_after(max(0.1, following - draft.now))


def _run(draft: SampleJobDraft, due: float, active: list[Object]) -> list[Object]:
    """The runs that are active once the due one has been dealt with."""
    deadline = draft.settings.starting_deadline_seconds
    if deadline is not None and draft.now - due > deadline:
        draft.add_event(
            "MissSchedule", f"the run of {rfc3339(due)} is {draft.now - due:.0f} s late: skipped", warning=True
        )
        return active
    running = ", ".join(child["metadata"]["name"] for child in active)
    if active and draft.settings.concurrency_policy == "Forbid":
        draft.add_event("JobAlreadyActive", f"the run of {rfc3339(due)} is skipped: {running} still runs")
        return active
    if active and draft.settings.concurrency_policy == "Replace":
        draft.plan.delete.extend(_delete(child) for child in active)
        active = []
    child = build_run(draft.job, due)
    draft.plan.create.append(child)
    draft.add_event("SuccessfulCreate", f"created {child['metadata']['name']}")
    draft.set(last_schedule_time=rfc3339(due))
    return [*active, child]


def build_run(job: Object, due: float) -> Object:
    meta = job["metadata"]
    spec = {key: value for key, value in job["spec"].items() if key not in _OF_THE_SCHEDULE}
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": {
            "name": f"{meta['name'][:_NAME_ROOM].rstrip('-')}-{int(due) // 60}",
            "namespace": meta["namespace"],
            "labels": {**(meta.get("labels") or {}), PARENT: names.shortened(meta["name"])},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def _forget(draft: SampleJobDraft) -> None:
    limits = {
        "Succeeded": draft.settings.successful_jobs_history_limit,
        "Failed": draft.settings.failed_jobs_history_limit,
    }
    for phase, limit in limits.items():
        ended = sorted((c for c in draft.observed.children if _phase(c) == phase), key=_ended_at)
        going = ended[: max(0, len(ended) - limit)]
        draft.plan.delete.extend(_delete(child) for child in going if not child["metadata"].get("deletionTimestamp"))


def _ended_at(child: Object) -> tuple[str, str]:
    return str(child["status"].get("completionTime") or ""), str(child["metadata"]["name"])


def _phase(child: Object) -> str:
    return str((child.get("status") or {}).get("phase") or "")


def _delete(child: Object) -> Delete:
    meta = child["metadata"]
    return Delete(SAMPLEJOBS, meta["name"], meta["namespace"], uid=meta["uid"])


def _reference(child: Object) -> ObjectReference:
    meta = child["metadata"]
    return ObjectReference(
        api_version=child["apiVersion"],
        kind=child["kind"],
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta.get("uid"),
    )
