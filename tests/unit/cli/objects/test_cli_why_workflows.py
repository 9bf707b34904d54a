"""Verdicts on workflows: the step that failed, waits for a node or for somebody, and what it printed last."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.argo_nodes import packed
from paddlecloud.cli.objects.why import why
from paddlecloud.kube.argo import NODE_ID, WORKFLOW
from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

NOW = 1_800_000_000.0
WARNING = {"type": "Warning", "reason": "WorkflowFailed", "message": "Failed", "involvedObject": {"name": "wf"}}


def node(name: str, phase: str, kind: str = "Pod", **more: Any) -> dict[str, Any]:
    return {"id": name, "name": f"wf.{name}", "displayName": name, "type": kind, "phase": phase, **more}


def workflow(phase: str, *nodes: dict[str, Any], spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "wf"},
        "spec": spec or {},
        "status": {"phase": phase, "nodes": {each["id"]: each for each in nodes}, **status},
    }


def pod(step: str, **status: Any) -> dict[str, Any]:
    meta = {"name": f"wf-{step}", "annotations": {NODE_ID: step}}
    return {"kind": "Pod", "metadata": meta, "spec": {}, "status": status}


UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient gpu"}]
FAILED = (
    node("later", "Failed", message="main: Error (exit code 2)", finishedAt="2026-01-01T00:00:09Z"),
    node("train", "Failed", message="main: Error (exit code 1)", finishedAt="2026-01-01T00:00:01Z"),
)
NO_IMAGE = [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]

VERDICTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], tuple[str, str, str]]] = {
    "a failed step": (
        workflow("Failed", *FAILED),
        [],
        ("failed", "failed: train: main: Error (exit code 1)", "Failed"),
    ),
    "a message of its own": (
        workflow("Failed", message="Stopped with strategy 'Stop'"),
        [],
        ("failed", "failed: Stopped with strategy 'Stop'", "Failed"),
    ),
    "a step for which there is no node": (
        workflow("Running", node("train", "Pending")),
        [pod("train", phase="Pending", conditions=UNSCHEDULABLE)],
        ("waiting", "step train: no node can take it: Insufficient gpu", "Unschedulable"),
    ),
    "a step without an image": (
        workflow("Running", node("train", "Pending")),
        [pod("train", phase="Pending", containerStatuses=NO_IMAGE)],
        ("failed", "step train: container main waits: ImagePullBackOff: no such image", "ImagePullBackOff"),
    ),
    "a step that waits for a lock": (
        workflow("Running", node("train", "Pending", message="Waiting for the lock")),
        [],
        ("waiting", "step train: Waiting for the lock", "Pending"),
    ),
    "a suspended step": (
        workflow("Running", node("approve", "Running", "Suspend")),
        [],
        ("waiting", "step approve is suspended. To go on: pdc pipeline resume wf", "Suspended"),
    ),
    "a suspended workflow": (
        workflow("Running", spec={"suspend": True}),
        [],
        ("waiting", "suspended: no step begins until it is resumed: pdc pipeline resume wf", "Suspended"),
    ),
    "a step that runs after an attempt that failed": (
        workflow("Running", node("train(1)", "Running")),
        [pod("train(0)", phase="Failed", reason="Evicted"), pod("train(1)", phase="Running")],
        ("ok", "Running", "Running"),
    ),
    "success": (workflow("Succeeded", node("train", "Succeeded")), [], ("ok", "succeeded", "Succeeded")),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_the_verdict_on_a_workflow_begins_with_the_cause(case: str) -> None:
    obj, pods, expected = VERDICTS[case]
    found = why(obj, pods=pods, events=[WARNING] if obj["status"]["phase"] == "Failed" else [], now=NOW)
    assert (found.state, found.text, found.reason) == expected


def test_compressed_nodes_are_read_as_well() -> None:
    obj = workflow("Failed", *FAILED)
    obj["status"] = packed(obj["status"])
    assert why(obj, now=NOW).text == "failed: train: main: Error (exit code 1)"


def test_nodes_that_cannot_be_read_leave_the_phase() -> None:
    obj = workflow("Running", compressedNodes="?")
    assert why(obj, now=NOW).state == "ok"


def test_in_chinese() -> None:
    obj = workflow("Running", node("approve", "Running", "Suspend"))
    assert why(obj, now=NOW, language="zh").text == "步骤 approve 已挂起。继续：pdc pipeline resume wf"


@pytest.fixture
def failed_run(stub: Stub) -> Stub:
    stub.kinds.append(("argoproj.io", "v1alpha1", "workflows", "Workflow", True, ["wf"]))
    source = "import sys\n" * 200
    made = stub.add(
        workflow("Failed", *FAILED, spec={"arguments": {"parameters": [{"name": "code", "value": source}]}})
    )
    owner = {"uid": made["metadata"]["uid"], "controller": True, "kind": "Workflow", "name": "wf"}
    meta = {
        "name": "wf-train",
        "ownerReferences": [owner],
        "labels": {WORKFLOW: "wf"},
        "annotations": {NODE_ID: "train"},
    }
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]
    stub.add(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": "Failed", "containerStatuses": ended},
        }
    )
    stub.logs["wf-train"] = ["2026-01-01T00:00:00Z epoch 1", "2026-01-01T00:00:01Z ValueError: no such column"]
    return stub


@pytest.mark.parametrize("command", ["explain", "describe"])
def test_a_failed_run_shows_the_end_of_what_its_step_printed(failed_run: Stub, pdc: Pdc, command: str) -> None:
    out = pdc(command, "wf/wf").out
    assert "failed: train: main: Error (exit code 1): ValueError: no such column\n" in out
    assert "  epoch 1\n" in out


def test_describe_cuts_long_values_of_workflows(failed_run: Stub, pdc: Pdc) -> None:
    out = pdc("describe", "wf/wf").out
    assert out.count("import sys") == 256 // len("import sys\n")
    assert "… (2,200 characters; -o yaml of `pdc get` shows all)" in " ".join(out.split())
