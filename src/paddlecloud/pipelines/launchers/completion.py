"""Whether an object is done or failed, so that its step goes on or ends: pure functions of the object.

Conditions are found by their type, never by their place in the list: Kubernetes adds new ones (a Job has
SuccessCriteriaMet before Complete), and no order is promised. A status of an earlier generation says nothing about the
object as it is now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from paddlecloud.kube.conditions import condition_of, has_condition
from paddlecloud.kube.resource import Object


class Completion(NamedTuple):
    """An object is done, or it failed (`done` is false), and why."""

    done: bool
    message: str = ""


CompletionCheck = Callable[[Object], Completion | None]
"""None while the object is neither done nor failed."""


def by_phase(
    done: Collection[str], failed: Collection[str], *, counts: Callable[[Object], bool] | None = None
) -> CompletionCheck:
    """`counts`: whether a status is about the object as it is now, if its kind has a rule of its own for that."""

    def check(obj: Object) -> Completion | None:
        status = obj.get("status") or {}
        phase = status.get("phase")
        if not (counts or is_current)(obj) or (phase not in done and phase not in failed):
            return None
        return Completion(phase in done, str(status.get("message") or phase))

    return check


def job(obj: Object) -> Completion | None:
    """Of batch/v1."""
    if has_condition(obj, "Failed"):
        failed = condition_of(obj, "Failed") or {}
        return Completion(False, str(failed.get("message") or failed.get("reason") or "Failed"))
    return Completion(True) if has_condition(obj, "Complete") else None


def deployment(obj: Object) -> Completion | None:
    """As `kubectl rollout status`: all pods are of the newest template and available."""
    if not is_current(obj):
        return None
    late = condition_of(obj, "Progressing") or {}
    if late.get("status") == "False" and late.get("reason") == "ProgressDeadlineExceeded":
        return Completion(False, str(late.get("message") or "its pods did not become available in time"))
    status, wanted = obj.get("status") or {}, int((obj.get("spec") or {}).get("replicas", 1))
    updated, available = int(status.get("updatedReplicas") or 0), int(status.get("availableReplicas") or 0)
    total = int(status.get("replicas") or 0)
    return Completion(True) if updated >= wanted and available >= wanted and total == updated else None


def paddle_service(obj: Object) -> Completion | None:
    if not is_current(obj) or not has_condition(obj, "Ready"):
        return None
    return Completion(True, str((obj.get("status") or {}).get("url") or ""))


def is_current(obj: Object) -> bool:
    """Whether the status is about the present generation; true for a kind that has no `observedGeneration`."""
    observed = (obj.get("status") or {}).get("observedGeneration")
    return observed is None or int(observed) >= int(obj["metadata"].get("generation") or 0)


def _is_refused_no_more(job: Object) -> bool:
    """A PaddleJob that has ended does not begin again for another spec, and its controller observes none; except one
    whose spec was refused."""
    return is_current(job) or (job.get("status") or {}).get("reason") != "InvalidSpec"


SAMPLESET = by_phase(done=("Ready",), failed=("SyncFailed",))
"""PartialReady is on the way to Ready: the original's launcher failed there."""
SAMPLEJOB = by_phase(done=("Succeeded",), failed=("Failed",))
PADDLEJOB = by_phase(done=("Succeed", "Completed"), failed=("Failed", "Terminated"), counts=_is_refused_no_more)


def progress(obj: Object) -> str:
    """One line about where an object is, for the step's log; empty before it says anything."""
    status = obj.get("status") or {}
    said = [str(status[name]) for name in ("phase", "message") if status.get(name)]
    if not said:
        ready = {} if has_condition(obj, "Ready") else condition_of(obj, "Ready") or {}
        said = [str(ready[name]) for name in ("reason", "message") if ready.get(name)]
    return ": ".join(dict.fromkeys(said))
