"""Runs of pipelines and their schedules as rows: what lists show and filter by. Pure, and made once for each state."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.kube.argo import CRON_WORKFLOW
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import moment_of
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import schedule, states
from paddlecloud.ui.formatting import share
from paddlecloud.ui.object_lists import searched

LONGEST = 200
"""Characters of a value that lists show and a search looks through."""


class RunRow(NamedTuple):
    namespace: str
    name: str
    called: str
    """The name that people gave to the run; empty where that is the object's."""
    phase: str
    created: str
    started: str
    finished: str
    steps: str
    """Ended of all, as Argo counts them: `3/5`."""
    done: float | None
    """Share of the steps; None of a run that is over: Argo counts attempts that failed, too."""
    schedule: str
    """The CronWorkflow that began it."""
    parameters: tuple[tuple[str, str], ...]
    message: str
    """Why it failed; empty of others."""
    text: str

    @property
    def seconds(self) -> float | None:
        began, ended = moment_of(self.started), moment_of(self.finished)
        return None if began is None or ended is None else max(0.0, ended - began)


class ScheduleRow(NamedTuple):
    namespace: str
    name: str
    called: str
    phase: str
    created: str
    when: str
    last: str
    active: int
    text: str


def row_of(workflow: Object) -> RunRow:
    meta, status = workflow["metadata"], workflow.get("status") or {}
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    called = str(annotations.get(names.RUN_NAME) or "")
    given = parameters(workflow)
    message = states.failure(workflow)
    return RunRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        called=called if called != meta["name"] else "",
        phase=phase_of(workflow),
        created=str(meta.get("creationTimestamp") or ""),
        started=str(status.get("startedAt") or ""),
        finished=str(status.get("finishedAt") or ""),
        steps=str(status.get("progress") or ""),
        done=None if states.is_over(workflow) else _done(status.get("progress")),
        schedule=str(labels.get(CRON_WORKFLOW) or ""),
        parameters=given,
        message=message,
        text=searched(workflow, called, phase_of(workflow), message, *(f"{name}={value}" for name, value in given)),
    )


def phase_of(workflow: Object) -> str:
    """Argo's phase; of a run that is being stopped or was suspended as a whole, that."""
    spec, phase = workflow.get("spec") or {}, states.phase_of(workflow) or "Pending"
    if states.is_over(workflow):
        return phase
    return "Terminating" if spec.get("shutdown") else "Suspended" if spec.get("suspend") else phase


def parameters(workflow: Object) -> tuple[tuple[str, str], ...]:
    """Of the run; those of its template that it does not give itself come after them."""
    stored = (workflow.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
    found: dict[str, str] = {}
    for each in (*_arguments(workflow.get("spec") or {}), *_arguments(stored)):
        name = str(each.get("name") or "")
        if name and name != names.STARTER_PARAMETER:
            found.setdefault(name, str(each.get("value", each.get("default", ""))))
    return tuple((name, value[:LONGEST]) for name, value in found.items())


def _arguments(spec: Object) -> list[Object]:
    given = (spec.get("arguments") or {}).get("parameters") or ()
    return [each for each in given if isinstance(each, dict)]


def _done(progress: Any) -> float | None:
    done, _, whole = str(progress or "").partition("/")
    if not (done.isdecimal() and whole.isdecimal() and len(progress) < 20):
        return None
    return share(int(done), int(whole))


def schedule_row(cron: Object) -> ScheduleRow:
    meta, spec, status = cron["metadata"], cron.get("spec") or {}, cron.get("status") or {}
    annotations = meta.get("annotations") or {}
    called = str(annotations.get(names.PIPELINE_NAME) or annotations.get(names.DISPLAY_NAME) or "")
    times = spec.get("schedules") or [schedule.of_spec(spec).schedule]
    when = ", ".join(str(each) for each in times if each)
    return ScheduleRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        called=called,
        phase="Suspended" if spec.get("suspend") else "Active",
        created=str(meta.get("creationTimestamp") or ""),
        when=when,
        last=str(status.get("lastScheduledTime") or ""),
        active=len(status.get("active") or ()),
        text=searched(cron, called, when),
    )
