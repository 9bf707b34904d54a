"""Real training runs in which processes are killed: ranks, servers, the whole control plane.

What must hold: the loss goes on from the checkpoint, never from the beginning; every restart is counted once; and a job
that is killed more often than its budget allows fails with the class of failure in its status.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import pdc, until
from paddlecloud.cli import machine
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet import processes, wire
from scenarios.hands import EXAMPLES

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(300)]


class Cluster:
    """A platform of the test's own, and the hands to hurt it."""

    def __init__(self, data: Path, kubectl: str) -> None:
        self.data = data
        self._kubectl = kubectl
        self.env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}

    def pdc(self, *args: str, **options: Any) -> str:
        return pdc(*args, env=self.env, **options).stdout

    def kubectl(self, *args: str) -> None:
        subprocess.run([self._kubectl, *args], env=self.env, check=True, capture_output=True, timeout=30)

    def apply(self, obj: Object) -> None:
        self.pdc("apply", "-f", "-", input=json.dumps(obj))

    def status(self, job: str) -> Object:
        found: Object = json.loads(self.pdc("get", "pdj", job, "-o", "json")).get("status") or {}
        return found

    def log(self, pod: str) -> str:
        return self.pdc("logs", f"pod/{pod}", check=False)

    def phase(self, job: str, *phases: str, timeout: float = 60) -> Object:
        until(lambda: self.status(job).get("phase") in phases, timeout=timeout)
        return self.status(job)

    def kill(self, pod: str) -> None:
        """SIGKILL the program of a pod and everything it started."""
        uid = json.loads(self.pdc("get", "pod", pod, "-o", "json"))["metadata"]["uid"]
        state = wire.read_json(str(self.data / "pods" / uid / wire.STATUS)) or {}
        pids = [container["pid"] for container in state["containers"].values() if container.get("pid")]
        assert pids, state
        for pid in pids:
            processes.kill_all(lambda pid=pid: [pid, *processes.descendants(pid)])  # type: ignore[misc]

    def kill_control_plane(self) -> None:
        found = machine.find(self.data)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{found.pid}").exists())
        pdc("up", "--data", str(self.data), "--port", "0")


@pytest.fixture
def cluster(tmp_path: Path, kubectl_binary: str) -> Iterator[Cluster]:
    data = tmp_path / "data"
    pdc("up", "--data", str(data), "--port", "0")
    yield Cluster(data, kubectl_binary)
    pdc("down", "--data", str(data))


def example(path: str) -> Object:
    job: Object = yaml.safe_load((EXAMPLES / path).read_text())
    return job


def losses(log: str) -> dict[int, float]:
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+)/\d+ loss ([0-9.]+)", log)}


def test_training_goes_on_from_its_checkpoint_whatever_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    job = example("programs/elastic.yaml")
    job["spec"]["backoffLimit"] = 1
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"][0]["hostPath"]["path"] = str(tmp_path / "checkpoint")
    pod["containers"][0]["command"][-3:] = ["400", "--pause", "0.04"]
    cluster.apply(job)
    curve: dict[int, float] = {}

    def saved_up_to(step: int) -> bool:
        curve.update(losses(cluster.log("elastic-worker-0")))
        return max(curve, default=0) >= step

    until(lambda: saved_up_to(30), timeout=60)
    first = curve[min(curve)]
    before = max(curve)

    cluster.kill("elastic-worker-1")
    until(lambda: cluster.status("elastic").get("restarts") == 1)
    cluster.phase("elastic", "Running")
    until(lambda: "starts at step" in cluster.log("elastic-worker-0"))
    resumed = int(re.findall(r"starts at step (\d+)", cluster.log("elastic-worker-0"))[0])
    assert resumed >= before - 10, "a checkpoint every ten steps"

    pods_before = cluster.status("elastic")["worker"]["refs"]
    cluster.kill_control_plane()
    target = max(curve) + 40
    until(lambda: saved_up_to(target))
    status = cluster.status("elastic")
    assert (status["phase"], status["restarts"]) == ("Running", 1), "nobody noticed"
    assert status["worker"]["refs"] == pods_before

    cluster.kill("elastic-worker-0")
    status = cluster.phase("elastic", "Failed")
    assert status["reason"] == "BackoffLimitExceeded"
    assert status["failures"][-1]["failureClass"] == "Killed"
    assert [failure["action"] for failure in status["failures"]] == ["Restart", "Fail"]

    cluster.kubectl("annotate", "pdj/elastic", "paddlepaddle.org/retry-at=now")
    until(lambda: saved_up_to(max(curve) + 10), timeout=60)
    at = sorted(curve)
    assert curve[at[-1]] < 0.5 * first, "it went on learning; it did not begin anew"


def test_a_killed_server_restarts_the_gang_and_the_job_still_learns(cluster: Cluster) -> None:
    job = example("manual/wide-and-deep.yaml")
    job["metadata"]["name"] = "wide"
    cluster.apply(job)
    cluster.phase("wide", "Running")
    until(lambda: "epoch 1/" in cluster.log("wide-worker-0"), timeout=90)
    cluster.kill("wide-ps-1")
    until(lambda: cluster.status("wide").get("restarts") == 1)
    status = cluster.phase("wide", "Completed", "Failed", timeout=120)
    assert (status["phase"], status["restarts"]) == ("Completed", 1), status
    assert status["failures"][-1]["failureClass"] == "Killed"
    assert status["failures"][-1]["pod"] == "wide-ps-1"
    assert "learned" in cluster.log("wide-worker-0")
