"""Where the time of a job went: queued, pulling its image, starting, running, and between two attempts. Pure.

Read from what objects keep (times of the job, conditions of its pods) and, for as long as they exist, from events: the
time of a pull is in no status. Stretches follow one another; of what nothing is known nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paddlecloud.kube.conditions import condition_of
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import moment_of

QUEUED, PULLING, STARTING, RUNNING, RESTARTING = "queued", "pulling", "starting", "running", "restarting"


class Stretch(NamedTuple):
    kind: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def timeline(job: Object, pods: Sequence[Object], events: Iterable[Object], now: float) -> list[Stretch]:
    """A job that was restarted has one first attempt, then what its failures say; its pods are those of the last."""
    status = job.get("status") or {}
    created = moment_of(job["metadata"].get("creationTimestamp"))
    if created is None:
        return []
    end = moment_of(status.get("completionTime")) or now
    started = moment_of(status.get("startTime"))
    failed = [at for one in status.get("failures") or () if (at := moment_of(one.get("time"))) is not None]
    scheduled = _last(_condition_time(pod, "PodScheduled") for pod in pods)
    first_run = started if started is not None else end
    if failed and (started is None or failed[0] < first_run):
        first_run = failed[0]
    if scheduled is None or scheduled > first_run:  # pods of a later attempt, or none any more
        scheduled = created if started is not None else end
    marks = [(QUEUED, created), *_start(scheduled, first_run, events)]
    if started is not None:
        marks.append((RUNNING, first_run))
        marks += _attempts(failed, pods, started, end)
    return _stretches(marks, end)


def _start(scheduled: float, first_run: float, events: Iterable[Object]) -> list[tuple[str, float]]:
    pulls = [(str(event.get("reason")), at) for event in events if (at := _event_time(event)) is not None]
    begin = _first(at for reason, at in pulls if reason == "Pulling" and scheduled - 1 <= at <= first_run)
    done = _last(at for reason, at in pulls if reason == "Pulled" and scheduled - 1 <= at <= first_run + 1)
    if begin is None or done is None or done <= begin:
        return [(STARTING, scheduled)]
    return [(STARTING, scheduled), (PULLING, max(scheduled, begin)), (STARTING, done)]


def _attempts(failed: Sequence[float], pods: Sequence[Object], started: float, end: float) -> list[tuple[str, float]]:
    """From each failure until its pods run again; when earlier attempts ran again is not kept."""
    marks: list[tuple[str, float]] = []
    later = [at for at in failed if started <= at < end - 1]
    if not later:
        return marks
    running = _last(_running_since(pod) for pod in pods)
    marks.append((RESTARTING, later[-1]))
    if running is not None and running > later[-1]:
        marks.append((RUNNING, running))
    return marks


def _stretches(marks: Sequence[tuple[str, float]], end: float) -> list[Stretch]:
    ends = [at for _, at in marks[1:]] + [end]
    made = [Stretch(kind, begin, max(begin, until)) for (kind, begin), until in zip(marks, ends, strict=True)]
    return [one for one in made if one.seconds > 0]


def _condition_time(pod: Object, kind: str) -> float | None:
    found = condition_of(pod, kind) or {}
    return moment_of(found.get("lastTransitionTime")) if found.get("status") == "True" else None


def _running_since(pod: Object) -> float | None:
    states = [entry.get("state") or {} for entry in (pod.get("status") or {}).get("containerStatuses") or ()]
    parts = [state.get("running") or state.get("terminated") or {} for state in states]
    return _last(moment_of(part.get("startedAt")) for part in parts)


def _event_time(event: Object) -> float | None:
    for field in ("eventTime", "firstTimestamp", "lastTimestamp"):
        if event.get(field) and (at := moment_of(event[field])) is not None:
            return at
    return None


def _first(moments: Iterable[float | None]) -> float | None:
    return min((at for at in moments if at is not None), default=None)


def _last(moments: Iterable[float | None]) -> float | None:
    return max((at for at in moments if at is not None), default=None)
