"""What is to be done for a CronWorkflow: `decide(cron, observed, now)` is pure and says everything.

A Workflow that is due is created, and nothing else; that it exists is noted by the pass that observes it. So a creation
that was refused, or a crash in between, loses no run. Of the times missed while the controller was down only the latest
is run, and only within `startingDeadlineSeconds`, as Argo does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.conditions import without_condition
from paddlecloud.kube.plan import Patch, Plan, PlannedEvent, merge_diff
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import moment_of
from paddlecloud.kube.timetable import Timetable, timetable
from paddlecloud.local.workflow.cron.build import due_time_of, reference_to, workflow_for, workflow_name
from paddlecloud.local.workflow.cron.conditions import BadExpression, may_run, must_stop
from paddlecloud.local.workflow.decision.deletion import delete
from paddlecloud.local.workflow.expressions.budget import TooMuchWork, one_pass
from paddlecloud.local.workflow.names import CRON_COMPLETED, CRON_WORKFLOWS, LAST_SCHEDULE, WORKFLOWS
from paddlecloud.local.workflow.nodes import ENDED_PHASES, ERROR, FAILED, SUCCEEDED
from paddlecloud.local.workflow.unreadable import UNREADABLE

SOONEST = 0.1
LATEST = 60.0
"""Seconds at most until the next pass: timers stand still while a machine sleeps, and its clock does not."""
_SHARE = 100
"""Of the work of a workflow's pass: conditions are about a few counts and labels, and are judged up to every second."""
ACTIVE, STOPPED = "Active", "Stopped"
_KEPT = ((("successfulJobsHistoryLimit", 3), (SUCCEEDED,)), (("failedJobsHistoryLimit", 1), (FAILED, ERROR)))


@dataclass(frozen=True, slots=True)
class Observed:
    """The Workflows that the CronWorkflow controls.

    `since` is the moment from which the controller kept this schedule without a break: what was due after it is run
    however late the pass is. `refusal` is why the last creation failed.
    """

    workflows: tuple[Object, ...] = ()
    since: float = 0.0
    refusal: str = ""


def schedules_of(spec: Mapping[str, Any]) -> list[str]:
    return [str(spec["schedule"])] if spec.get("schedule") else [str(each) for each in spec.get("schedules") or ()]


def written_schedule(spec: Mapping[str, Any]) -> str:
    """As Argo writes it to the annotation by which it finds out that a schedule was changed."""
    zone = f"CRON_TZ={spec['timezone']} " if spec.get("timezone") else ""
    return ",".join(f"{zone}{schedule}" for schedule in schedules_of(spec))


def decide(cron: Object, observed: Observed, now: float) -> Plan:
    if cron["metadata"].get("deletionTimestamp"):
        return Plan()
    with one_pass(_SHARE):
        return _Pass(cron, observed, now).decided()


