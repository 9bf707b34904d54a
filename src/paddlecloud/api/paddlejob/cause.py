"""Why a PaddleJob that should run does not: the one sentence of its status and of every command that explains it.

Read from its pods. Of several causes that of the highest rank is given: what a user must correct comes before what may
pass by itself, and pods that only wait for the others of their job are no cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from paddlecloud.api import mounts
from paddlecloud.api.conditions import condition_of
from paddlecloud.api.outputs import first_and_last
from paddlecloud.api.paddlejob import gate

Pod = Mapping[str, Any]

ON_THE_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of waiting containers that start without a correction."""

_NUMBERED = re.compile(r"(.*?)(\d*)$")


class Cause(NamedTuple):
    pod: str
    reason: str
    """A word a program can match, such as Unschedulable or ImagePullBackOff."""
    text: str
    """A sentence that names the pod."""


def first_cause(pods: Iterable[Pod], job: str) -> Cause | None:
    """The cause of the highest rank, in the first pod that has it."""
    present = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    ordered = sorted(present, key=_by_number)
    for rank in (_container_trouble, _no_node, _no_volume):
        for pod in ordered:
            if (found := rank(pod, job)) is not None:
                return found
    return None


def _by_number(pod: Pod) -> tuple[str, int]:
    """worker-2 before worker-10."""
    found = _NUMBERED.fullmatch(str(pod["metadata"]["name"]))
    return (found[1], int(found[2] or 0)) if found else ("", 0)


def _container_trouble(pod: Pod, job: str) -> Cause | None:
    name = str(pod["metadata"]["name"])
    reason, message = waiting_reason(pod)
    if mounts.has_failed({"reason": reason, "message": message}):
        reason = mounts.REASON
    if reason in ON_THE_WAY or gate.awaited(reason, message, job):
        return None
    return Cause(name, reason, f"{name}: {reason}" + (f": {first_and_last(message)}" if message else ""))


def _no_node(pod: Pod, job: str) -> Cause | None:
    name = str(pod["metadata"]["name"])
    reason, message = unschedulable(pod)
    return Cause(name, reason, f"{name} is not scheduled: {message or reason}") if reason else None


def _no_volume(pod: Pod, job: str) -> Cause | None:
    """The embedded platform reports the volume that a container waits for; Kubernetes only in Events."""
    name = str(pod["metadata"]["name"])
    reason, message = waiting_reason(pod)
    if not message or gate.awaited(reason, message, job):
        return None
    return Cause(name, reason, f"{name}: {reason}: {first_and_last(message)}")


def waiting_reason(pod: Pod) -> tuple[str, str]:
    """Why a container does not run: (reason, message) of the first one that waits, or empty strings."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in (pod.get("status") or {}).get(kind) or ():
            waiting = (container.get("state") or {}).get("waiting")
            if waiting and waiting.get("reason"):
                return str(waiting["reason"]), str(waiting.get("message") or "")
    return "", ""


def unschedulable(pod: Pod) -> tuple[str, str]:
    """What the scheduler says about a pod that has no node yet: (reason, message), or empty strings."""
    status = pod.get("status") or {}
    if status.get("podIP"):
        return "", ""
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is None or scheduled.get("status") != "False":
        return "", ""
    return str(scheduled.get("reason") or "Unschedulable"), str(scheduled.get("message") or "")
