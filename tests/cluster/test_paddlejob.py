"""A PaddleJob on a real cluster: real kubectl, real kubelets, real containers, real Paddle."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Kubectl, Target, pdc

from .harness.base_images import ImageCache
from .harness.layout import Layout
from .harness.python_image import offer_recipe

pytestmark = [pytest.mark.core, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "paddlejob" / "collective-digits.yaml"


@pytest.fixture(scope="module")
def _images() -> None:
    """On the fixture images are made here; another cluster pulls them."""
    asyncio.run(offer_recipe(ImageCache(Layout.default().images), "paddlecloud/examples:v1", say=print))


@pytest.fixture(scope="module")
def operator(server: Target, kubectl_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The log of a running operator, after its kinds have been installed."""
    definitions = pdc("crds").stdout
    base = [kubectl_binary, "--kubeconfig", str(server.kubeconfig)]
    apply = [*base, "apply", "--server-side", "-f", "-"]
    subprocess.run(apply, input=definitions, text=True, check=True, capture_output=True, timeout=60)
    wait = [*base, "wait", "--for=condition=Established", "crd/paddlejobs.batch.paddlepaddle.org", "--timeout=60s"]
    subprocess.run(wait, check=True, capture_output=True, timeout=70)
    log = tmp_path_factory.mktemp("operator") / "log"
    command = [sys.executable, "-m", "cluster.operators", str(server.kubeconfig)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
    yield log
    process.terminate()
    process.wait(timeout=30)
    assert "Traceback" not in log.read_text(), log.read_text()[-4000:]


@pytest.mark.usefixtures("_images")
def test_two_workers_train_together_and_the_job_completes(kubectl: Kubectl, operator: Path) -> None:
    kubectl("apply", "-f", str(EXAMPLE))
    done = "--for=jsonpath={.status.phase}=Completed"
    kubectl("wait", done, "paddlejob/collective-digits", "--timeout=300s", timeout=310)
    pods = json.loads(kubectl("get", "pods", "-o", "json").stdout)["items"]
    names = sorted(pod["metadata"]["name"] for pod in pods)
    assert names == ["collective-digits-worker-0", "collective-digits-worker-1"]
    for rank, name in enumerate(names):
        assert f"rank {rank} of 2:" in kubectl("logs", name).stdout
    assert "Completed" in kubectl("get", "pdj", "collective-digits").stdout


@pytest.mark.usefixtures("operator")
def test_a_job_that_cannot_be_is_refused_by_the_schema(kubectl: Kubectl) -> None:
    body = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "bad"}}
    refused = kubectl(
        "create", "-f", "-", input=json.dumps({**body, "spec": {"worker": {"replicas": "two"}}}), check=False
    )
    assert refused.returncode != 0
    assert "spec.worker.replicas" in refused.stderr
