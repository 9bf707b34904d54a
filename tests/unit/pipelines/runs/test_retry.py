"""A failed workflow, written so that it goes on at the steps that failed."""

from __future__ import annotations

from typing import Any

from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.retry import retried


def node(kind: str, phase: str, *children: str, **more: Any) -> dict[str, Any]:
    held: dict[str, Any] = {"type": kind, "phase": phase, "finishedAt": "2026-01-01T00:00:00Z", "message": "m", **more}
    return {**held, "children": list(children)} if children else held


def failed(**nodes: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "w", "labels": {names.PHASE: "Failed", names.COMPLETED: "true", "a": "b"}},
        "spec": {"shutdown": "Stop", "activeDeadlineSeconds": 1, "entrypoint": "main"},
        "status": {
            "phase": "Failed", "message": "m", "finishedAt": "t", "startedAt": "s", "nodes": nodes,
            "conditions": [{"type": "Completed", "status": "True"}, {"type": "PodRunning", "status": "False"}],
        },
    }  # fmt: skip


def test_what_succeeded_stays_and_what_failed_is_forgotten_with_the_groups_around_it_running() -> None:
    workflow = failed(
        w=node("DAG", "Failed", "a", "b"),
        a=node("Pod", "Succeeded", "b"),
        b=node("Pod", "Failed", "c"),
        c=node("Pod", "Omitted"),
        d=node("Skipped", "Skipped"),
    )
    again, forgotten = retried(workflow)
    nodes = again["status"]["nodes"]
    assert forgotten == {"b", "c"}
    assert set(nodes) == {"w", "a", "d"}
    assert nodes["w"] == {"type": "DAG", "phase": "Running", "children": ["a"]}
    assert nodes["a"]["phase"] == "Succeeded"
    assert "children" not in nodes["a"]
    assert again["metadata"]["labels"] == {"a": "b"}
    assert again["spec"] == {"entrypoint": "main"}
    assert (again["status"]["phase"], again["status"]["startedAt"]) == ("Running", "s")
    assert again["status"]["conditions"] == [{"type": "PodRunning", "status": "False"}]
    assert not {"message", "finishedAt"} & set(again["status"])
    assert workflow["status"]["phase"] == "Failed"


def test_a_retry_node_is_forgotten_with_its_attempts() -> None:
    workflow = failed(
        w=node("Steps", "Failed", "g"), g=node("StepGroup", "Failed", "r"), r=node("Retry", "Failed", "r0", "r1"),
        r0=node("Pod", "Failed"), r1=node("Pod", "Error"),
    )  # fmt: skip
    again, forgotten = retried(workflow)
    assert forgotten == {"r", "r0", "r1"}
    assert set(again["status"]["nodes"]) == {"w", "g"}


def test_an_exit_handler_runs_again_at_the_new_end() -> None:
    workflow = failed(w=node("Pod", "Failed"), e=node("Pod", "Succeeded", name="w.onExit"))
    assert retried(workflow)[1] == {"w", "e"}
