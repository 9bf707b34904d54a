"""What is deleted once it is over: pods by `podGC`, artifacts by `artifactGC`, the workflow by `ttlStrategy`. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.plan import Patch, Plan, merge_diff
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.workflow.artifacts.locations import due
from paddlecloud.local.workflow.decision.deletion import delete
from paddlecloud.local.workflow.durations import seconds
from paddlecloud.local.workflow.names import WORKFLOWS
from paddlecloud.local.workflow.nodes import ENDED_PHASES, SUCCEEDED, Node, has_ended


def delete_pods(
    plan: Plan, spec: Mapping[str, Any], phase: str, nodes: Mapping[str, Node], pods: Mapping[str, Object], now: float
) -> None:
    """`nodes` are as they were stored before this pass: what a pod gave is then safe."""
    rule: Mapping[str, Any] = spec.get("podGC") or {}
    strategy = rule.get("strategy")
    if not strategy:
        return
    delay = seconds(rule["deleteDelayDuration"]) if rule.get("deleteDelayDuration") else 0.0
    chosen = LabelSelector.from_dict(rule["labelSelector"]) if rule.get("labelSelector") else None
    for identity, pod in pods.items():
        node = nodes.get(identity)
        if node is None or not has_ended(node) or not _is_due(strategy, node, phase):
            continue
        if chosen is not None and not chosen.matches(pod["metadata"].get("labels") or {}):
            continue
        left = parse_rfc3339(node["finishedAt"]) + delay - now
        if left > 0:
            plan.requeue_after(left)
        else:
            delete(plan, PODS, pod)


def _is_due(strategy: str, node: Node, phase: str) -> bool:
    if strategy == "OnPodCompletion":
        return True
    if strategy == "OnPodSuccess":
        return bool(node["phase"] == SUCCEEDED)
    return phase == SUCCEEDED if strategy == "OnWorkflowSuccess" else phase in ENDED_PHASES


def delete_workflow(plan: Plan, workflow: Object, spec: Mapping[str, Any], now: float) -> None:
    rule: Mapping[str, Any] = spec.get("ttlStrategy") or {}
    status = workflow.get("status") or {}
    field = "secondsAfterSuccess" if status.get("phase") == SUCCEEDED else "secondsAfterFailure"
    lasts = rule.get(field, rule.get("secondsAfterCompletion"))
    if lasts is None or not status.get("finishedAt"):
        return
    left = parse_rfc3339(status["finishedAt"]) + float(lasts) - now
    if left > 0:
        plan.requeue_after(left)
        return
    delete(plan, WORKFLOWS, workflow)


def mark_deleted_artifacts(plan: Plan, workflow: Object) -> None:
    """Those that were deleted before this pass (`artifactGC`), as Argo marks them."""
    marked = copy.deepcopy(workflow)
    found = [artifact for artifact, _ in due(marked)]
    if not found:
        return
    for artifact in found:
        artifact["deleted"] = True
    meta = workflow["metadata"]
    changes = merge_diff(workflow["status"], marked["status"])
    body = {"status": changes, "metadata": {"resourceVersion": meta["resourceVersion"]}}
    plan.patch.append(Patch(WORKFLOWS, meta["name"], meta["namespace"], body, seen=meta["resourceVersion"]))
