"""Why nothing but exit handlers begins any more, and the messages that say so: as Argo writes them. Pure.

Argo's texts differ by what they are about: `applyExecutionControl` (exec_control.go) has those of pods,
`createWorkflowPod` (workflowpod.go) those of steps without one, operator.go those of retries, suspended nodes and the
workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.local.workflow.nodes import Node


@dataclass(frozen=True)
class Stop:
    """`workflow` is empty where the message of the entrypoint's node is that of the workflow."""

    workflow: str
    pod: str
    not_begun: str
    suspended: str
    retry: str

    def of_node(self, node: Node) -> str:
        """Of one with a pod. What Argo's agent does for `http` has no pod there."""
        return self.suspended if node["type"] == "HTTP" else self.pod


def shutdown(strategy: str) -> Stop:
    stopped = f"Stopped with strategy '{strategy}'"
    return Stop(
        workflow=stopped,
        pod=f"workflow shutdown with strategy:  {strategy}",
        not_begun=f"workflow shutdown with strategy: {strategy}",
        suspended=stopped,
        retry=stopped,
    )


def deadline_exceeded(deadline: float) -> Stop:
    exceeded = "Step exceeded its deadline"
    moment = rfc3339(deadline).replace("T", " ").replace("Z", " +0000 UTC")  # as Go prints a time
    retry = f"retry exceeded workflow deadline {moment}"
    return Stop(workflow="", pod=exceeded, not_begun=exceeded, suspended=exceeded, retry=retry)


def deadline_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> float | None:
    lasts, began = spec.get("activeDeadlineSeconds"), status.get("startedAt")
    return None if lasts is None or not began else parse_rfc3339(began) + float(lasts)
