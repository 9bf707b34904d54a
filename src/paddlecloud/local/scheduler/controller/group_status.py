"""The status of PodGroups and Queues, from their members. Pure; phases, conditions and counts are Volcano's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.pods import ENDED
from paddlecloud.kube.quantity import written
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.filters import shown
from paddlecloud.local.scheduler.state.shape import Resources
from paddlecloud.local.scheduler.state.snapshot import COSCHEDULING, Gang

QUEUE_REASONS = {
    "NoQueue": "create it, or name another",
    "QueueClosed": "open it, or name another",
    "QueueTooSmall": "raise its capability, or ask for less",
}
"""Why a queue never lets a group in, and what to do. What else keeps one out is a lack of something on the nodes."""

REASONS = {"GangIncomplete": "NotEnoughPods"}
"""Volcano's words for why a group waits, by ours; everything else is a lack of resources."""


def phase_of(
    gang: Gang, members: Mapping[str, int], *, waiting: int, now: str, shortage: Mapping[str, str] | None = None
) -> str:
    """Where the group stands. `members` counts its pods by phase; `now` is its own phase, `shortage` what it lacks."""
    if gang.placed >= gang.min_member:
        return "Running"
    over = sum(count for phase, count in members.items() if phase in ENDED)
    if over >= gang.min_member and over == sum(members.values()):
        return "Completed"
    if gang.placed and waiting:
        return "Unknown"
    if now == "Inqueue" or waiting or members:
        return "Inqueue"
    return "Pending" if shortage else "Inqueue"


def status_of(
    gang: Gang,
    members: Mapping[str, int],
    *,
    old: Object,
    waiting: int,
    why: str,
    code: str,
    shortage: Mapping[str, str],
    now: float,
) -> Object:
    """The whole status, of pods counted by phase. What did not change keeps its time, so that equal means unchanged."""
    phase = phase_of(gang, members, waiting=waiting, now=str(old.get("phase") or ""), shortage=shortage)
    status: Object = {"phase": phase}
    for field, name in (("running", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed")):
        if count := members.get(name):
            status[field] = count
    condition = _condition(phase, why, code, shortage)
    if condition is not None:
        status["conditions"] = [_timed(condition, old.get("conditions") or (), now)]
    elif old.get("conditions"):
        status["conditions"] = list(old["conditions"])
    if gang.key.api == COSCHEDULING:
        return _coscheduling(status, gang)
    return status


def _condition(phase: str, why: str, code: str, shortage: Mapping[str, str]) -> Object | None:
    if phase == "Running":
        return {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled"}
    if phase == "Pending" and shortage:
        text = "; ".join(shortage.values())
        reason = next((name for name in shortage if name in QUEUE_REASONS), "NotEnoughResources")
        if advice := QUEUE_REASONS.get(reason):
            text = f"{text}: {advice}"
        return {"type": "Unschedulable", "status": "True", "reason": reason, "message": text}
    if why and phase in ("Inqueue", "Unknown"):
        reason = REASONS.get(code, "NotEnoughResources")
        return {"type": "Unschedulable", "status": "True", "reason": reason, "message": why}
    return None


def _timed(condition: Object, old: Iterable[Object], now: float) -> Object:
    """As Volcano dates conditions of PodGroups: anew with every change of the text, not only of the status."""
    for known in old:
        if {**known, "lastTransitionTime": None} == {**condition, "lastTransitionTime": None}:
            return known
    return {**condition, "lastTransitionTime": rfc3339(now)}


_COSCHEDULING_PHASES = {"Inqueue": "Scheduling", "Completed": "Finished"}


def _coscheduling(status: Object, gang: Gang) -> Object:
    """The form of the coscheduling plugin's kind, which has no conditions."""
    counts: Object = {name: status[name] for name in ("running", "succeeded", "failed") if name in status}
    phase = _COSCHEDULING_PHASES.get(status["phase"], status["phase"])
    return {"phase": phase, **counts, **({"scheduled": gang.placed} if gang.placed else {})}


def shortage_of(gang: Gang, free: Resources, have: Resources) -> dict[str, str]:
    """What the group's least resources lack of those that are `free` to it, by resource, as text."""
    return {
        name: f"{name}: needs {shown(name, amount)} in all, {shown(name, max(0, free.get(name, 0)))} free of "
        f"{shown(name, have.get(name, 0))}"
        for name, amount in sorted(gang.min_resources.items())
        if amount > free.get(name, 0)
    }


def queue_status(phases: Iterable[str], allocated: Resources, *, old: Object) -> Object:
    counts = Counter(phase.lower() for phase in phases)
    status: Object = {"state": old.get("state") or "Open"}
    for name in ("pending", "inqueue", "running", "unknown", "completed"):
        status[name] = counts[name]
    status["allocated"] = written({name: amount for name, amount in allocated.items() if amount > 0})
    return status
