"""PaddleJobs on the embedded platform, by real kubectl: what only it can show. The scenarios tell a job's life."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Kubectl, pdc, until
from paddlecloud.kube.resource import Object
from paddlecloud.platform import endpoint
from scenarios.hands import job, read

WRITES = ("create", "update", "patch", "delete", "deletecollection")


def phase_is(kubectl: Kubectl, name: str, *phases: str) -> Callable[[], bool]:
    return lambda: (read(kubectl, "pdj", name).get("status") or {}).get("phase") in phases


def finished(kubectl: Kubectl, name: str, *, timeout: float = 60) -> Object:
    until(phase_is(kubectl, name, "Completed", "Failed"), timeout=timeout)
    status: Object = read(kubectl, "pdj", name)["status"]
    return status


@pytest.mark.parametrize(("workers", "ps"), [(2, 2), (12, 0)])
def test_a_life_costs_at_most_two_writes_per_pod_and_eight(
    kubectl: Kubectl, namespace: str, platform_data: Path, workers: int, ps: int
) -> None:
    program = 'test "$TRAINING_ROLE" = TRAINER || exec sleep 600'
    kubectl("apply", "-f", "-", input=job("counted", program, workers=workers, ps=ps))
    assert finished(kubectl, "counted")["phase"] == "Completed"

    def writes() -> list[str]:
        entries = map(json.loads, (platform_data / "audit.log").read_text().splitlines())
        return [
            f"{entry['verb']} {entry['objectRef']['resource']}"
            for entry in entries
            if entry.get("userAgent", "").startswith("paddlejob-controller")
            and entry["verb"] in WRITES
            and entry.get("objectRef", {}).get("namespace") == namespace
        ]

    until(lambda: len(writes()) > workers + ps)  # the log is written in the background
    assert len(writes()) <= 2 * (workers + ps) + 8, writes()


def test_a_failed_job_is_run_again_when_asked(kubectl: Kubectl, tmp_path: Path) -> None:
    body = json.loads(job("again", "test -e /state/mended || { echo broken >&2; exit 3; }", backoffLimit=0))
    pod = body["spec"]["worker"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    pod["volumes"] = [{"name": "state", "hostPath": {"path": str(tmp_path)}}]
    kubectl("apply", "-f", "-", input=json.dumps(body))
    status = finished(kubectl, "again")
    assert (status["phase"], status["failures"][-1]["failureClass"]) == ("Failed", "UserError")
    (tmp_path / "mended").touch()
    kubectl("annotate", "pdj", "again", "paddlepaddle.org/retry-at=now")
    until(phase_is(kubectl, "again", "Completed"))
    conditions = {c["type"]: c["status"] for c in read(kubectl, "pdj", "again")["status"]["conditions"]}
    assert (conditions["Failed"], conditions["Succeeded"]) == ("False", "True")


def test_deleting_a_job_takes_everything_along(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=job("gone", "exec sleep 600", ps=1))
    until(phase_is(kubectl, "gone", "Running"))
    kubectl("delete", "pdj", "gone")
    until(lambda: not read(kubectl, "pods")["items"])
    names = [item["metadata"]["name"] for item in read(kubectl, "configmaps")["items"]]
    assert names == ["kube-root-ca.crt"]


# --- the control plane dies ---


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Path]:
    """A platform of the test's own, to be killed."""
    data = tmp_path / "data"
    pdc("up", "--data", str(data), "--port", "0")
    yield data
    pdc("down", "--data", str(data))


def test_a_job_goes_on_while_the_control_plane_is_dead_and_ends_as_it_would_have(
    mortal: Path, kubectl_binary: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    env = {**os.environ, "KUBECONFIG": str(mortal / "kubeconfig")}
    body = json.loads(job("steady", "while [ ! -e /gate/open ]; do sleep 0.1; done; echo done"))
    pod = body["spec"]["worker"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"] = [{"name": "gate", "mountPath": "/gate"}]
    pod["volumes"] = [{"name": "gate", "hostPath": {"path": str(gate)}}]
    manifest = tmp_path / "job.json"
    manifest.write_text(json.dumps(body))
    pdc("apply", "-f", str(manifest), env=env)

    def pods() -> dict[str, tuple[str, str]]:
        items = json.loads(pdc("get", "pods", "-o", "json", env=env).stdout)["items"]
        return {p["metadata"]["name"]: (p["metadata"]["uid"], p["status"].get("phase", "")) for p in items}

    until(lambda: [phase for _, phase in pods().values()] == ["Running"] * 2)
    before = pods()
    found = endpoint.find(mortal)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{found.pid}").exists())
    (gate / "open").touch()  # both pods end while nobody looks
    pdc("up", "--data", str(mortal), "--port", "0")
    done = pdc("wait", "pdj/steady", "--for=jsonpath={.status.phase}=Completed", "--timeout=60s", env=env)
    assert done.returncode == 0
    after = pods()
    assert {name: uid for name, (uid, _) in after.items()} == {name: uid for name, (uid, _) in before.items()}
    assert [phase for _, phase in after.values()] == ["Succeeded"] * 2
