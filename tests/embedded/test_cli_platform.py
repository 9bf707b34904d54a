"""The command line on the embedded platform: the behaviours that need a real API server, and agreement with kubectl."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Completed = subprocess.CompletedProcess[str]
Pdc = Callable[..., Completed]
Kubectl = Callable[..., Completed]
Target = Any  # of the shared fixtures: `kubeconfig`, `env`
PDC = (sys.executable, "-m", "paddlecloud.cli.main")


@pytest.fixture
def run(server: Target, namespace: str, tmp_path: Path) -> Pdc:
    """pdc in the test's namespace, with its own cache; failures are returned, not raised."""
    environment = {**server.env, "XDG_CACHE_HOME": str(tmp_path / "cache"), "LC_ALL": "C.UTF-8"}

    def call(*arguments: str, input: str | None = None) -> Completed:
        return subprocess.run(
            [*PDC, "-n", namespace, *arguments],
            env=environment,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return call


def config(name: str, data: dict[str, str], **meta: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}, "data": data})


JOB: dict[str, Any] = {
    "apiVersion": "batch.paddlepaddle.org/v1",
    "kind": "PaddleJob",
    "spec": {
        "suspend": True,
        "worker": {
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "p", "image": "busybox", "command": ["true"]}]}},
        },
    },
}


# Declaring


def test_a_field_removed_from_the_file_is_removed_from_the_object(run: Pdc) -> None:
    assert run("apply", "-f", "-", input=config("c", {"a": "1", "b": "2"})).stdout == "configmap/c created\n"
    assert run("apply", "-f", "-", input=config("c", {"a": "1"})).stdout == "configmap/c configured\n"
    assert json.loads(run("get", "cm/c", "-o", "json").stdout)["data"] == {"a": "1"}
    assert run("apply", "-f", "-", input=config("c", {"a": "1"})).stdout == "configmap/c unchanged\n"


def test_two_owners_of_one_field(run: Pdc) -> None:
    run("apply", "-f", "-", "--field-manager=other", input=config("c", {"a": "theirs", "x": "kept"}))
    refused = run("apply", "-f", "-", input=config("c", {"a": "ours"}))
    assert refused.returncode == 4
    assert '"other"' in refused.stderr
    assert ".data.a" in refused.stderr
    assert "--force-conflicts" in refused.stderr
    assert run("apply", "--force-conflicts", "-f", "-", input=config("c", {"a": "ours"})).returncode == 0
    assert json.loads(run("get", "cm/c", "-o", "json").stdout)["data"] == {"a": "ours", "x": "kept"}


def test_a_field_that_pdc_changed_itself_is_set_by_the_next_apply(run: Pdc) -> None:
    body = {**JOB, "metadata": {"name": "j"}}
    assert run("apply", "-f", "-", input=json.dumps(body)).returncode == 0
    assert run("scale", "j", "--replicas", "3").stdout == "paddlejob.batch.paddlepaddle.org/j scaled\n"
    assert run("resume", "j").returncode == 0
    applied = run("apply", "-f", "-", input=json.dumps(body))
    assert (applied.returncode, applied.stdout) == (0, "paddlejob.batch.paddlepaddle.org/j configured\n")
    assert run("get", "pdj/j", "-o", "jsonpath={.spec.worker.replicas} {.spec.suspend}").stdout == "1 true\n"
    assert run("apply", "-f", "-", input=json.dumps(body)).stdout.endswith("unchanged\n")


def test_a_job_that_has_ended_is_neither_scaled_nor_suspended(run: Pdc) -> None:
    body = {**JOB, "metadata": {"name": "j"}, "spec": {**JOB["spec"], "suspend": False}}
    run("apply", "-f", "-", input=json.dumps(body))
    assert run("wait", "pdj/j", "--for=finished", "--timeout=60s").returncode == 0
    before = run("get", "pdj/j", "-o", "jsonpath={.metadata.generation}").stdout
    for act in (
        ["scale", "j", "--replicas", "2"],
        ["scale", "pdj/j", "--replicas", "2"],
        ["suspend", "j"],
        ["resume", "j"],
    ):
        refused = run(*act)
        assert refused.returncode == 4
        assert "has ended and cannot be" in refused.stderr
        assert "it is Completed" in refused.stderr
        assert "pdc retry j" in refused.stderr
    assert run("get", "pdj/j", "-o", "jsonpath={.metadata.generation}").stdout == before


