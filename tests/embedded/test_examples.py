"""The PaddleJobs of the examples on the embedded platform, by real kubectl; those that train do so with real Paddle.

What the manual's own YAML shows is a scenario, played on clusters too; here is what only this platform has.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from embedded.test_paddlejob import finished, phase_is
from harness import Kubectl, Target, pdc, until
from paddlecloud.kube.resource import Object
from scenarios.hands import EXAMPLES, read

SERVER = "10.12.201.xx"
"""The NFS server of the manual."""


def objects(path: str) -> list[Object]:
    return [document for document in yaml.safe_load_all((EXAMPLES / path).read_text()) if document]


def apply(kubectl: Kubectl, path: str, **changes: object) -> str:
    """Apply a file in the test's own namespace; returns the name of its job. Everything else stays as written."""
    name = ""
    for obj in objects(path):
        obj["metadata"].pop("namespace", None)
        if obj["kind"] == "PaddleJob":
            name = obj["metadata"]["name"]
            obj["spec"].update(changes)
            ref = obj["spec"].get("sampleSetRef")
            if ref:
                ref.pop("namespace", None)
        kubectl("apply", "-f", "-", input=json.dumps(obj))
    return name


def costs(log: str) -> list[float]:
    return [float(text) for text in re.findall(r"epoch .* (?:cost|loss) ([0-9.]+)", log)]


def learned(kubectl: Kubectl, pod: str) -> None:
    seen = costs(kubectl("logs", pod).stdout)
    assert len(seen) >= 2, kubectl("logs", pod).stdout[-2000:]
    untrained = max(seen[0], math.log(2))  # who starts late finds a model that others have taught
    assert seen[-1] < 0.85 * untrained, seen


def explained(server: Target, namespace: str, name: str) -> str:
    return pdc("-n", namespace, "explain", f"pdj/{name}", env=server.env, check=False).stdout


