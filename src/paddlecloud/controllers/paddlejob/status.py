"""The status of a PaddleJob as a function of what its pods do.

Counters, phases and conditions are computed afresh in every pass; what must be remembered (restarts, generation, times,
failures) is carried over. A status is written only when something changed, and changes of mere counts are grouped
(`hold_back`), so that a job of any size costs few writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from paddlecloud.api.fields import Condition, ObjectReference
from paddlecloud.api.names import ROLES
from paddlecloud.api.paddlejob import JobSettings, PaddleJobStatus, RoleSettings, RoleStatus, encode
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.observe import PodView, State, started_at
from paddlecloud.kube import conditions
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object

FINISHED = frozenset({"Completed", "Failed"})
FORMING = frozenset({"", "Pending", "Starting", "Restarting", "Scaling"})
STATES: tuple[State, ...] = ("pending", "starting", "running", "failed", "succeeded", "unknown")
FAILURES_KEPT = 5


def count(settings: JobSettings, role: RoleSettings, pods: Iterable[PodView], *, failed: bool = False) -> RoleStatus:
    """Counters of one role. A pod that is about to be created counts as pending: it is wanted and not there.

    In a job that has `failed` none is created, and those that still run are ended: only how pods ended is counted.
    """
    mine = sorted((pod for pod in pods if pod.role == role.name), key=lambda pod: pod.index)
    tally: dict[str, int] = dict.fromkeys(STATES, 0)
    for pod in mine:
        tally[pod.state] += 1 if pod.ended or not failed else 0
    tally["pending"] += 0 if failed else max(0, role.replicas - len(mine))
    return RoleStatus(
        **{state: number for state, number in tally.items() if number},
        ready=f"{tally['running']}/{role.replicas}",
        refs=[
            ObjectReference(api_version="v1", kind="Pod", namespace=settings.namespace, name=pod.name, uid=pod.uid)
            for pod in mine
        ]
        or None,
        selector=names.selector(settings.name, role.name),
    )


def with_counts(
    status: PaddleJobStatus, settings: JobSettings, pods: Sequence[PodView], *, failed: bool = False
) -> PaddleJobStatus:
    counted = {role.name: count(settings, role, pods, failed=failed) for role in settings.roles}
    # An elastic job of one worker at the moment is not another kind of job.
    mode = "Collective" if settings.elastic is not None and settings.mode == "Single" else settings.mode
    return msgspec.structs.replace(
        status, ps=counted.get("ps"), worker=counted.get("worker"), heter=counted.get("heter"), mode=mode
    )


def elastic_state(settings: JobSettings, old: str | None, phase: str) -> str | None:
    """The original operator's word for a change of an elastic job: one is under way, or how the last one ended."""
    if settings.elastic is None:
        return None
    if phase == "Scaling":
        return "DOING"
    if old == "DOING":
        return {"Running": "DONE", "Completed": "DONE", "Failed": "ERROR"}.get(phase, old)
    return old or "NONE"


def with_start(status: PaddleJobStatus, pods: Sequence[PodView]) -> PaddleJobStatus:
    """The start of a job that ended before anybody saw it run: when its first program began, if any did."""
    began = min((moment for pod in pods if (moment := started_at(pod))), default=None)
    return status if status.start_time or began is None else msgspec.structs.replace(status, start_time=began)


def phase_while_forming(settings: JobSettings, pods: Sequence[PodView], old: str, *, reforming: bool) -> str:
    """The phase of a job that has neither ended nor been suspended.

    Once all pods ran, the job is Running until something is decided about it: a worker that is done or a probe that
    fails for a moment does not make it Starting again.
    """
    if old == "Running":
        return "Running"
    busy = [pod for pod in pods if pod.state in ("running", "succeeded")]
    if len(busy) == settings.total:
        return "Running"
    if reforming:
        return old if old in ("Restarting", "Scaling") else "Restarting"
    waiting = settings.total - len(pods) + sum(1 for pod in pods if pod.state in ("pending", "unknown"))
    return "Pending" if waiting else "Starting"


_BY_PHASE: dict[str, dict[str, str]] = {
    "Pending": {"PodsReady": "False"},
    "Starting": {"PodsReady": "False"},
    "Running": {"PodsReady": "True", "Running": "True", "Restarting": "False"},
    "Restarting": {"PodsReady": "False", "Running": "False", "Restarting": "True"},
    "Scaling": {"PodsReady": "False", "Running": "False", "Restarting": "True"},
    "Completed": {"Running": "False", "Restarting": "False", "Succeeded": "True"},
    "Failed": {"Running": "False", "Restarting": "False", "Failed": "True"},
    "Suspended": {"PodsReady": "False", "Running": "False", "Restarting": "False", "Suspended": "True"},
    "Terminating": {"Running": "False"},
}
"""What each phase says about each condition. A condition that never held is not written as False, except PodsReady."""