class _Pass:
    def __init__(self, cron: Object, observed: Observed, now: float) -> None:
        self.cron = cron
        self.spec: Mapping[str, Any] = cron.get("spec") or {}
        self.observed = observed
        self.now = now
        self.plan = Plan()
        before = cron.get("status")
        self.before: Object = before if isinstance(before, dict) else {}
        self.failed, self.succeeded = _count(self.before, "failed"), _count(self.before, "succeeded")
        self.phase = str(self.before.get("phase") or ACTIVE)
        self.conditions = [each for each in _list(self.before.get("conditions")) if isinstance(each, dict)]
        self.last = moment_of(self.before.get("lastScheduledTime"))
        self.active: list[Object] = []

    def decided(self) -> Plan:
        try:
            self._note_workflows()
            self._forget_old()
            self._stop()
            if not self.spec.get("suspend") and self.phase != STOPPED:
                self._keep_schedule()
            self._condition("SpecError", "")
        except (BadExpression, TooMuchWork, *UNREADABLE) as why:
            self._condition("SpecError", str(why)[:1000])
        self._condition("SubmissionError", self.observed.refusal)
        self._write()
        return self.plan

    # What became of the Workflows there are

    def _note_workflows(self) -> None:
        known = {
            str(each["uid"]): each
            for each in _list(self.before.get("active"))
            if isinstance(each, dict) and "uid" in each
        }
        last = self.last
        for workflow in sorted(self.observed.workflows, key=lambda each: str(each["metadata"]["name"])):
            phase = (workflow.get("status") or {}).get("phase", "")
            due, uid = due_time_of(self.cron, workflow), workflow["metadata"]["uid"]
            is_new = due is not None and (last is None or due > last) and due <= self.now
            if is_new and due is not None:
                self.last = max(due, self.last or 0.0)
                self.phase = ACTIVE if self.phase != STOPPED else STOPPED
            if phase not in ENDED_PHASES:
                self.active.append(_reference(workflow, known.get(uid)))
            elif uid in known or is_new:
                self.succeeded += phase == SUCCEEDED
                self.failed += phase != SUCCEEDED

    def _forget_old(self) -> None:
        """The oldest ones beyond the limits go."""
        for (field, usual), phases in _KEPT:
            limit = self.spec.get(field)
            kept = usual if limit is None or int(limit) < 0 else int(limit)
            ended = [each for each in self.observed.workflows if (each.get("status") or {}).get("phase") in phases]
            ended.sort(key=lambda each: str(each["status"].get("finishedAt") or ""), reverse=True)
            for workflow in ended[kept:]:
                delete(self.plan, WORKFLOWS, workflow)

    def _stop(self) -> None:
        if self.phase != STOPPED and must_stop(self.cron, self._counts()):
            self.phase = STOPPED

    def _counts(self) -> Object:
        return {"failed": self.failed, "succeeded": self.succeeded, "lastScheduledTime": self.last}

    # What is due

    def _keep_schedule(self) -> None:
        zone = self.spec.get("timezone")
        times = [timetable(schedule, zone) for schedule in schedules_of(self.spec)]
        due = self._due(times)
        if due is not None and may_run(self.cron, self._counts()):
            self._run(due)
        since = self.last or self.observed.since
        following = [when for each in times if (when := each.next_after(self.now, since)) is not None]
        if following:
            self.plan.requeue_after(min(LATEST, max(SOONEST, min(following) - self.now)))

    def _due(self, times: Sequence[Timetable]) -> float | None:
        """The latest time that was not run, if it is not too late for it."""
        created = parse_rfc3339(self.cron["metadata"]["creationTimestamp"])
        since = max(self.last or 0.0, created) if not self._is_new_schedule() else max(self.observed.since, created)
        missed = [when for each in times if (when := each.latest_until(self.now, since)) is not None]
        if not missed:
            return None
        due, deadline = max(missed), self.spec.get("startingDeadlineSeconds")
        on_time = due > self.observed.since
        in_time = deadline is not None and self.last is not None and self.now < due + float(deadline)
        return due if on_time or in_time else None

    def _is_new_schedule(self) -> bool:
        written = (self.cron["metadata"].get("annotations") or {}).get(LAST_SCHEDULE)
        return bool(written != written_schedule(self.spec))

    def _run(self, due: float) -> None:
        name = workflow_name(self.cron, due)
        if any(each["metadata"]["name"] == name for each in self.observed.workflows):
            return
        policy = self.spec.get("concurrencyPolicy")
        if self.active and policy == "Forbid":
            return
        if policy == "Replace":
            for reference in self.active:
                self._terminate(reference)
        self.plan.create.append(workflow_for(self.cron, due))
        self.plan.events.append(PlannedEvent("SuccessfulCreate", f"Created workflow {name}", if_done=True))

    def _terminate(self, reference: Object) -> None:
        """Only the Workflow that was observed: the API server compares the uid, and refuses a successor of its name."""
        body = {"metadata": {"uid": reference["uid"]}, "spec": {"shutdown": "Terminate"}}
        self.plan.patch.append(Patch(WORKFLOWS, reference["name"], reference["namespace"], body))

    # What is written

    def _condition(self, kind: str, message: str) -> None:
        self.conditions = without_condition(self.conditions, kind)
        if message:
            self.conditions.append({"type": kind, "status": "True", "message": message})

    def _write(self) -> None:
        meta = self.cron["metadata"]
        status: Object = {
            "active": self.active or None,
            "lastScheduledTime": None if self.last is None else rfc3339(self.last),
            "conditions": self.conditions or None,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "phase": self.phase,
        }
        metadata: Object = {}
        if self._is_new_schedule():
            metadata["annotations"] = {LAST_SCHEDULE: written_schedule(self.spec)}
        if self.phase == STOPPED and (meta.get("labels") or {}).get(CRON_COMPLETED) != "true":
            metadata["labels"] = {CRON_COMPLETED: "true"}
        changes = merge_diff(self.before, {key: value for key, value in status.items() if value is not None})
        if not changes and not metadata:
            return
        version = meta["resourceVersion"]
        body = {"status": changes, "metadata": {**metadata, "resourceVersion": version}}
        self.plan.patch.append(Patch(CRON_WORKFLOWS, meta["name"], meta["namespace"], body, seen=version))


def _reference(workflow: Object, known: Mapping[str, Any] | None) -> Object:
    """Users write the status: name and namespace are those of the Workflow that was observed. The version noted first
    is kept, so that not every change of the Workflow is written here too."""
    reference = reference_to(workflow)
    noted = (known or {}).get("resourceVersion")
    return {**reference, "resourceVersion": noted} if isinstance(noted, str) else reference


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(status: Mapping[str, Any], field: str) -> int:
    value = status.get(field)
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0
