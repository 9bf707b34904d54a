"""Which states of a pod are worth an Event: troubles and stand-ins, in the words of `kubectl describe pod`. Pure.

The steps on the way to running have theirs in `container_events`.
"""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.api import mounts
from paddlecloud.api.paddlejob.ending import ENDED_REASON
from paddlecloud.local.kubelet.pod.lifecycle import Plan
from paddlecloud.local.kubelet.pod.pod_state import Observed


class Notice(NamedTuple):
    reason: str
    message: str
    type: str = "Warning"


_WAITING = {
    "ErrImagePull": "Failed",
    "ImagePullBackOff": "BackOff",
    "ErrImageNeverPull": "ErrImageNeverPull",
    "CreateContainerConfigError": "Failed",
    "CrashLoopBackOff": "BackOff",
    "ContainerCreating": "FailedMount",  # with a message it is a volume that does not come
}

_ENDED = {"OOMKilled": "OOMKilling", "StartError": "Failed", "ContainerStatusUnknown": "ContainerLost"}


def notices(plan: Plan, observed: Observed) -> list[Notice]:
    """All that holds at the moment; the caller writes those that are new."""
    found = []
    for name, waiting in plan.waiting.items():
        reason = _WAITING.get(waiting.reason)
        if reason and waiting.message and not waiting.expected:
            is_mount = mounts.has_failed(waiting._asdict())  # of the pod: Kubernetes names no container there
            found.append(Notice(reason, waiting.message if is_mount else f"container {name}: {waiting.message}"))
    for name, run in observed.runs.items():
        if run.ended and run.reason in _ENDED:
            found.append(Notice(_ENDED[run.reason], f"container {name} (run {run.attempt}): {run.message}"))
    for name, message in observed.unhealthy.items():
        reason = "FailedPostStartHook" if message.startswith("PostStartHook") else "Unhealthy"
        found.append(Notice(reason, f"container {name}: {message}"))
    for name, sentence in observed.stand_ins.items():
        found.append(Notice("StandInImage", f"container {name}: {sentence}", type="Normal"))
    if observed.degraded:
        text = f"no mount namespaces ({observed.degraded}): the pod shares files and names with the machine"
        found.append(Notice("SandboxDegraded", text))
    if observed.unlimited:
        text = f"no cgroup for the pod ({observed.unlimited}): its memory is watched, its CPU limits are not enforced"
        found.append(Notice("LimitsDegraded", text))
    if plan.outcome is not None and plan.outcome.reason:
        type = "Normal" if plan.outcome.reason == ENDED_REASON else "Warning"
        found.append(Notice(plan.outcome.reason, plan.outcome.message, type=type))
    return found