def in_phase(
    status: PaddleJobStatus, phase: str, *, now: float, reason: str, message: str = "", generation: int | None = None
) -> PaddleJobStatus:
    """The status in a phase: phase, reason, message, and the conditions and times that go with it."""
    found = list(status.conditions or ())
    known = {condition.type for condition in found}
    wanted = dict(_BY_PHASE[phase])
    over = {"Suspended"} if phase != "Suspended" else set()
    over |= {"Succeeded", "Failed"} if phase not in (*FINISHED, "Terminating") else set()
    wanted.update(dict.fromkeys(over & known, "False"))
    for name, value in wanted.items():
        if value == "True" or name in known or name == "PodsReady":
            before = conditions.find(found, name)
            text = before.message if before is not None and before.status == value else None
            found = _with(found, name, value, reason=reason, message=text, now=now)
    if phase in FINISHED:
        ending = "Succeeded" if phase == "Completed" else "Failed"
        found = _with(found, ending, "True", reason=reason, message=message or None, now=now)
    started = status.start_time
    if phase == "Running" and started is None:
        started = rfc3339(now)
    elif phase == "Suspended":
        started = None
    completed = status.completion_time or rfc3339(now) if phase in FINISHED else None
    return msgspec.structs.replace(
        status,
        phase=phase,
        reason=reason or None,
        message=message or None,
        conditions=found,
        start_time=started,
        completion_time=completed,
        observed_generation=generation if generation is not None else status.observed_generation,
    )


def with_condition(
    status: PaddleJobStatus, name: str, value: str, *, reason: str, now: float, message: str = ""
) -> PaddleJobStatus:
    found = _with(status.conditions, name, value, reason=reason, message=message or None, now=now)
    if name == "Valid":  # first: a spec that is refused matters more than all that follows from an older one
        found.sort(key=lambda c: c.type != name)
    return msgspec.structs.replace(status, conditions=found)


def _with(
    known: Iterable[Condition] | None, name: str, value: str, *, reason: str, message: str | None, now: float
) -> list[Condition]:
    """What holds still holds for the reason it began to: another reason counts only with another value."""
    before = conditions.find(known, name)
    kept = before.reason if before is not None and before.status == value else reason or name
    return conditions.put(known, Condition(type=name, status=value, reason=kept, message=message), now)


def condition(status: PaddleJobStatus, name: str) -> Condition | None:
    return conditions.find(status.conditions, name)


# Writing it: at once, later, or not at all

_DRIFT = frozenset({*STATES, "ready", "refs"})
_QUIET_PHASES = frozenset({"Pending", "Starting"})
_NEWS = ("progress", "checkpoint", "cache")
_REPORTED = frozenset({*_NEWS, "heartbeatTime", "lastReconcileTime"})
SOON, LATER, MUCH_LATER = 1.0, 10.0, 60.0


def essence(status: Object) -> Object:
    """The status without what may lag behind: counts, what pods report, what is awaited, the time of writing."""
    kept: dict[str, Any] = {k: v for k, v in status.items() if k != "message" and k not in _REPORTED}
    for role in ROLES:
        if isinstance(kept.get(role), dict):
            kept[role] = {k: v for k, v in kept[role].items() if k not in _DRIFT}
    if kept.get("phase") in _QUIET_PHASES:
        kept["phase"] = kept["reason"] = "Pending"
    return kept


def hold_back(old: Object, new: Object, *, written: float, drifts: int, workers: int, now: float) -> float:
    """For how long a status should wait before it is written; 0 for at once.

    What programs act on goes out at once. Counts wait: `drifts` such writes have been made since the last essential
    one. The first few come a second apart (more of them for more workers), then ten, then sixty. This is what keeps a
    job's life within 2N+8 writes. What pods report goes out ten seconds after the last write, which was at `written`;
    the first progress of a run after one, and the first checkpoint at once: people decide by whether there is one.
    """
    if essence(old) != essence(new) or (new.get("checkpoint") and not old.get("checkpoint")):
        return 0.0
    quick = 1 + workers // 8
    interval = MUCH_LATER
    if drifted(old, new):
        interval = SOON if drifts < quick else LATER if drifts == quick else MUCH_LATER
    if any(old.get(name) != new.get(name) for name in _NEWS):
        interval = min(interval, LATER if old.get("progress") else SOON)
    return max(0.0, written + interval - now)


def drifted(old: Object, new: Object) -> bool:
    """Whether counts or the sentence about what is awaited changed, though nothing essential did."""
    ours, theirs = ({k: v for k, v in status.items() if k not in _REPORTED} for status in (old, new))
    return essence(old) == essence(new) and ours != theirs


def finish(status: PaddleJobStatus, old: Object, *, now: float) -> Object | None:
    """The status as it goes out, or None when nothing but the time would change."""
    new = encode(msgspec.structs.replace(status, last_reconcile_time=None))
    before = {name: value for name, value in old.items() if name != "lastReconcileTime"}
    if new == before:
        return None
    return {**new, "lastReconcileTime": rfc3339(now)}
