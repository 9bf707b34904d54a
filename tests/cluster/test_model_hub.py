"""The chart's hub on a cluster: its Deployment on a bucket, and services that get their models from it.

What it does for people is in `scenarios/test_model_hub.py`; here are its pods, and the chart's controller of services.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_exercise import NO_KNATIVE
from embedded.hub_world import KIND, follows_its_alias, push_two, sent
from embedded.serving_world import read
from harness import Completed, Kubectl, Target, need, pdc, until
from paddlecloud.modelhub import names
from paddlecloud.pipelines.components.image import IMAGE
from scenarios.model_stores import UPLOADER, ModelStore, model_store

from .operators import NAMESPACE, pods_of
from .test_model_store import SERVING

pytestmark = [
    pytest.mark.full,
    pytest.mark.paddle,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operators"),
]

Run = Callable[..., Completed]
COMPONENT = pods_of("modelhub")
SHARED = "/var/cache/paddlecloud/models"
"""Nodes of the fixture share the disk of one machine; below /var/cache each has its own."""


@pytest.fixture
def start(server: Target, kubectl_binary: str, tmp_path: Path) -> Iterator[Callable[..., ModelStore]]:
    """The chart with a bucket and other values, until the test ends."""
    with ExitStack() as opened:
        yield lambda **values: opened.enter_context(model_store(server, kubectl_binary, tmp_path, **values))


@pytest.fixture
def token(kubectl: Kubectl, namespace: str) -> str:
    """Of an account that may edit its namespace: the kubeconfig of a cluster's administrator has none."""
    kubectl("create", "serviceaccount", "member")
    kubectl("create", "rolebinding", "member", "--clusterrole=edit", f"--serviceaccount={namespace}:member")
    return kubectl("create", "token", "member").stdout.strip()


def through(hub: ModelStore, server: Target, namespace: str, token: str) -> Run:
    env = {**os.environ, "KUBECONFIG": str(server.kubeconfig), names.VARIABLE: hub.hub, names.TOKEN_VARIABLE: token}

    def run(*args: str, check: bool = True) -> Completed:
        return pdc("-n", namespace, *args, env=env, check=check, timeout=400)

    return run


def files_sent(kubectl: Kubectl) -> int:
    """By all pods of the hub since each began."""
    pods = read(kubectl, "pods", "-n", NAMESPACE, "-l", COMPONENT)["items"]
    place = f"/api/v1/namespaces/{NAMESPACE}/pods/%s:{names.PORT}/proxy/metrics"
    return sum(sent(kubectl("get", "--raw", place % pod["metadata"]["name"]).stdout) for pod in pods)


