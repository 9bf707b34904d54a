"""The manual's other PaddleJobs, as written: what each shows where something it asks for is missing, and where not.

Nobody here has its accelerators or its NFS server. A node that declares the first has the jobs train on the CPU,
through the images of those names that this project makes; the second is named as the cause.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from harness import Kubectl, Target, pdc, until

from .hands import EXAMPLES, Hands, apply, conditions, events, reached, read, status

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

NFS = "10.12.201.xx:/nas"


def put(kubectl: Kubectl, path: str, **changes: object) -> str:
    """Apply a file in the test's own namespace; the name of its job. All else stays as written."""
    name = ""
    for obj in filter(None, yaml.safe_load_all((EXAMPLES / path).read_text())):
        obj["metadata"].pop("namespace", None)
        if obj["kind"] == "PaddleJob":
            name = obj["metadata"]["name"]
            obj["spec"].update(changes)
            obj["spec"].get("sampleSetRef", {}).pop("namespace", None)
        apply(kubectl, json.dumps(obj))
    return name


def images(path: str) -> set[str]:
    return set(re.findall(r"image: (\S+)", (EXAMPLES / path).read_text()))


def explained(server: Target, namespace: str, name: str) -> str:
    return pdc("-n", namespace, "explain", f"pdj/{name}", env=server.env, check=False).stdout


@pytest.mark.core
@pytest.mark.parametrize(
    ("path", "lacks"),
    [("manual/resnet.yaml", "Insufficient nvidia.com/gpu"), ("manual/wide-and-deep-gpu.yaml", "selector")],
)
def test_without_what_it_asks_for_the_job_waits_and_says_why(
    kubectl: Kubectl, server: Target, namespace: str, path: str, lacks: str
) -> None:
    name = put(kubectl, path)

    def said() -> bool:
        return lacks.lower() in str(status(kubectl, name).get("message")).lower()

    until(said, timeout=60)
    assert status(kubectl, name)["phase"] == "Pending"
    assert lacks.lower() in explained(server, namespace, name).lower()


@pytest.mark.core
@pytest.mark.parametrize("path", ["manual/ppocrv3.yaml", "manual/ppyoloe.yaml", "paddlejob/sampleset-clas.yaml"])
def test_without_its_data_the_job_waits_and_says_for_what(kubectl: Kubectl, path: str) -> None:
    name = put(kubectl, path)
    found = reached(kubectl, name, "Pending")
    assert (conditions(found)["DataReady"], "not found" in found["message"]) == ("False", True)
    assert read(kubectl, "pods")["items"] == []


@pytest.mark.core
def test_an_nfs_server_that_is_not_there_is_named(kubectl: Kubectl, server: Target, namespace: str) -> None:
    for image in images("manual/data-storage.yaml"):
        server.offer(image)
    put(kubectl, "manual/pv-pvc.yaml")
    try:
        until(lambda: read(kubectl, "pvc", "nfs-pvc").get("status", {}).get("phase") == "Bound", timeout=60)
        name = put(kubectl, "manual/data-storage.yaml")
        until(lambda: NFS in events(kubectl, f"{name}-worker-0").get("FailedMount", ""), timeout=120)
        assert NFS in explained(server, namespace, name)
        kubectl("delete", "pdj", name)
    finally:
        kubectl("delete", "pvc/nfs-pvc", "pv/nfs-pv", "--wait=false")


@pytest.fixture
def accelerated(hands: Hands) -> Iterator[str]:
    """A node that declares what this machine does not have."""
    with hands.declared({"nvidia.com/gpu": "4"}, {"accelerator": "nvidia-tesla-p100"}) as node:
        yield node


@pytest.mark.paddle
@pytest.mark.parametrize("path", ["manual/resnet.yaml", "manual/wide-and-deep-gpu.yaml"])
def test_on_a_node_that_declares_the_gpu_it_trains_on_the_cpu(
    kubectl: Kubectl, server: Target, accelerated: str, path: str
) -> None:
    for image in images(path):
        server.offer(image)
    name = put(kubectl, path, cleanPodPolicy="Never")
    reached(kubectl, name, "Completed", timeout=400)
    assert {pod["spec"]["nodeName"] for pod in read(kubectl, "pods")["items"]} == {accelerated}
    log = kubectl("logs", f"{name}-worker-0").stdout
    assert "is a stand-in: " in log.splitlines()[0], "the image is ours, and says so first on both platforms"
    costs = [float(text) for text in re.findall(r"epoch .* (?:cost|loss) ([0-9.]+)", log)]
    assert costs[-1] < 0.85 * costs[0], costs
    kubectl("delete", "pdj", name)
