"""Containers that cannot start: an image that cannot be pulled, a ConfigMap, Secret or volume that is not there.

Kubernetes tries again for ever, and meanwhile the gang holds resources that other jobs wait for. A job that has not
come to run therefore fails after a time that depends on the cause. Since when it lasts is kept in the condition
`Startable`, so that a controller that takes over goes on counting.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from paddlecloud.api import mounts
from paddlecloud.api.fields import Condition
from paddlecloud.api.paddlejob import PaddleJobStatus
from paddlecloud.api.paddlejob.cause import waiting_reason
from paddlecloud.api.paddlejob.gate import awaited
from paddlecloud.controllers.paddlejob import status
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.failure.cause import Failure
from paddlecloud.controllers.paddlejob.observe import PodView
from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Plan

CONDITION = "Startable"

NOT_FOUND, PULL_FAILED, CONFIG = "ImageNotFound", "ImagePullFailed", "ConfigNotFound"
NO_FOLDER, MOUNT_FAILED = "FolderNotFound", "MountFailed"

PATIENCE = {NOT_FOUND: 60.0, PULL_FAILED: 600.0, CONFIG: 600.0, NO_FOLDER: 60.0, MOUNT_FAILED: 600.0}
"""Seconds by cause. A registry or file server that is away comes back; an image or folder that it does not have rarely
appears."""

_CLASSES = {NOT_FOUND: "Image", PULL_FAILED: "Image", CONFIG: "Config", NO_FOLDER: "Mount", MOUNT_FAILED: "Mount"}

_NO_FOLDER = re.compile(r'hostPath type check failed|path "[^"]*" does not exist')
"""How kubelets report a folder that their node does not have: of a hostPath volume, of a local one."""
_NO_OBJECT = re.compile(r'" : (?:(?:secret|configmap) "[^"]*" not found|references non-existent )')
"""And a Secret, ConfigMap or key of which a volume is made."""

_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff"})

_ABSENT = re.compile(
    r"not found|no recipe|manifest unknown|does not exist|denied|unauthorized|authentication required",
    re.IGNORECASE,
)
"""How registries, and the embedded platform, report an image that is not there or may not be pulled."""

_BARE = re.compile(r'Back-off pulling image "[^"]*"')
"""What older kubelets report between two attempts: without the cause, which they reported before."""


class Trouble(NamedTuple):
    reason: str
    pod: PodView
    text: str


def find(case: JobCase) -> Trouble | None:
    """The first pod with a container that cannot start, while the job has not come to run."""
    if case.phase not in status.FORMING:
        return None
    for pod in sorted(case.current.values(), key=lambda pod: (pod.role, pod.index)):
        reason, message = waiting_reason(pod.raw)
        if reason in _PULLING:
            return _image_trouble(case, pod, message)
        if mounts.has_failed({"reason": reason, "message": message}):
            return _mount_trouble(case, pod, message)
        if reason == "CreateContainerConfigError" and not awaited(reason, message, case.settings.name):
            return Trouble(CONFIG, pod, message)
    return None


def _mount_trouble(case: JobCase, pod: PodView, message: str) -> Trouble:
    """A folder that was there before may be on a disk that is away for a moment: then a restart is worth the wait."""
    if _NO_OBJECT.search(message):
        return Trouble(CONFIG, pod, message)
    absent = _NO_FOLDER.search(message) and case.old.start_time is None
    return Trouble(NO_FOLDER if absent else MOUNT_FAILED, pod, message)


def _image_trouble(case: JobCase, pod: PodView, message: str) -> Trouble:
    """An image that ran before was there before: then the registry is at fault, and a restart is worth the wait."""
    if _BARE.fullmatch(message) and (before := _reported(case)) is not None:
        return Trouble(before.reason or PULL_FAILED, pod, before.message or message)
    absent = _ABSENT.search(message) and case.old.start_time is None
    return Trouble(NOT_FOUND if absent else PULL_FAILED, pod, message)


def _reported(case: JobCase) -> Condition | None:
    before = status.condition(case.old, CONDITION)
    return before if before is not None and before.status == "False" else None


def noted(case: JobCase, plan: Plan, new: PaddleJobStatus) -> PaddleJobStatus:
    """The status with the condition; the job is looked at again when the time is over."""
    trouble = find(case)
    if trouble is None:
        if _reported(case) is None:
            return new
        return status.with_condition(new, CONDITION, "True", reason="Started", now=case.now)
    if (before := _reported(case)) is not None and before.reason != trouble.reason:  # another cause has its own time
        new = msgspec.structs.replace(new, conditions=[c for c in new.conditions or () if c.type != CONDITION])
    plan.requeue_after(_due(case, trouble) - case.now)
    return status.with_condition(new, CONDITION, "False", reason=trouble.reason, message=trouble.text, now=case.now)


def failure(case: JobCase) -> Failure | None:
    """What the job fails with, once it waited long enough."""
    trouble = find(case)
    if trouble is None or case.now < _due(case, trouble):
        return None
    pod = trouble.pod
    return Failure(pod.name, pod.role, pod.node, _CLASSES[trouble.reason], trouble.reason, None, trouble.text, "")


def _due(case: JobCase, trouble: Trouble) -> float:
    before, since = _reported(case), case.now
    if before is not None and before.reason == trouble.reason and before.last_transition_time:
        since = parse_rfc3339(before.last_transition_time)
    return since + PATIENCE[trouble.reason]
