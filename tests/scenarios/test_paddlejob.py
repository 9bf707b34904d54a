"""A PaddleJob as a user runs it: real kubectl, real Paddle, our controllers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import Kubectl, Target

pytestmark = [pytest.mark.core, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.paddle
def test_two_workers_train_together_and_the_job_completes(server: Target, kubectl: Kubectl) -> None:
    server.offer("paddlecloud/examples:v1")
    kubectl("apply", "-f", str(EXAMPLES / "paddlejob" / "collective-digits.yaml"))
    done = "--for=jsonpath={.status.phase}=Completed"
    kubectl("wait", done, "paddlejob/collective-digits", "--timeout=300s", timeout=310)
    pods = json.loads(kubectl("get", "pods", "-o", "json").stdout)["items"]
    names = sorted(pod["metadata"]["name"] for pod in pods)
    assert names == ["collective-digits-worker-0", "collective-digits-worker-1"]
    for rank, name in enumerate(names):
        assert f"rank {rank} of 2:" in kubectl("logs", name).stdout
    assert "Completed" in kubectl("get", "pdj", "collective-digits").stdout


def test_a_job_that_cannot_be_is_refused_by_the_schema(kubectl: Kubectl) -> None:
    body = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "bad"}}
    refused = kubectl(
        "create", "-f", "-", input=json.dumps({**body, "spec": {"worker": {"replicas": "two"}}}), check=False
    )
    assert refused.returncode != 0
    assert "spec.worker.replicas" in refused.stderr
