"""PaddleJobs in Kubeflow's form: they run, and say so in Kubeflow's words. The kind is Kubeflow's own to install.

The embedded platform serves it; on a cluster it stands for what an earlier Kubeflow has left.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from harness import Kubectl, Target, until
from paddlecloud.api import kubeflow
from paddlecloud.api.crd import generate

from .hands import EXAMPLES, Hands, read

pytestmark = [pytest.mark.full, pytest.mark.timeout(300), pytest.mark.usefixtures("served")]

KIND = "paddlejobs.kubeflow.org"
OURS = "paddlejobs.batch.paddlepaddle.org"


@pytest.fixture(scope="module")
def served(server: Target, operators: None, kubectl_binary: str) -> Iterator[None]:
    """The kind is there, and the release of our controllers was configured to run it."""
    if server.embedded:
        yield
        return
    from cluster.operators import CHART, HELM, RELEASE, flags

    def run(*command: str, input: str | None = None) -> None:
        done = subprocess.run(command, env=server.env, input=input, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"

    (crd,) = generate([kubeflow.DECLARATION])
    run(kubectl_binary, "apply", "--server-side", "-f", "-", input=json.dumps(crd))
    run(HELM, "upgrade", RELEASE, str(CHART), *flags(paddlejob__kubeflow="true"))
    yield
    run(HELM, "upgrade", RELEASE, str(CHART), *flags())
    run(kubectl_binary, "delete", "crd", KIND, "--timeout=120s")


def job(name: str, command: str, *, workers: int = 2, **run_policy: Any) -> str:
    """Two containers, and the one that trains is not the first: Kubeflow's is the one called paddle."""
    helper = {"name": "helper", "image": "busybox", "command": ["true"]}
    trainer = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", command]}
    worker = {"replicas": workers, "template": {"spec": {"containers": [helper, trainer]}}}
    return json.dumps(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"paddleReplicaSpecs": {"Worker": worker}, "runPolicy": run_policy},
        }
    )


def condition(kubectl: Kubectl, name: str, wanted: str) -> Callable[[], bool]:
    def last_is() -> bool:
        conditions = (read(kubectl, KIND, name).get("status") or {}).get("conditions") or [{}]
        return conditions[-1].get("type") == wanted

    return last_is


def test_it_runs_to_its_end_and_keeps_its_pods_as_kubeflow_does(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=job("simple", 'echo "rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM"'))
    until(condition(kubectl, "simple", "Succeeded"))
    header, row = kubectl("get", KIND, "simple").stdout.splitlines()
    assert header.split() == ["NAME", "STATE", "AGE"]
    assert row.split()[:2] == ["simple", "Succeeded"]
    status = read(kubectl, KIND, "simple")["status"]
    assert status["replicaStatuses"]["Worker"]["succeeded"] == 2
    assert status["startTime"] <= status["completionTime"]
    for index in range(2):
        assert kubectl("logs", f"simple-worker-{index}", "-c", "paddle").stdout == f"rank {index} of 2\n"


def test_it_is_scaled_suspended_and_deleted_by_its_own_kind(kubectl: Kubectl) -> None:
    def pods() -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in read(kubectl, "pods")["items"])

    kubectl("apply", "-f", "-", input=job("served", "exec sleep 600", workers=1))
    until(condition(kubectl, "served", "Running"))
    kubectl("scale", f"{KIND}/served", "--replicas=2")
    until(lambda: pods() == ["served-worker-0", "served-worker-1"])
    suspend = json.dumps({"spec": {"runPolicy": {"suspend": True}}})
    kubectl("patch", KIND, "served", "--type=merge", "-p", suspend)
    until(condition(kubectl, "served", "Suspended"))
    until(lambda: pods() == [])
    kubectl("delete", KIND, "served")
    until(lambda: not read(kubectl, OURS)["items"])


def test_a_job_that_cannot_run_says_why_in_a_condition(kubectl: Kubectl) -> None:
    body = json.loads(job("empty", "true"))
    body["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = []
    kubectl("apply", "-f", "-", input=json.dumps(body))
    until(condition(kubectl, "empty", "Failed"))
    assert "containers" in read(kubectl, KIND, "empty")["status"]["conditions"][-1]["message"]


@pytest.fixture
def example(kubectl: Kubectl, server: Target) -> Callable[[str], str]:
    """Applies a file of examples/kubeflow in the test's own namespace; returns the job's name."""

    def put(path: str) -> str:
        body = yaml.safe_load((EXAMPLES / "kubeflow" / path).read_text())
        del body["metadata"]["namespace"]
        for role in body["spec"]["paddleReplicaSpecs"].values():
            server.offer(role["template"]["spec"]["containers"][0]["image"])
        kubectl("apply", "-f", "-", input=json.dumps(body))
        return str(body["metadata"]["name"])

    return put


@pytest.mark.paddle
def test_kubeflows_example_on_cpu_checks_paddle_in_two_processes(
    kubectl: Kubectl, example: Callable[[str], str]
) -> None:
    name = example("simple-cpu.yaml")
    until(condition(kubectl, name, "Succeeded"), timeout=240)
    for index in range(2):
        assert "Distributed training completed" in kubectl("logs", f"{name}-worker-{index}").stdout


def test_kubeflows_example_on_gpus_waits_without_them_and_says_why(
    kubectl: Kubectl, example: Callable[[str], str]
) -> None:
    name = example("simple-gpu.yaml")
    until(lambda: "nvidia.com/gpu" in str(read(kubectl, OURS, name).get("status", {}).get("message")))
    assert not condition(kubectl, name, "Running")()


@pytest.mark.paddle
@pytest.mark.soak
def test_kubeflows_example_on_gpus_trains_once_a_node_declares_them(
    kubectl: Kubectl, hands: Hands, example: Callable[[str], str]
) -> None:
    name = example("simple-gpu.yaml")
    with hands.declared({"nvidia.com/gpu": "4"}, {}):
        until(condition(kubectl, name, "Succeeded"), timeout=240)
        kubectl("delete", KIND, name)