@pytest.mark.parametrize("mode", ["--dry-run=server", "--dry-run=none"])
def test_an_unknown_field_is_refused(run: Pdc, mode: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dada": {"a": "b"}}
    result = run("apply", "-f", "-", mode, input=json.dumps(body))
    assert result.returncode == 5
    assert "dada" in result.stderr
    assert run("get", "cm/c").returncode == 3


def test_a_server_dry_run_stores_nothing(run: Pdc) -> None:
    assert run("apply", "-f", "-", "--dry-run=server", input=config("c", {})).stdout == (
        "configmap/c created (server dry run)\n"
    )
    assert run("get", "cm/c").returncode == 3


def test_diff_agrees_with_apply(run: Pdc) -> None:
    text = config("c", {"a": "1"})
    assert run("diff", "-f", "-", input=text).returncode == 1
    run("apply", "-f", "-", input=text)
    same = run("diff", "-f", "-", input=text)
    assert (same.returncode, same.stdout) == (0, "")
    changed = run("diff", "-f", "-", input=config("c", {"a": "2"}))
    assert changed.returncode == 1
    assert "-  a: '1'\n+  a: '2'\n" in changed.stdout


def test_an_invalid_object_is_exit_5(run: Pdc) -> None:
    result = run("apply", "-f", "-", input=config("Not_A_Name", {}))
    assert result.returncode == 5
    assert "Not_A_Name" in result.stderr


def test_a_missing_namespace_is_exit_3(run: Pdc) -> None:
    result = run("apply", "-f", "-", "-n", "nowhere", input=config("c", {}))
    assert result.returncode == 3
    assert "nowhere" in result.stderr


def test_delete_waits_for_finalizers(run: Pdc) -> None:
    run("apply", "-f", "-", input=config("held", {}, finalizers=["example.org/hold"]))
    result = run("delete", "cm/held", "-y", "--timeout=2s")
    assert result.returncode == 124
    assert "example.org/hold" in result.stderr
    assert "held by finalizers: example.org/hold" in run("explain", "cm/held").stdout
    run("apply", "-f", "-", input=config("held", {}))
    assert run("wait", "cm/held", "--for=delete", "--timeout=60s").returncode == 0


def test_delete_by_label_takes_no_other(run: Pdc) -> None:
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        run("apply", "-f", "-", input=config(name, {}, labels={"app": app}))
    assert run("delete", "cm", "-l", "app=x", "-y").stdout == "configmap/a deleted\nconfigmap/b deleted\n"
    assert run("get", "cm", "-l", "app", "-o", "name").stdout == "configmap/c\n"


# Waiting and watching


def test_wait_sees_a_change_made_by_someone_else(run: Pdc, server: Target, namespace: str) -> None:
    run("apply", "-f", "-", input=config("c", {"state": "new"}))
    waiter = subprocess.Popen(
        [*PDC, "-n", namespace, "wait", "cm/c", "--for=jsonpath={.data.state}=done", "--timeout=60s"],
        env=server.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    run("apply", "-f", "-", input=config("c", {"state": "done"}))
    out, _ = waiter.communicate(timeout=60)
    assert (waiter.returncode, out) == (0, "configmap/c condition met\n")


def test_watch_prints_a_change(run: Pdc, server: Target, namespace: str) -> None:
    run("apply", "-f", "-", input=config("c", {}))
    watcher = subprocess.Popen(
        [*PDC, "-n", namespace, "get", "cm", "-w", "-o", "json", "-l", "w"],
        env=server.env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    try:
        run("apply", "-f", "-", input=config("seen", {"n": "1"}, labels={"w": "1"}))
        first = json.loads(watcher.stdout.readline())
        run("apply", "-f", "-", input=config("seen", {"n": "2"}, labels={"w": "1"}))
        second = json.loads(watcher.stdout.readline())
    finally:
        watcher.terminate()
        watcher.communicate(timeout=60)
    assert (first["data"]["n"], second["data"]["n"]) == ("1", "2")


# Agreement with kubectl


@pytest.fixture
def populated(run: Pdc) -> Pdc:
    run("apply", "-f", "-", input=config("one", {"a": "1"}, labels={"app": "x", "tier": "web"}))
    run("apply", "-f", "-", input=config("two", {"b": "2"}))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]},
    }
    run("apply", "-f", "-", input=json.dumps(service))
    return run


