"""The planned end of a pod: a job that is over ends what still runs, parameter servers for one.

The controller sets the pod's deadline for that, because it may be set on a running pod and keeps object and logs. No
user set that deadline: reports of the end take the reason from the annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ENDED_ANNOTATION = "paddlepaddle.org/ended"
"""Of pods that their controller ended on purpose: why. Their exit code is that of the signal."""

ENDED_REASON = "Ended"
"""Of such a pod, its containers and its event on the embedded platform; Kubernetes' kubelets say DeadlineExceeded."""


def planned_end(pod: Mapping[str, Any]) -> str:
    """Why the controller ended the pod; empty for every other."""
    return str((pod["metadata"].get("annotations") or {}).get(ENDED_ANNOTATION) or "")
