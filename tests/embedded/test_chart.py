"""The chart on the embedded platform, by real Helm, under its own accounts: installed, tested, upgraded, rolled back.

The platform runs without controllers of its own, so that everything here is done by the pods of the chart.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.harness import own_image
from harness import Target, pdc, until
from paddlecloud.local.images.store import ImageStore

CHART = Path(__file__).parents[2] / "charts" / "paddlecloud"
PDC = (sys.executable, "-m", "paddlecloud.cli.main", "-n", "kubeflow")
HELM = str(Path(sys.executable).with_name("helm"))
# The images of this machine lie where only its user may read.
AS_HERE = (
    "podSecurityContext.runAsNonRoot=false,podSecurityContext.runAsUser=0,podSecurityContext.runAsGroup=0,"
    "tests.image=python:3.11"
)
FLAGS = ["--namespace", "kubeflow", "--set", AS_HERE, "--timeout", "120s", "--wait"]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Target]:
    data = tmp_path / "platform"
    own_image.write_recipe(data / "images")
    pdc("up", "--data", str(data), "--port", "0", "--no-controllers")
    images = ImageStore(folders=[data / "images"])
    asyncio.run(images.build(own_image.NAME))
    yield Target(data / "kubeconfig", embedded=True)
    pdc("down", "--data", str(data))


def test_a_release_from_its_installation_to_its_end(bare: Target, kubectl_binary: str, tmp_path: Path) -> None:
    def run(*command: str, input: str | None = None) -> str:
        done = subprocess.run(command, env=bare.env, capture_output=True, text=True, input=input, timeout=200)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def kubectl(*arguments: str, input: str | None = None) -> str:
        return run(kubectl_binary, "-n", "kubeflow", *arguments, input=input)

    def read(*arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(kubectl("get", *arguments, "-o", "json"))
        return found

    def leader() -> str:
        pods = read("pods", "-l", "paddlecloud.org/leads=paddlejob")["items"]
        ready = [pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        return ready[0] if len(ready) == 1 else ""

    installed = run(*PDC, "install", "--set", AS_HERE, "--timeout", "120s")
    assert "helm test pdc --namespace kubeflow" in installed
    assert "pdc-paddlecloud-paddlejob: 2/2 ready" in installed
    judged = run(HELM, "test", "pdc", "--namespace", "kubeflow", "--logs", "--timeout", "120s")
    assert "ok   paddlejob: Completed" in judged
    assert "ok   paddleservice: Ready" in judged

    # A job that outlives its controller: the leader is killed, another replica finishes the job; nothing is made twice.
    until(lambda: leader() != "")
    kubectl("apply", "-f", "-", input=json.dumps(job("survivor", until=tmp_path / "gate")))
    until(lambda: len(read("pods", "-l", "paddlepaddle.org/job-name=survivor")["items"]) == 2)
    before = {pod["metadata"]["uid"] for pod in read("pods", "-l", "paddlepaddle.org/job-name=survivor")["items"]}
    first = leader()
    kubectl("delete", "pod", first, "--grace-period=0", "--force")
    until(lambda: leader() not in ("", first), timeout=60)
    run(HELM, "upgrade", "pdc", str(CHART), *FLAGS, "--set", "metrics.dashboard.enabled=true")
    assert kubectl("get", "configmap", "pdc-paddlecloud-dashboard", "-o", "name")
    (tmp_path / "gate" / "open").touch()
    kubectl("wait", "--for=jsonpath={.status.phase}=Completed", "pdj/survivor", "--timeout=90s")
    assert {
        pod["metadata"]["uid"] for pod in read("pods", "-l", "paddlepaddle.org/job-name=survivor")["items"]
    } == before

    run(HELM, "rollback", "pdc", "1", "--namespace", "kubeflow", "--wait", "--timeout", "120s")
    assert "dashboard" not in kubectl("get", "configmaps", "-o", "name")
    run(*PDC, "uninstall")
    assert read("pdj", "survivor")["status"]["phase"] == "Completed", "what users made stays"
    assert kubectl("get", "deployments", "-o", "name") == ""


def test_a_platform_that_runs_the_controllers_itself_needs_no_chart(server: Target) -> None:
    refused = pdc("install", env=server.env, check=False)
    assert refused.returncode == 4
    assert "the embedded platform runs these controllers itself" in refused.stderr
    assert "pdc up --no-controllers" in refused.stderr


def job(name: str, *, until: Path) -> dict[str, Any]:
    """Two workers that work until a file called open lies in that folder."""
    until.mkdir()
    container = {
        "name": "paddle",
        "image": "python:3.11",
        "command": ["sh", "-c", "while [ ! -e /gate/open ]; do sleep 0.2; done"],
        "volumeMounts": [{"name": "gate", "mountPath": "/gate"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "gate", "hostPath": {"path": str(until)}}]}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": "kubeflow"},
        "spec": {
            "cleanPodPolicy": "Never",
            "worker": {"replicas": 2, "template": {"spec": pod}},
        },
    }