def test_ctrl_c_ends_the_demo_without_a_traceback_and_stops_its_platform(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    demo = subprocess.Popen(
        [sys.executable, str(tmp_path / "examples" / "demo.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert demo.stdout is not None
    seen = [next(line for line in demo.stdout if line.startswith("2. "))]
    os.killpg(demo.pid, signal.SIGINT)
    seen += demo.communicate(timeout=90)[0].splitlines()
    assert demo.returncode == 130
    assert not [line for line in seen if "Traceback" in line]
    assert "interrupted; `pdc up --data" in seen[-1]
    assert any(line.startswith("stopped") for line in seen)


@pytest.fixture
def nas(platform_data: Path, tmp_path: Path) -> Iterator[Path]:
    """The manual's NFS share as a folder: given to the platform when the test says so."""
    share = platform_data / "nfs" / SERVER / "nas"
    share.parent.mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "nas" / "wide_and_deep"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text((EXAMPLES / "programs" / "wide_and_deep.py").read_text())
    yield share
    share.unlink(missing_ok=True)


@pytest.fixture(scope="module", autouse=True)
def nginx(server: Target) -> Iterator[str]:
    """Upstream's pods that are no servers. Their workers wait for them for half a minute, beside other tests."""
    name = "no-servers"
    (sample,) = objects("paddlejob/nginx.yaml")
    sample["metadata"]["namespace"] = name
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    both = {"apiVersion": "v1", "kind": "List", "items": [home, sample]}
    pdc("apply", "-f", "-", input=json.dumps(both), env=server.env)
    yield name
    pdc("delete", "namespace", name, "--yes", env=server.env)


# Without real Paddle


@pytest.mark.parametrize("path", ["paddlejob/resnet.yaml", "paddlejob/elastic-resnet.yaml"])
def test_without_a_gpu_the_job_waits_and_says_why(kubectl: Kubectl, server: Target, namespace: str, path: str) -> None:
    name = apply(kubectl, path)
    until(lambda: "nvidia.com/gpu" in str(read(kubectl, "pdj", name).get("status", {}).get("message")))
    assert read(kubectl, "pdj", name)["status"]["phase"] == "Pending"
    assert "Insufficient nvidia.com/gpu" in explained(server, namespace, name)


def test_without_its_data_the_job_waits_and_says_for_what(kubectl: Kubectl) -> None:
    name = apply(kubectl, "paddlejob/pipeline.yaml")
    until(phase_is(kubectl, name, "Pending"), timeout=30)
    status = read(kubectl, "pdj", name)["status"]
    ready = {condition["type"]: condition["status"] for condition in status["conditions"]}["DataReady"]
    assert (ready, "not found" in status["message"]) == ("False", True)
    assert read(kubectl, "pods")["items"] == []


# With real Paddle


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_data_on_nfs_fails_to_mount_with_the_cause_and_trains_once_it_is_a_folder(
    kubectl: Kubectl, nas: Path, tmp_path: Path
) -> None:
    apply(kubectl, "manual/pv-pvc.yaml")
    until(lambda: read(kubectl, "pvc", "nfs-pvc").get("status", {}).get("phase") == "Bound")
    name = apply(kubectl, "manual/data-storage.yaml", cleanPolicy="Never")
    until(lambda: "FailedMount" in kubectl("get", "events").stdout)
    (failed, *_) = [e["message"] for e in read(kubectl, "events")["items"] if e["reason"] == "FailedMount"]
    assert f"nfs {SERVER}:/nas" in failed
    assert str(nas) in failed, "it says where the data is looked for"
    nas.symlink_to(tmp_path / "nas")
    try:
        assert finished(kubectl, name, timeout=240)["phase"] == "Completed"
        learned(kubectl, f"{name}-worker-0")
    finally:
        kubectl("delete", "pdj", name)
        kubectl("delete", "pvc/nfs-pvc", "pv/nfs-pv", "--wait=false")


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_an_elastic_job_goes_on_from_its_checkpoint_when_it_is_scaled(kubectl: Kubectl, tmp_path: Path) -> None:
    (job,) = objects("programs/elastic.yaml")
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["volumes"][0]["hostPath"]["path"] = str(tmp_path)
    pod["containers"][0]["command"][-3:] = ["400", "--pause", "0.05"]  # longer than reports may take
    kubectl("apply", "-f", "-", input=json.dumps(job))

    def step() -> int:
        return int((read(kubectl, "pdj", "elastic").get("status", {}).get("checkpoint") or {}).get("step") or 0)

    until(lambda: step() >= 20, timeout=90)
    before = kubectl("logs", "elastic-worker-0").stdout
    kubectl("scale", "pdj/elastic", "--replicas=1")
    status = finished(kubectl, "elastic", timeout=120)
    assert (status["phase"], status["generation"], status.get("restarts")) == ("Completed", 1, None)
    after = kubectl("logs", "elastic-worker-0").stdout
    resumed = int(re.findall(r"rank 0 of 1 starts at step (\d+)", after)[0])
    assert resumed >= 20
    losses = [float(text) for text in re.findall(r"loss ([0-9.]+)", before + after)]
    at_the_change = losses[before.count("loss") - 1 : before.count("loss") + 1]
    assert at_the_change[1] < losses[0], "the curve goes on; it does not begin anew"
    assert losses[-1] < 0.5 * losses[0], losses


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_a_single_process_learns(kubectl: Kubectl) -> None:
    status = finished(kubectl, apply(kubectl, "programs/single.yaml"), timeout=240)
    assert (status["phase"], status["mode"]) == ("Completed", "Single")
    assert re.search(r"y = (2\.9|3\.0)\d x \+ -(0\.9|1\.0)\d", kubectl("logs", "single-worker-0").stdout)


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_paddles_own_check_of_two_processes(kubectl: Kubectl) -> None:
    name = apply(kubectl, "paddlejob/simple.yaml")
    assert finished(kubectl, name, timeout=240)["phase"] == "Completed"
    assert "Distributed training completed" in kubectl("logs", f"{name}-worker-0").stdout


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_upstreams_deepfm_trains_without_gloo(kubectl: Kubectl) -> None:
    """Without gloo the workers are held until the servers listen; the misspelt policy keeps the pods."""
    name = apply(kubectl, "paddlejob/deepfm.yaml")
    assert finished(kubectl, name, timeout=240)["phase"] == "Completed"
    learned(kubectl, f"{name}-worker-0")
    assert "ServersDeaf" not in kubectl("get", "events").stdout


@pytest.mark.paddle
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("paddlejob/wide-and-deep.yaml", "PS"),
        ("paddlejob/wide-and-deep-podip.yaml", "PS"),
        ("paddlejob/wide-and-deep-service.yaml", "PS"),
        ("paddlejob/wide-and-deep-volcano.yaml", "PS"),
        ("paddlejob/helm-test.yaml", "PS"),
        ("paddlejob/robust.yaml", "Collective"),
    ],
)
def test_the_other_samples_come_to_run(kubectl: Kubectl, path: str, mode: str) -> None:
    """The programs are those that other tests train to the end: here the form of the YAML is new, and they sleep."""
    (job,) = objects(path)
    roles = {role: job["spec"][role] for role in ("ps", "worker") if role in job["spec"]}
    for role in roles.values():
        role["template"]["spec"]["containers"][0] |= {"command": ["sleep"], "args": ["600"]}
    name = apply(kubectl, path, **roles)
    until(phase_is(kubectl, name, "Running"), timeout=120)
    assert read(kubectl, "pdj", name)["status"]["mode"] == mode
    kubectl("delete", "pdj", name)


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_a_paddle_without_parameter_servers_fails_the_job_at_once_and_names_one_that_has_them(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text((EXAMPLES / "programs" / "wide_and_deep.py").read_text())
    (job,) = objects("manual/wide-and-deep.yaml")
    for role in ("ps", "worker"):
        pod = job["spec"][role]["template"]["spec"]
        mounts = [{"name": "code", "mountPath": "/code"}]
        command = ["python", "/code/train.py"]
        pod["containers"][0] |= {"image": "paddlecloud/paddle:3.3", "command": command, "volumeMounts": mounts}
        pod["volumes"] = [{"name": "code", "hostPath": {"path": str(tmp_path)}}]
    job["metadata"] = {"name": "too-new"}
    kubectl("apply", "-f", "-", input=json.dumps(job))
    status = finished(kubectl, "too-new", timeout=200)
    assert (status["phase"], status["reason"], status.get("restarts")) == ("Failed", "NoParameterServer", None)
    assert "use 2.6.2" in status["message"]


@pytest.mark.paddle
@pytest.mark.timeout(300)
def test_a_heter_job_is_accepted_by_every_role_and_stops_where_the_docs_say(kubectl: Kubectl) -> None:
    """Should this fail because it trains, Paddle has been mended: rejoice, and rewrite the page."""
    name = apply(kubectl, "programs/heter.yaml")
    status = finished(kubectl, name, timeout=240)
    assert (status["mode"], status["phase"], status["reason"]) == ("PS", "Failed", "UserError")
    stops = "AttributeError: 'tuple' object has no attribute 'merged_var'"
    assert stops in kubectl("logs", f"{name}-worker-0").stdout
    for role, word in (("ps", "PSERVER"), ("worker", "TRAINER"), ("heter", "HETER_TRAINER")):
        assert f"{word} accepted by Paddle 2.6.2" in kubectl("logs", f"{name}-{role}-0").stdout
    page = (EXAMPLES.parent / "docs" / "design" / "paddlejob.md").read_text()
    assert stops in page


def test_programs_that_are_no_servers_run_once_they_were_waited_for(kubectl: Kubectl, nginx: str) -> None:
    """The last of this file: the half minute is over by now."""
    (sample,) = objects("paddlejob/nginx.yaml")
    shown = ("get", "pdj", sample["metadata"]["name"], "-n", nginx, "--no-headers")
    until(lambda: kubectl(*shown).stdout.split()[1:5] == ["Running", "PS", "2/2", "2/2"])
    assert "ServersDeaf" in kubectl("get", "events", "-n", nginx).stdout
