"""The pods of a Job, sorted by what they mean for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.pods import is_leaving, phase_of
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.indexes import LABEL
from paddlecloud.local.workloads.pods import is_active


@dataclass(frozen=True, slots=True)
class Members:
    """Every pod is in exactly one of the lists.

    `leaving` are asked to go and still there. Their exit codes say nothing about the work: a program may exit with any
    code after SIGTERM, and a suspended Job must neither fail nor complete by that.
    """

    active: tuple[Object, ...]
    leaving: tuple[Object, ...]
    succeeded: tuple[Object, ...]
    failed: tuple[Object, ...]


def members_of(pods: Iterable[Object]) -> Members:
    pods = sorted(pods, key=lambda pod: (pod["metadata"].get("creationTimestamp", ""), pod["metadata"]["name"]))
    return Members(
        active=tuple(pod for pod in pods if is_active(pod)),
        leaving=tuple(pod for pod in pods if is_leaving(pod)),
        succeeded=tuple(pod for pod in pods if phase_of(pod) == "Succeeded" and not is_leaving(pod)),
        failed=tuple(pod for pod in pods if phase_of(pod) == "Failed" and not is_leaving(pod)),
    )


def index_of(pod: Object) -> int | None:
    meta = pod["metadata"]
    text = (meta.get("labels") or {}).get(LABEL) or (meta.get("annotations") or {}).get(LABEL, "")
    return int(text) if text.isdecimal() else None


def restarts_of(pod: Object) -> int:
    status = pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return sum(int(container.get("restartCount") or 0) for container in statuses)


def finished_at(pod: Object) -> float:
    """When its last container ended; for a pod that never ran, when it turned unready or was made."""
    status = pod.get("status") or {}
    ends = [
        end
        for container in status.get("containerStatuses") or ()
        if (end := ((container.get("state") or {}).get("terminated") or {}).get("finishedAt"))
    ]
    turns = [c["lastTransitionTime"] for c in status.get("conditions") or () if c.get("lastTransitionTime")]
    return max(map(parse_rfc3339, ends or turns or [pod["metadata"]["creationTimestamp"]]))
