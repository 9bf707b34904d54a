"""Whether a changed PaddleJob runs with the change: one that has finished does not run again by itself, and pods that
were made keep the template they were made of. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.api.names import RETRY_AT, ROLES
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.serverside import Applied
from paddlecloud.kube.resource import PADDLEJOBS, Object

AFTER_THE_END = ("cleanPodPolicy", "ttlSecondsAfterFinished")
"""Fields that are heeded when a job has finished."""


def unused_change(applied: Applied) -> str:
    """Why the pods do not run with the spec that was applied, and the command that makes them; empty if they do."""
    before, after = applied.before, applied.after
    if before is None or applied.place.resource.full_name != PADDLEJOBS.full_name:
        return ""
    name = applied.place.name
    if outcome.finished(before) is not None:
        changed = _what_runs(before) != _what_runs(after) or (applied.action == "unchanged" and _outdated(after))
        if changed and not _runs_again(after):
            return f"the job has finished; the change is used by the next run: pdc retry {name}"
        return ""
    runs = outcome.is_true(before, "Created") and not (after.get("spec") or {}).get("suspend")
    if runs and not is_resized(before, after) and _of_roles(before, "template") != _of_roles(after, "template"):
        return f"the running pods keep the old template until: pdc suspend {name} && pdc resume {name}"
    return ""


def is_resized(before: Object, after: Object) -> bool:
    """Whether the numbers of pods differ: then all of them are formed anew."""
    return _of_roles(before, "replicas") != _of_roles(after, "replicas")


def _what_runs(job: Object) -> dict[str, Any]:
    spec = {key: value for key, value in (job.get("spec") or {}).items() if key not in AFTER_THE_END}
    policy = {key: value for key, value in (spec.pop("runPolicy", None) or {}).items() if key not in AFTER_THE_END}
    return {**spec, "runPolicy": policy}


def _outdated(job: Object) -> bool:
    """The run that ended was of an older spec."""
    observed = (job.get("status") or {}).get("observedGeneration")
    return observed is not None and int(observed) < int(job["metadata"].get("generation") or 0)


def _runs_again(job: Object) -> bool:
    """Whether the controller starts it again by itself: after InvalidSpec, or because of the annotation `retry-at`."""
    status = job.get("status") or {}
    asked = (job["metadata"].get("annotations") or {}).get(RETRY_AT)
    return status.get("reason") == "InvalidSpec" or bool(asked and asked != status.get("retriedAt"))


def _of_roles(job: Object, field: str) -> list[Any]:
    spec = job.get("spec") or {}
    return [(spec.get(role) or {}).get(field) for role in ROLES]
