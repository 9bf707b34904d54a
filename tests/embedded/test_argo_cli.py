"""Argo's own command line against the embedded platform: without an Argo server it uses the Kubernetes API alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Completed, Target, until
from unit.local.workloads.real import Kubectl, read

Argo = Callable[..., Completed]


@pytest.fixture
def argo(argo_binary: str, server: Target, namespace: str, tmp_path: Path) -> Argo:
    env = {**server.env, "HOME": str(tmp_path), "NO_COLOR": "1"}

    def run(*args: str, check: bool = True) -> Completed:
        command = [argo_binary, "--namespace", namespace, *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
        if check and done.returncode:
            raise AssertionError(f"argo {' '.join(args)} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    def write(kind: str, name: str, spec: dict[str, Any]) -> str:
        path = tmp_path / f"{name}.yaml"
        body = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        path.write_text(json.dumps(body))
        return str(path)

    return write


File = Callable[..., str]


def container(command: str) -> dict[str, Any]:
    return {"image": "busybox", "command": ["sh", "-c"], "args": [command]}


ECHO: dict[str, Any] = {
    "entrypoint": "main",
    "arguments": {"parameters": [{"name": "who", "value": "world"}]},
    "templates": [
        {
            "name": "main",
            "inputs": {"parameters": [{"name": "who"}]},
            "container": container("echo hello {{inputs.parameters.who}}"),
        }
    ],
}
SLEEP: dict[str, Any] = {"entrypoint": "main", "templates": [{"name": "main", "container": container("sleep 600")}]}
APPROVAL: dict[str, Any] = {
    "entrypoint": "main",
    "templates": [
        {
            "name": "main",
            "steps": [[{"name": "approve", "template": "approve"}], [{"name": "say", "template": "say"}]],
        },
        {"name": "approve", "suspend": {}},
        {"name": "say", "container": container("echo approved")},
    ],
}


def flaky(outer: str) -> dict[str, Any]:
    """Three steps or tasks, of which the second fails unless the parameter says otherwise."""

    def call(name: str, code: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "template": "run", "arguments": {"parameters": [{"name": "code", "value": code}]}, **more}

    code = "{{workflow.parameters.code}}"
    if outer == "steps":
        main: dict[str, Any] = {"steps": [[call("first", "0")], [call("second", code)], [call("third", "0")]]}
    else:
        second = call("second", code, dependencies=["first"])
        main = {"dag": {"tasks": [call("first", "0"), second, call("third", "0", dependencies=["second"])]}}
    run = {"name": "run", "inputs": {"parameters": [{"name": "code"}]}}
    run["container"] = container("exit {{inputs.parameters.code}}")  # type: ignore[assignment]
    if outer == "retries":
        run["retryStrategy"] = {"limit": 1}  # type: ignore[assignment]
    return {
        "entrypoint": "main",
        "arguments": {"parameters": [{"name": "code", "value": "1"}]},
        "templates": [{"name": "main", **main}, run],
    }


def test_submit_and_what_reads_a_workflow(argo: Argo, file: File) -> None:
    done = argo("submit", file("Workflow", "hello", ECHO), "-p", "who=you", "--wait", "--log")
    assert "hello you" in done.stdout
    assert "hello Succeeded" in argo("wait", "hello").stdout
    assert "hello you" in argo("logs", "hello").stdout
    assert "Succeeded" in argo("watch", "hello").stdout
    assert argo("list", "-o", "name").stdout.split() == ["hello"]
    shown = argo("get", "hello").stdout
    assert "Completed           True" in shown
    assert "Succeeded" in shown
    argo("delete", "hello")
    assert "not found" in argo("get", "hello", check=False).stderr


@pytest.mark.parametrize("outer", ["steps", "dag", "retries"])
def test_retry_runs_what_failed_and_only_that(argo: Argo, file: File, kubectl: Kubectl, outer: str) -> None:
    """The client takes nodes out of the status and deletes their pods; the controller goes on from there."""
    name = f"flaky-{outer}"
    argo("submit", file("Workflow", name, flaky(outer)), "--wait", check=False)
    before = _pods(kubectl, name)
    argo("retry", name, "-p", "code=0", "--wait")
    found = read(kubectl, f"workflow/{name}")
    phases = {node["displayName"]: node["phase"] for node in found["status"]["nodes"].values()}
    assert found["status"]["phase"] == "Succeeded"
    assert {phases[each] for each in ("first", "second", "third")} == {"Succeeded"}
    after = _pods(kubectl, name)
    first = next(node for node in found["status"]["nodes"].values() if node["displayName"].startswith("first"))
    kept = {uid for uid in before.values() if uid in after.values()}
    assert kept, f"the pod of {first['name']} ran again"


def _pods(kubectl: Kubectl, name: str) -> dict[str, str]:
    items = read(kubectl, "pods", f"-l=workflows.argoproj.io/workflow={name}")["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in items}


def test_resubmit_runs_everything_again(argo: Argo, file: File) -> None:
    argo("submit", file("Workflow", "again", flaky("steps")), "--wait", check=False)
    assert "Succeeded" in argo("resubmit", "again", "-p", "code=0", "--wait").stdout
    assert len(argo("list", "-o", "name").stdout.split()) == 2


@pytest.mark.parametrize(("command", "phase"), [("resume", "Succeeded"), ("stop", "Failed"), ("terminate", "Failed")])
def test_a_workflow_that_waits_for_approval(argo: Argo, file: File, command: str, phase: str, kubectl: Kubectl) -> None:
    argo("submit", file("Workflow", "gate", APPROVAL))
    until(lambda: read(kubectl, "workflow/gate").get("status", {}).get("nodes"), lambda nodes: bool(nodes))
    assert argo("list", "--running", "-o", "name").stdout.split() == ["gate"]
    argo(command, "gate")
    assert phase in argo("wait", "gate", check=False).stdout


def test_stop_and_terminate_end_pods(argo: Argo, file: File) -> None:
    for command in ("stop", "terminate"):
        argo("submit", file("Workflow", command, SLEEP))
        argo(command, command)
        assert "Failed" in argo("wait", command, check=False).stdout


def test_suspend_begins_nothing_more_until_resume(argo: Argo, file: File, kubectl: Kubectl) -> None:
    path = file("Workflow", "held", {**ECHO, "suspend": True})
    argo("submit", path)
    assert "Suspended" in until(lambda: argo("get", "held").stdout, lambda shown: "Suspended" in shown)
    assert not _pods(kubectl, "held")
    argo("resume", "held")
    assert "Succeeded" in argo("wait", "held").stdout


def test_templates(argo: Argo, file: File) -> None:
    argo("template", "create", file("WorkflowTemplate", "greet", ECHO))
    assert argo("template", "list", "-o", "name").stdout.split() == ["greet"]
    assert "greet" in argo("template", "get", "greet").stdout
    argo("submit", "--from", "workflowtemplate/greet", "-p", "who=all", "--name", "made", "--wait")
    assert "hello all" in argo("logs", "made").stdout
    argo("template", "delete", "greet")
    assert argo("template", "list", "-o", "name").stdout.split() == []


def test_cron(argo: Argo, file: File, kubectl: Kubectl) -> None:
    spec = {"schedules": ["@every 1s"], "concurrencyPolicy": "Forbid", "workflowSpec": ECHO}
    argo("cron", "create", file("CronWorkflow", "tick", spec))
    until(lambda: read(kubectl, "workflows")["items"])
    argo("cron", "suspend", "tick")
    assert "Suspended:                     true" in argo("cron", "get", "tick").stdout
    assert "tick" in argo("cron", "list").stdout
    argo("cron", "resume", "tick")
    argo("submit", "--from", "cronwf/tick", "--name", "by-hand", "--wait")
    assert "hello world" in argo("logs", "by-hand").stdout
    argo("cron", "delete", "tick")
    until(lambda: read(kubectl, "workflows")["items"], [])


def test_lint_offline_judges_what_this_platform_runs(argo: Argo, file: File) -> None:
    good = [file("Workflow", "one", ECHO), file("CronWorkflow", "two", {"schedules": ["@daily"], "workflowSpec": ECHO})]
    assert "no linting errors" in argo("lint", "--offline", *good).stdout
    assert argo("lint", "--offline", file("Workflow", "bad", {**ECHO, "entrypoint": "x"}), check=False).returncode


def test_a_workflow_with_packed_nodes_is_shown(argo: Argo, file: File) -> None:
    """Thousands of nodes are stored as Argo's `compressedNodes`; its clients unpack them."""
    steps = [[{"name": "a", "template": "nothing", "when": "1 == 2", "withSequence": {"count": 4000}}]]
    nothing = {"name": "nothing", "container": container("true")}
    spec = {"entrypoint": "main", "templates": [{"name": "main", "steps": steps}, nothing]}
    argo("submit", file("Workflow", "many", spec), "--wait")
    assert "a(3999:3999)" in argo("get", "many").stdout
