"""PaddleJobs on the embedded platform, by real kubectl and, where marked, with real Paddle."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Kubectl, pdc, until
from paddlecloud.cli import machine
from paddlecloud.kube.resource import Object

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
WRITES = ("create", "update", "patch", "delete", "deletecollection")


def job(name: str, command: str, *, workers: int = 2, ps: int = 0, **spec: object) -> str:
    """A PaddleJob whose program is a line of shell. With gloo, because no server here would ever listen."""

    def role(replicas: int) -> Object:
        container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", command]}
        return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}

    roles = {"worker": role(workers), **({"ps": role(ps)} if ps else {})}
    return json.dumps(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Never", "withGloo": 1, **roles, **spec},
        }
    )


def read(kubectl: Kubectl, *args: str) -> Object:
    found: Object = json.loads(kubectl("get", *args, "-o", "json").stdout)
    return found


def phase_is(kubectl: Kubectl, name: str, *phases: str) -> Callable[[], bool]:
    return lambda: (read(kubectl, "pdj", name).get("status") or {}).get("phase") in phases


def finished(kubectl: Kubectl, name: str, *, timeout: float = 60) -> Object:
    until(phase_is(kubectl, name, "Completed", "Failed"), timeout=timeout)
    status: Object = read(kubectl, "pdj", name)["status"]
    return status


def test_a_collective_job_completes_and_its_pods_know_each_other(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=job("two", "env | grep -E '^(PADDLE|POD_IP|TRAIN)' | sort"))
    status = finished(kubectl, "two")
    assert (status["phase"], status["mode"]) == ("Completed", "Collective")
    seen = []
    for index in range(2):
        lines = kubectl("logs", f"two-worker-{index}").stdout.splitlines()
        env = dict(line.split("=", 1) for line in lines)
        assert env["PADDLE_TRAINER_ID"] == str(index)
        assert env["TRAINING_ROLE"] == "TRAINER"
        endpoint = f"{env['POD_IP']}:{env['PADDLE_PORT']}"
        assert env["PADDLE_CURRENT_ENDPOINT"] == endpoint
        assert env["PADDLE_TRAINER_ENDPOINTS"].split(",")[index] == endpoint
        seen.append(env["PADDLE_TRAINER_ENDPOINTS"])
    assert seen[0] == seen[1]
    assert len({text.rpartition(":")[0] for text in seen[0].split(",")}) == 2, "Paddle counts distinct hosts"


def test_get_prints_the_columns_of_the_manual(kubectl: Kubectl) -> None:
    program = 'test "$TRAINING_ROLE" = TRAINER || exec sleep 600'
    kubectl("apply", "-f", "-", input=job("wide", program, ps=2))
    finished(kubectl, "wide")
    header, row = kubectl("get", "pdj", "wide").stdout.splitlines()
    assert header.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert row.split()[:5] == ["wide", "Completed", "PS", "2/2", "0/2"]


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

    until(lambda: len(writes()) > workers + ps, timeout=10)  # the log is written in the background
    assert len(writes()) <= 2 * (workers + ps) + 8, writes()


def test_a_failing_worker_fails_the_job_with_its_last_words(kubectl: Kubectl) -> None:
    body = json.loads(job("doomed", "echo out of luck >&2; exit 3"))
    body["spec"]["worker"]["template"]["spec"]["restartPolicy"] = "Never"
    kubectl("apply", "-f", "-", input=json.dumps(body))
    status = finished(kubectl, "doomed")
    assert status["phase"] == "Failed"
    assert "3" in status["message"], status["message"]


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
    until(phase_is(kubectl, "again", "Completed"), timeout=30)
    conditions = {c["type"]: c["status"] for c in read(kubectl, "pdj", "again")["status"]["conditions"]}
    assert (conditions["Failed"], conditions["Succeeded"]) == ("False", "True")


def test_deleting_a_job_takes_everything_along(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", input=job("gone", "exec sleep 600", ps=1))
    until(phase_is(kubectl, "gone", "Running"), timeout=30)
    kubectl("delete", "pdj", "gone")
    until(lambda: not read(kubectl, "pods")["items"], timeout=30)
    names = [item["metadata"]["name"] for item in read(kubectl, "configmaps")["items"]]
    assert names == ["kube-root-ca.crt"]


# --- real Paddle ---


@pytest.mark.paddle
@pytest.mark.timeout(900)
def test_collective_training_learns_and_all_ranks_agree(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(EXAMPLES / "paddlejob" / "collective-digits.yaml"))
    assert finished(kubectl, "collective-digits", timeout=800)["phase"] == "Completed"
    for index in range(2):
        log = kubectl("logs", f"collective-digits-worker-{index}").stdout
        accuracy = float(re.findall(r"accuracy[ =:]+([0-9.]+)", log)[-1])
        assert accuracy > 0.9, log[-2000:]
        assert re.search(r"weights.*(equal|same|agree)", log), log[-2000:]


@pytest.mark.paddle
@pytest.mark.timeout(900)
def test_the_manuals_wide_and_deep_trains_on_parameter_servers(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(EXAMPLES / "manual" / "wide-and-deep.yaml"))
    status = finished(kubectl, "wide-ande-deep", timeout=800)
    assert status["phase"] == "Completed", status
    assert (status["ps"]["ready"], status["worker"]["ready"]) == ("2/2", "0/2")
    for index in range(2):
        log = kubectl("logs", f"wide-ande-deep-worker-{index}").stdout
        costs = [float(text) for text in re.findall(r"epoch .* cost ([0-9.]+)", log)]
        assert len(costs) >= 2, log[-2000:]
        assert costs[-1] < 0.85 * costs[0], costs


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

    until(lambda: [phase for _, phase in pods().values()] == ["Running"] * 2, timeout=30)
    before = pods()
    found = machine.find(mortal)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{found.pid}").exists(), timeout=10)
    (gate / "open").touch()  # both pods end while nobody looks
    pdc("up", "--data", str(mortal), "--port", "0")
    done = pdc("wait", "pdj/steady", "--for=jsonpath={.status.phase}=Completed", "--timeout=30s", env=env)
    assert done.returncode == 0
    after = pods()
    assert {name: uid for name, (uid, _) in after.items()} == {name: uid for name, (uid, _) in before.items()}
    assert [phase for _, phase in after.values()] == ["Succeeded"] * 2
