"""Paddle's own elastic launcher on the embedded platform: workers meet in etcd and form the job among themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from embedded.test_examples import apply, objects
from embedded.test_paddlejob import finished
from harness import Kubectl, until
from scenarios.hands import read

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(300)]


def start(kubectl: Kubectl, folder: Path, *, steps: int, pause: float) -> str:
    """etcd of the example, and the job of the example with a checkpoint of the test's own."""
    apply(kubectl, "paddlejob/elastic-etcd.yaml")
    (job,) = objects("programs/elastic-launcher.yaml")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"][0]["hostPath"]["path"] = str(folder)
    pod["containers"][0]["args"][-3:] = [str(steps), "--pause", str(pause)]
    kubectl("apply", "-f", "-", input=json.dumps(job))
    return str(job["metadata"]["name"])


def test_two_workers_meet_in_etcd_and_train(kubectl: Kubectl, tmp_path: Path) -> None:
    name = start(kubectl, tmp_path, steps=120, pause=0)
    status = finished(kubectl, name, timeout=200)
    assert status["phase"] == "Completed", kubectl("logs", f"{name}-worker-0", "--previous", check=False).stdout[
        -3000:
    ] + str(status)
    log = kubectl("logs", f"{name}-worker-0").stdout
    assert "replicas 2[1:2], elastic True" in log, log[-3000:]
    assert re.search(r"rank \d of 2 starts at step 0", log), log[-3000:]
    losses = [float(text) for text in re.findall(r"loss ([0-9.]+) workers 2", log)]
    assert losses[-1] < losses[0]
    pods = read(kubectl, "pods", "-l", "paddlepaddle.org/role=worker")["items"]
    assert {pod["spec"]["restartPolicy"] for pod in pods} == {"OnFailure"}, "kubelets restart; the launcher forms"


@pytest.mark.soak
def test_a_worker_less_goes_on_from_the_checkpoint(kubectl: Kubectl, tmp_path: Path) -> None:
    name = start(kubectl, tmp_path, steps=600, pause=0.1)
    log = ""

    def trained(workers: int) -> bool:
        nonlocal log
        log = kubectl("logs", f"{name}-worker-0").stdout
        return f"workers {workers}" in log

    until(lambda: trained(2), timeout=120)
    kubectl("scale", f"pdj/{name}", "--replicas=1")
    until(lambda: trained(1), timeout=120)
    resumed = int(re.findall(r"rank 0 of 1 starts at step (\d+)", log)[-1])
    assert resumed >= 10, "from a checkpoint of the two"
