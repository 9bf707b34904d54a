"""The chart on the embedded platform, by real Helm, under its own accounts: installed, tested, upgraded, rolled back.

The platform runs without controllers of its own, so that everything here is done by the pods of the chart.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from rendered import CHART, DEPLOY, helm

from chart_exercise import COSCHEDULING, NO_KNATIVE, Exercise, job, sample_set
from chart_rights import ON_A_CLUSTER, granted, refused, used
from harness import Kubectl, Target, pdc, until
from unit.chart.test_chart_rendering import keys_of_the_original, render

PDC = (sys.executable, "-m", "paddlecloud.cli.main", "-n", "kubeflow")
HELM = helm()
CONTEXT = "paddlecloud-local"
VALUES = "tests.image=python:3.11,runtimeImage=paddlecloud/runtime,paddlejob.kubeflow=true"
FLAGS = ["--namespace", "kubeflow", "--reuse-values", "--timeout", "120s", "--wait"]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Target]:
    data = tmp_path / "platform"
    pdc("up", "--data", str(data), "--port", "0", "--nodes", "2", "--no-controllers")
    yield Target(data / "kubeconfig", embedded=True)
    pdc("down", "--data", str(data))
    for mounted in [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if str(data) in line]:
        subprocess.run(["umount", "--lazy", mounted], check=True, timeout=30)  # after a failure in mid-story


def test_a_release_from_its_installation_to_its_end(bare: Target, kubectl_binary: str, tmp_path: Path) -> None:
    """One story, because an installation is the dear part of it: each step finds what the steps before it left."""

    def run(*command: str, input: str | None = None) -> str:
        done = subprocess.run(command, env=bare.env, capture_output=True, text=True, input=input, timeout=200)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def kubectl(*arguments: str, input: str | None = None) -> str:
        return run(kubectl_binary, "-n", "kubeflow", *arguments, input=input)

    def work(*arguments: str, input: str | None = None) -> str:
        return run(kubectl_binary, "-n", "work", *arguments, input=input)

    def leaders() -> dict[str, str]:
        pods = json.loads(kubectl("get", "pods", "-l", "paddlecloud.org/leads", "-o", "json"))["items"]
        alive = [pod["metadata"] for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        return {meta["labels"]["paddlecloud.org/leads"]: meta["name"] for meta in alive}

    # Looked at and installed by pdc, judged by Helm.
    assert "not installed" in run(*PDC, "doctor", "--context", CONTEXT)
    kubectl("apply", "-f", "-", input=json.dumps(COSCHEDULING))
    installed = run(*PDC, "install", "--set", VALUES, "--timeout", "120s")
    assert "helm test pdc --namespace kubeflow" in installed
    assert "pdc-paddlecloud-paddlejob: 2/2 ready" in installed
    assert "3 Deployments, all of them ready" in run(*PDC, "doctor", "--context", CONTEXT)
    pods = [line.split() for line in kubectl("get", "pods", "--no-headers").splitlines()]
    for name in ("paddlejob", "sampleset", "serving"):
        shown = [pod[1:3] for pod in pods if pod[0].startswith(f"pdc-paddlecloud-{name}-")]
        assert shown == [["1/1", "Running"]] * 2, pods
    kubectl("create", "namespace", "work")
    exercise = Exercise(work, image="python:3.11", kubeflow=True, files=_files(kubectl))
    exercise.begin()
    judged = run(HELM, "test", "pdc", "--namespace", "kubeflow", "--logs", "--timeout", "120s")
    assert "ok   paddlejob: Completed" in judged
    assert "ok   paddleservice: Ready" in judged
    exercise.follow_up()

    # A job that outlives its controllers: every leader is killed, others go on; nothing is made twice.
    exercise.apply(job("survivor", workers=2))
    until(exercise.phase("survivor", "Running"))
    before = _identities(work, "survivor")
    first = leaders()
    assert len(first) == 3
    kubectl("delete", "pod", *first.values(), "--grace-period=0", "--force")
    until(lambda: len(set(leaders().values()) - set(first.values())) == 3)
    exercise.end()

    # Upgraded, to controllers that know of no Knative, and back, while it runs.
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump({"serving": {"command": ["python", "-c"], "args": [NO_KNATIVE]}}))
    more = ["--values", str(changed), "--set", "metrics.dashboard.enabled=true"]
    run(HELM, "upgrade", "pdc", str(CHART), *FLAGS, *more)
    assert kubectl("get", "configmap", "pdc-paddlecloud-dashboard", "-o", "name")
    exercise.without_knative()
    run(HELM, "rollback", "pdc", "1", "--namespace", "kubeflow", "--wait", "--timeout", "120s")
    assert "dashboard" not in kubectl("get", "configmaps", "-o", "name")
    for worker in range(2):
        work("exec", f"survivor-worker-{worker}", "--", "touch", "/tmp/go")
    until(exercise.phase("survivor", "Completed"))
    assert _identities(work, "survivor") == before

    _no_right_too_many(bare, with_sets=bool(exercise.files))
    run(*PDC, "uninstall")
    assert exercise.field("pdj", "survivor", ".status.phase") == "Completed", "what users made stays"
    assert kubectl("get", "deployments", "-o", "name") == ""


def _files(kubectl: Callable[..., str]) -> dict[str, str]:
    """The file system for samples that every platform offers, if this machine can mount one."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        return {}
    found = json.loads(kubectl("get", "secret", "data-center", "-o", "json"))["data"]
    return {name: base64.b64decode(value).decode() for name, value in found.items()}