def test_the_hubs_pods_are_closed_and_an_upload_goes_on_when_one_is_killed(
    start: Callable[..., ModelStore], server: Target, kubectl: Kubectl, namespace: str, token: str, tmp_path: Path
) -> None:
    hub = start(models__hubReplicas="2")
    pods = read(kubectl, "pods", "-n", NAMESPACE, "-l", COMPONENT)["items"]
    assert len(pods) == 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert not any("serviceaccount" in mount["mountPath"] for mount in container["volumeMounts"])
    (tmp_path / "big").mkdir()
    content = os.urandom((3 << 20) + 100)
    (tmp_path / "big" / "weights.onnx").write_bytes(content)
    command = [sys.executable, "-c", UPLOADER, hub.hub, token, namespace, str(tmp_path / "big")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"half\n"
        kubectl("delete", "pods", "-n", NAMESPACE, "-l", COMPONENT, "--grace-period=0", "--force")
        killed.kill()
    kubectl("rollout", "status", "-n", NAMESPACE, "deployment", "-l", COMPONENT, "--timeout=120s", timeout=130)
    run = through(hub, server, namespace, token)
    assert "big:1 pushed" in run("model", "push", "big", str(tmp_path / "big")).stdout
    run("model", "pull", "big:1", str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "weights.onnx").read_bytes() == content
    log = kubectl("logs", "-n", NAMESPACE, "-l", COMPONENT, "--tail=-1").stdout
    assert "Traceback" not in log
    assert token not in log
    run("model", "rm", "big", "-y", "--force")


def test_a_pod_beside_the_hub_finds_it_and_other_pods_are_given_its_address(
    start: Callable[..., ModelStore], server: Target, kubectl: Kubectl, namespace: str
) -> None:
    """As the steps of pipelines, which run in the namespace of the chart unless it is said otherwise."""
    server.offer(IMAGE)
    start()
    program = "import os; from paddlecloud.modelhub import discovery; print('hub', discovery.address(os.environ))"
    found = {}
    for place in (NAMESPACE, namespace):
        run = ("run", "finds-the-hub", "-n", place, f"--image={IMAGE}", "--restart=Never", "--command", "--")
        kubectl(*run, "python", "-c", program)
        phase = ("get", "pod", "finds-the-hub", "-n", place, "-o", "jsonpath={.status.phase}")
        until(lambda phase=phase: kubectl(*phase).stdout, "Succeeded", timeout=200)
        found[place] = kubectl("logs", "finds-the-hub", "-n", place).stdout.strip()
        kubectl("delete", "pod", "finds-the-hub", "-n", place, "--wait=false")
    assert found == {NAMESPACE: f"hub http://{names.SERVICE}:{names.PORT}", namespace: "hub"}


def test_services_of_the_chart_follow_an_alias_on_real_knative(
    start: Callable[..., ModelStore], server: Target, kubectl: Kubectl, namespace: str, token: str, tmp_path: Path
) -> None:
    have = kubectl("get", "deployment", "activator", "-n", "knative-serving", check=False).returncode == 0
    need("knative", have=have, hint="`make cluster WITH=knative`")
    gateway = kubectl("get", "service", "kourier", "-n", "kourier-system", "-o", "jsonpath={.spec.clusterIP}").stdout
    server.offer(SERVING)
    hub = start(serving__enabled="true", servingImage=SERVING)
    run = through(hub, server, namespace, token)
    push_two(run, tmp_path)
    run("serve", "ocr@production", "--follow", "--min", "1", "--timeout", "6m")
    assert files_sent(kubectl) == 1, "one pod, one file"
    follows_its_alias(run, kubectl, str(read(kubectl, KIND, "ocr")["status"]["url"]), gateway, timeout=300)
    forward = json.loads(run("trace", "model/ocr:1", "-o", "json").stdout)
    assert "ocr" in json.dumps(forward)
    kept = run("model", "rm", "ocr:1", "-y", check=False)
    assert (kept.returncode, "PaddleService ocr" in kept.stderr) == (4, True), kept.stderr
    kubectl("delete", KIND, "ocr", "--wait")
    run("model", "rm", "ocr", "-y", "--force")


def test_the_second_replica_on_a_node_copies_nothing(
    start: Callable[..., ModelStore], server: Target, kubectl: Kubectl, namespace: str, token: str, tmp_path: Path
) -> None:
    """Without Knative, and with a folder of nodes: more replicas than nodes, and each node fetches at most once."""
    server.offer(SERVING)
    nodes = len(read(kubectl, "nodes")["items"])
    program = {"serving": {"command": ["python", "-c"], "args": [NO_KNATIVE]}}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(program))
    hub = start(file=str(values), serving__enabled="true", servingImage=SERVING, nodeFolders__served=SHARED)
    run = through(hub, server, namespace, token)
    push_two(run, tmp_path)
    run("serve", "ocr:1", "--min", str(nodes + 1), "--timeout", "6m")
    pods = [pod["metadata"]["name"] for pod in _running(kubectl)]
    assert len(pods) > nodes
    said = [kubectl("logs", name).stdout for name in pods]
    shared = [text for text in said if re.search("its files were on the node", text)]
    used = {pod["spec"]["nodeName"] for pod in _running(kubectl)}
    assert files_sent(kubectl) == len(used)
    assert len(shared) == len(pods) - len(used)
    kubectl("delete", KIND, "ocr", "--wait")
    run("model", "rm", "ocr", "-y", "--force")


def _running(kubectl: Kubectl) -> list[dict[str, Any]]:
    def ready() -> list[dict[str, Any]]:
        found = read(kubectl, "pods", "-l", "PaddleService=ocr")["items"]
        return found if all(pod["status"]["phase"] == "Running" for pod in found) else []

    found: list[dict[str, Any]] = until(ready, timeout=120)
    return found