SAME = [
    ["get", "configmaps"],
    ["get", "cm", "one", "two"],
    ["get", "cm", "-o", "wide"],
    ["get", "cm", "--no-headers"],
    ["get", "cm", "--show-labels"],
    ["get", "cm", "-L", "app"],
    ["get", "cm", "-l", "app=x"],
    ["get", "cm", "-l", "app notin (x)"],
    ["get", "cm", "--field-selector", "metadata.name=two"],
    ["get", "cm", "--sort-by", ".metadata.name"],
    ["get", "cm,svc"],
    ["get", "cm/one", "svc/front"],
    ["get", "svc", "-o", "wide"],
    ["get", "cm", "-o", "name"],
    ["get", "cm/one", "-o", "jsonpath={.data.a}"],
    ["get", "cm", "-o", 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'],
    ["get", "cm", "-o", 'jsonpath={.items[?(@.metadata.name=="two")].data}'],
    ["get", "cm", "-o", "custom-columns=NAME:.metadata.name,A:.data.a"],
    ["get", "namespaces", "default"],
    ["get", "nodes", "-o", "name"],
    ["get", "clusterroles", "cluster-admin"],
    ["get", "paddlejobs"],
]


def normal(text: str) -> list[str]:
    """Ages move on between two commands, and column widths with them."""
    return [re.sub(r"\b\d+[smhd](\d+[smh])?\b", "AGE", " ".join(line.split())) for line in text.splitlines()]


def test_pdc_prints_what_kubectl_prints(populated: Pdc, kubectl: Kubectl) -> None:
    for arguments in SAME:
        ours, theirs = populated(*arguments), kubectl(*arguments, check=False)
        assert (ours.returncode, theirs.returncode) == (0, 0), f"{arguments}: {ours.stderr}{theirs.stderr}"
        assert normal(ours.stdout) == normal(theirs.stdout), arguments


def test_pdc_writes_the_objects_kubectl_writes(populated: Pdc, kubectl: Kubectl) -> None:
    for what in (["cm/one"], ["cm"], ["svc", "front"]):
        for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
            ours, theirs = populated("get", *what, "-o", form), kubectl("get", *what, "-o", form)
            assert read(ours.stdout) == read(theirs.stdout), (what, form)


def test_kubectl_and_pdc_share_an_object(run: Pdc, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=config("c", {"a": "kubectl"}))
    refused = run("apply", "-f", "-", input=config("c", {"a": "pdc"}))
    assert refused.returncode == 4
    assert "kubectl" in refused.stderr
    assert run("apply", "-f", "-", input=config("c", {"b": "pdc"})).returncode == 0
    assert json.loads(run("get", "cm/c", "-o", "json").stdout)["data"] == {"a": "kubectl", "b": "pdc"}


def test_explain_knows_the_fields_kubectl_knows(run: Pdc, kubectl: Kubectl) -> None:
    def names(text: str) -> set[str]:
        return set(re.findall(r"^  (\w+)\t", text, re.MULTILINE))

    for subject in ("pod.spec", "paddlejob.spec", "deployment.spec.template.spec.containers"):
        ours = names(run("explain", subject).stdout)
        assert ours
        assert ours == names(kubectl("explain", subject).stdout), subject


# Who may


def test_forbidden_is_exit_6(run: Pdc, server: Target, namespace: str, tmp_path: Path, kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "nobody")
    token = kubectl("create", "token", "nobody").stdout.strip()
    whole = json.loads(run("kubeconfig", "-o", "json").stdout)
    whole["users"][0]["user"] = {"token": token}
    path = tmp_path / "nobody.kubeconfig"
    path.write_text(json.dumps(whole))
    result = run("get", "secrets", "--kubeconfig", str(path))
    assert result.returncode == 6
    assert "nobody" in result.stderr
    assert token not in result.stderr
    whole["users"][0]["user"] = {"token": "wrong"}
    path.write_text(json.dumps(whole))
    assert run("get", "secrets", "--kubeconfig", str(path)).returncode == 6