def _identities(kubectl: Callable[..., str], name: str) -> str:
    return kubectl("get", "pods", "-l", f"paddlepaddle.org/job-name={name}", "-o", "jsonpath={.items[*].metadata.uid}")


def _no_right_too_many(platform: Target, *, with_sets: bool) -> None:
    """What the chart grants is what its accounts used, except for what only a cluster can show."""
    log = platform.kubeconfig.with_name("audit.log")
    objects = render(VALUES)
    given, taken = granted(objects), used(log, "kubeflow")
    if not with_sets:
        del given["sampleset-sa"]
    unused = {(account, right) for account, rights in given.items() for right in rights - taken.get(account, set())}
    assert unused <= ON_A_CLUSTER, "granted and never used:\n" + "\n".join(
        f"{a}: {r}" for a, r in unused - ON_A_CLUSTER
    )
    assert refused(log, "kubeflow") == []


def test_the_server_would_take_every_plain_manifest(server: Target, kubectl_binary: str) -> None:
    files = [word for path in sorted(DEPLOY.rglob("*.yaml")) for word in ("-f", str(path))]
    command = [kubectl_binary, "apply", "--server-side", "--force-conflicts", "--dry-run=server", *files]
    done = subprocess.run(command, env=server.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "deployment.apps/paddle-paddlecloud-paddlejob serverside-applied (server dry run)" in done.stdout


def test_uninstalling_with_data_waits_for_what_controllers_clean_up(tmp_path: Path, kubectl_binary: str) -> None:
    """Helm is played: it notes which kinds were still there when it was asked to remove the controllers."""
    data, noted = tmp_path / "platform", tmp_path / "noted"
    played = tmp_path / "bin" / "helm"
    played.parent.mkdir()
    played.write_text(f"#!/bin/sh\n{kubectl_binary} get crd -o name > {noted}\n")
    played.chmod(0o755)
    pdc("up", "--data", str(data), "--port", "0", "--no-controllers")
    target = Target(data / "kubeconfig", embedded=True)
    env = {**target.env, "PATH": f"{played.parent}:{os.environ['PATH']}"}
    pdc("crds", "--apply", env=env)
    program = [sys.executable, "-m", "paddlecloud.controllers", "sampleset", "samplejob", "--health-port", "0"]
    controllers = subprocess.Popen(program, env=env)
    try:

        def kubectl(*arguments: str, input: str | None = None) -> str:
            command = [kubectl_binary, *arguments]
            return subprocess.run(command, env=env, capture_output=True, text=True, input=input, timeout=60).stdout

        kubectl("apply", "-f", "-", input=json.dumps(sample_set("kept", noSync=True, partitions=1)))
        until(lambda: kubectl("get", "sampleset", "kept", "-o", "jsonpath={.metadata.finalizers}") != "")
        pdc("-y", "uninstall", "--with-data", env=env)
        assert [line for line in noted.read_text().splitlines() if "paddlepaddle.org" in line] == []
    finally:
        controllers.terminate()
        controllers.wait(timeout=30)
        pdc("down", "--data", str(data))


def test_values_that_no_longer_do_anything_are_named_after_the_installation(server: Target) -> None:
    flags = [word for value in keys_of_the_original() for word in ("--set", value)]
    command = [HELM, "install", "notes", str(CHART), "--dry-run=server", *flags]
    reported = subprocess.run(command, env=server.env, capture_output=True, text=True, timeout=60).stdout
    notes = reported.partition("NOTES:")[2]
    obsolete = ("global.storageClass", "kubeVersion", "serving.proxyImage", "paddlejob.image.debug")
    assert [name for name in obsolete if f"- {name} has no meaning here" not in notes] == []
    assert "- redis is asked for." in notes, "by tags.all-dep"


def test_the_network_policies_allow_the_port_that_this_api_server_has(server: Target, kubectl: Kubectl) -> None:
    port = kubectl("get", "endpointslice", "kubernetes", "-n", "default", "-o", "jsonpath={.ports[0].port}").stdout
    command = [HELM, "template", "pdc", str(CHART), "--dry-run=server"]
    command += ["--api-versions", "networking.k8s.io/v1/NetworkPolicy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=server.env, check=True)
    policies = [each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == "NetworkPolicy"]
    assert len(policies) == 3
    for policy in policies:
        allowed = [rule["port"] for rule in policy["spec"]["egress"][0]["ports"]]
        assert allowed == [53, 53, 443, 6443, int(port)]


def test_a_platform_that_runs_the_controllers_itself_needs_no_chart(server: Target) -> None:
    refused = pdc("install", env=server.env, check=False)
    assert refused.returncode == 4
    assert "the embedded platform runs these controllers itself" in refused.stderr
    assert "pdc up --no-controllers" in refused.stderr
