"""Before each decision outputs are collected and artifacts deleted: odd values there end the workflow, not the pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.artifacts.collector import Collector
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.controller import collected
from paddlecloud.local.workflow.decision.decide import decide
from paddlecloud.local.workflow.executor.orders import ORDERS
from paddlecloud.local.workflow.observed import Observed

SPEC: dict[str, Any] = {
    "entrypoint": "main",
    "artifactGC": {"strategy": "OnWorkflowCompletion"},
    "templates": [{"name": "main", "container": {"image": "busybox"}}],
}


def workflow(**status: Any) -> Object:
    meta = {
        "name": "wf",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
    return {**kind, "metadata": meta, "spec": SPEC, "status": status}


def forged_pod(orders: Any) -> Object:
    """Of a user, who wrote the workflow's ownerReference and the executor's orders."""
    env = [{"name": ORDERS, "value": json.dumps(orders)}]
    said = json.dumps({"artifacts": [{"name": "made"}]})
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0, "message": said}}}
    return {
        "metadata": {"name": "forged", "namespace": "ns", "uid": "p"},
        "spec": {"containers": [{"name": "main", "image": "busybox", "env": env}]},
        "status": {"phase": "Succeeded", "containerStatuses": [ended]},
    }


def decided(tmp_path: Path, about: Object, pods: dict[str, Object] | None = None) -> Plan:
    observed = collected(about, Observed(pods or {}), Collector(Repository(tmp_path)), lambda pod: True)
    return decide(about, observed, 0.0)


@pytest.mark.parametrize("orders", [{"artifacts": [{"key": "a"}]}, {"artifacts": [7]}, {"artifacts": 7}], ids=str)
def test_given_forged_orders_then_the_workflow_ends_with_the_reason(tmp_path: Path, orders: Any) -> None:
    plan = decided(tmp_path, workflow(phase="Running"), {"node": forged_pod(orders)})
    (patch,) = plan.patch
    assert patch.patch["status"]["phase"] == "Error"
    assert "cannot be read" in patch.patch["status"]["message"]


@pytest.mark.parametrize(
    "nodes",
    [
        {"a": 7},
        {"a": {"outputs": 7}},
        {"a": {"outputs": {"artifacts": 7}}},
        {"a": {"outputs": {"artifacts": [7, {"name": "x", "s3": "y"}, {"s3": {"key": "k"}, "artifactGC": "x"}]}}},
        [7],
    ],
    ids=str,
)
def test_given_odd_nodes_of_a_workflow_that_is_over_then_nothing_fails(tmp_path: Path, nodes: Any) -> None:
    odd = workflow(phase="Succeeded", finishedAt="1970-01-01T00:00:00Z", nodes=nodes)
    odd["spec"] = {**SPEC, "ttlStrategy": {"secondsAfterCompletion": 0}}
    assert [each.name for each in decided(tmp_path, odd).delete] == ["wf"]
