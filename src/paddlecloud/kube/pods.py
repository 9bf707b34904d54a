"""The few questions that everybody asks of a pod."""

from __future__ import annotations

from paddlecloud.kube.resource import Object

ENDED = frozenset(("Succeeded", "Failed"))
"""Phases that no pod leaves again."""

NODE_SHUTDOWN = "Terminated"
"""Reason of a pod that failed because its node was shut down on purpose (Kubernetes: pkg/kubelet/nodeshutdown)."""

CONTAINER_UNKNOWN = "ContainerStatusUnknown"
"""Reason of a container that had not run when its pod ended (Kubernetes: pkg/kubelet/status); its exit code, 137, is
nobody's."""


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    return phase_of(pod) in ENDED


def is_leaving(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
