"""The manual's jobs of Paddle's model suites in real containers, on data that a plain claim gives them.

That a SampleSet fills such a claim is shown elsewhere; the embedded platform plays both together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Kubectl, Target, until
from paddlecloud.kube.resource import Object
from scenarios.cluster_hands import ClusterHands
from scenarios.hands import apply, reached, read
from scenarios.test_paddlejob_manual import images, put

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

SUITE = "paddlecloud/model-suite:latest"


@pytest.fixture
def accelerated(server: Target, kubectl_binary: str) -> Iterator[str]:
    """A node that declares a GPU, which one of them wants."""
    with ClusterHands(server, kubectl_binary).declared({"nvidia.com/gpu": "1"}, {}) as node:
        yield node


def claim(kubectl: Kubectl, namespace: str, name: str, folder: Path) -> None:
    """A claim of this name, bound to a folder: as good as a SampleSet's to a job."""
    volume = f"{namespace}-{name}"
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    spec = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}, **shared}
    wish = {"volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}, **shared}
    kinds: tuple[tuple[str, str, Object], ...] = (
        ("PersistentVolume", volume, spec),
        ("PersistentVolumeClaim", name, wish),
    )
    for kind, called, body in kinds:
        meta = {"name": called}
        apply(kubectl, json.dumps({"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": body}))


@pytest.mark.parametrize(
    ("path", "data", "loss", "says"),
    [
        ("manual/ppocrv3.yaml", "hiertext", r"global_step: .*?, loss: ([0-9.]+)", r"save model in ./output/latest"),
        ("manual/ppyoloe.yaml", "coco", r"mean loss ([0-9.]+)", r"epoch: \[10/10\] iter: 15 loss"),
        (
            "paddlejob/sampleset-clas.yaml",
            "imagenet",
            r"\[Train\]\[Epoch .*?, loss: ([0-9.]+)",
            r"PaddleClas is powered by PaddlePaddle",
        ),
    ],
)
@pytest.mark.usefixtures("accelerated")
def test_the_suites_learn_from_the_data_of_the_claim(
    kubectl: Kubectl, server: Target, namespace: str, tmp_path: Path, path: str, data: str, loss: str, says: str
) -> None:
    for image in (SUITE, *images(path)):
        server.offer(image)
    tmp_path.chmod(0o777)
    mounts = [{"name": "data", "mountPath": "/data"}]
    command = ["python", "/opt/suite/samples.py", data, "/data"]
    writer = {"name": "samples", "image": SUITE, "command": command, "volumeMounts": mounts}
    volumes = [{"name": "data", "hostPath": {"path": str(tmp_path)}}]
    spec = {"restartPolicy": "Never", "containers": [writer], "volumes": volumes}
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "samples"}, "spec": spec}))
    until(lambda: read(kubectl, "pod", "samples")["status"].get("phase") == "Succeeded", timeout=200)
    claim(kubectl, namespace, data, tmp_path)
    name = put(kubectl, path, cleanPodPolicy="Never")
    labelled = ("get", "pods", "-l", f"paddle-res-name={name}-worker-0", "--no-headers")
    until(lambda: kubectl(*labelled).stdout.split()[:4] == [f"{name}-worker-0", "1/1", "Running", "0"], timeout=200)
    log = kubectl("logs", "-f", f"{name}-worker-0", timeout=400).stdout
    reached(kubectl, name, "Completed")
    assert log.startswith("note: this image is a stand-in: "), log[:300]
    losses = [float(text) for text in re.findall(loss, log)]
    assert losses[-1] < 0.95 * losses[0], losses
    assert re.search(says, log), log[-2000:]
    kubectl("delete", "pdj", name)
