"""Runs whose nodes are stored compressed: they are shown, resumed and retried as others are."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest

from paddlecloud.api.argo_nodes import packed, unpacked
from paddlecloud.kube.errors import Invalid
from paddlecloud.local.apiserver.objects.patch import merge_patch
from paddlecloud.pipelines.api import tasks
from paddlecloud.pipelines.runs import actions, record, retry, states
from paddlecloud.pipelines.runs.nodes import nodes_of
from unit.local.workflow.simulation import Simulation, workflow

FAILS = """
    entrypoint: main
    templates:
    - {name: main, dag: {tasks: [{name: a, template: run}, {name: b, template: fail, dependencies: [a]}]}}
    - {name: run, container: {image: busybox, command: ["true"]}}
    - {name: fail, container: {image: busybox, command: ["false"]}}
"""
WAITS = """
    entrypoint: main
    templates:
    - {name: main, steps: [[{name: wait, template: wait}], [{name: after, template: run}]]}
    - {name: wait, suspend: {}}
    - {name: run, container: {image: busybox, command: ["true"]}}
"""


def _compressed(run: dict[str, Any]) -> dict[str, Any]:
    return {**run, "status": packed(run["status"])}


def _failed() -> dict[str, Any]:
    return Simulation(workflow(FAILS), lambda pod: int(_command(pod) == "false")).run().workflow


def _command(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["command"][-1])


def test_a_run_is_shown_with_the_steps_and_the_failure_that_its_compressed_nodes_have() -> None:
    plain = _failed()
    large = _compressed(plain)
    assert {step.name: step.phase for step in record.steps(large)} == {"wf": "Failed", "a": "Succeeded", "b": "Failed"}
    assert record.steps(large) == record.steps(plain)
    assert tasks.details(large, "1") == tasks.details(plain, "1")
    assert states.failure(large) == states.failure(plain)
    assert states.failure(large).startswith("b: ")


def test_a_retry_begins_at_the_compressed_nodes_that_failed() -> None:
    plain, large = _failed(), _compressed(_failed())
    (again, forgotten), (expected, also) = retry.retried(large), retry.retried(plain)
    assert (unpacked(again), forgotten) == (expected, also)
    assert len(forgotten) == 1
    assert "nodes" not in again["status"]
    ended = Simulation(again).run()
    assert (ended.status["phase"], len(ended.created)) == ("Succeeded", 1)


@pytest.mark.parametrize("is_large", [False, True])
def test_a_suspended_step_is_resumed_and_no_other_node_is_lost(is_large: bool) -> None:
    waiting = Simulation(workflow(WAITS)).run().workflow
    stored = _compressed(waiting) if is_large else waiting
    ended = Simulation(merge_patch(stored, actions.resumption(stored))).run()
    assert ended.status["phase"] == "Succeeded"
    assert {name: ended.phases()[name] for name in ("wait", "after")} == {"wait": "Succeeded", "after": "Succeeded"}
    assert waiting["status"]["nodes"].keys() < ended.status["nodes"].keys()


def test_resuming_compressed_nodes_is_refused_where_the_controller_wrote_meanwhile() -> None:
    """They are written as a whole, so the API server must compare the version."""
    stored = _compressed(Simulation(workflow(WAITS)).run().workflow)
    assert actions.resumption(stored)["metadata"] == {"resourceVersion": "1"}


@pytest.mark.parametrize(
    "status",
    [
        {"compressedNodes": "no base64"},
        {"compressedNodes": base64.b64encode(gzip.compress(b" " * 64 * 1024 * 1024)).decode()},
    ],
    ids=["no base64", "far too large"],
)
def test_compressed_nodes_that_cannot_be_read_are_refused_and_do_not_fail_a_list(status: dict[str, Any]) -> None:
    run = {"metadata": {"name": "w"}, "status": {"phase": "Failed", **status}}
    with pytest.raises(Invalid, match="workflow w: compressed nodes"):
        record.steps(run)
    assert states.failure(run).startswith("the run failed (workflow w: compressed nodes")


def test_a_run_with_more_tasks_than_an_answer_has_room_for_says_how_many_are_missing() -> None:
    nodes = {f"n{at}": {"displayName": f"n{at}", "phase": "Succeeded"} for at in range(2003)}
    run = {"metadata": {"name": "large"}, "status": {"nodes": nodes}}
    found = tasks.details(run, "7")
    assert [task["display_name"] for task in found[:2000]] == [f"n{at}" for at in range(2000)]
    assert found[2000:] == [
        {
            "run_id": "7",
            "task_id": "left-out",
            "display_name": "3 more tasks are not listed here; `pdc pipeline show large -o json` has all",
        }
    ]
    del nodes["n0"], nodes["n1"], nodes["n2"]
    assert [task["task_id"] for task in tasks.details(run, "7")] == list(nodes)


def test_what_is_no_node_is_left_out() -> None:
    assert nodes_of({"metadata": {}, "status": {"nodes": {"a": 3, "b": {"id": "b"}}}}) == {"b": {"id": "b"}}
    assert nodes_of({"metadata": {}, "status": {"nodes": "text"}}) == {}


@pytest.mark.parametrize("children", [5, "x", [[1]], [None, "b"]], ids=str)
@pytest.mark.parametrize(
    "outputs", [5, [1], {"artifacts": "x"}, {"parameters": [1], "artifacts": [[], {"name": []}]}], ids=str
)
def test_nodes_that_somebody_wrote_are_shown_as_far_as_they_can_be_read(children: Any, outputs: Any) -> None:
    run = {"metadata": {"name": "x"}, "status": {"nodes": {"a": {"children": children, "outputs": outputs}, "b": {}}}}
    assert [task["task_id"] for task in tasks.details(run, "r")] == ["a", "b"]
    assert [each for each in nodes_of(run)["a"]["outputs"].get("artifacts", ()) if each.get("name") == "x"] == []
