"""What another number of workers does to a job that runs: all its pods restart, since every rank knows the number of
the others; and what a pinned number means for a service. Pure; behind `scale` and `apply`.

An elastic job is made for that: nothing is said of it.
"""

from __future__ import annotations

from paddlecloud.api.names import ROLES
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.outcome import ending

SHOWN = 4
"""Pods that are named; the others are counted."""


def restart_note(job: Object) -> str:
    """Which pods restart, and from which checkpoint; empty for jobs that are elastic or have no pods that run."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    if spec.get("elastic") or spec.get("elasticPolicy") or ending(job) is not None:
        return ""
    running = status.get("phase") == "Running" or bool(status.get("startTime") and status.get("phase") != "Suspended")
    return f"it is not elastic: {_pods(status)} restart; {_beginning(status)}" if running else ""


def _pods(status: Object) -> str:
    refs = [ref for role in ROLES for ref in (status.get(role) or {}).get("refs") or ()]
    names = [str(ref["name"]) for ref in refs if ref.get("name")]
    if not names:
        return "all its pods"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"all its pods ({', '.join(names[:SHOWN])}{more})"


def _beginning(status: Object) -> str:
    found = status.get("checkpoint") or {}
    if not found:
        return "they report no checkpoint, so training begins anew unless the program loads one"
    step = f", step {found['step']}" if found.get("step") is not None else ""
    return f"training goes on from the last checkpoint reported ({found.get('path') or 'without a path'}{step})"


def scale_note(name: str, replicas: int) -> str:
    """What a number of replicas means for a PaddleService, and the way back."""
    if not replicas:
        return "its number of pods follows its requests, within minScale and maxScale"
    pods = "1 pod" if replicas == 1 else f"{replicas} pods"
    return f"pinned to {pods}, whatever its requests; back to the autoscaler: pdc scale pds/{name} --replicas 0"
