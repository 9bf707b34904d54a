"""The manual's jobs of Paddle's model suites train on the embedded platform, through local images of the same names.

The images hold small programs that take the manual's arguments and really learn from the data they are given, which is
generated here; what the manual downloads is answered from inside the image.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from embedded.test_examples import apply
from embedded.test_paddlejob import finished
from harness import Kubectl, Target, pdc, until
from scenarios.hands import read

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(300)]

SUITE = "paddlecloud/model-suite:latest"


def have_data(kubectl: Kubectl, namespace: str, name: str, folder: Path) -> None:
    """A data set, written by a pod of the suites' image, in a claim of the SampleSet's name."""
    folder.mkdir()
    room = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{namespace}-{name}"},
        "spec": {**common, "capacity": room, "hostPath": {"path": str(folder)}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**common, "volumeName": f"{namespace}-{name}", "resources": {"requests": room}},
    }
    writer = {
        "name": "samples",
        "image": SUITE,
        "command": ["python", "/opt/suite/samples.py", name, "/data"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "samples"},
        "spec": {"restartPolicy": "Never", "containers": [writer], "volumes": volumes},
    }
    for obj in (volume, claim, pod):
        kubectl("apply", "-f", "-", input=json.dumps(obj))
    until(lambda: read(kubectl, "pod", "samples")["status"].get("phase") in ("Succeeded", "Failed"), timeout=120)
    assert list(folder.iterdir()), kubectl("logs", "samples").stdout


@pytest.mark.parametrize(
    ("path", "data", "says"),
    [
        ("manual/ppocrv3.yaml", "hiertext", r"loaded pretrained model[^$]*hmean: 0\.[6-9]"),
        ("manual/ppyoloe.yaml", "coco", r"epoch: \[10/10\] iter: 15 loss"),
        ("paddlejob/sampleset-clas.yaml", "imagenet", r"top1: (0\.9|1\.0)"),
    ],
)
def test_a_suites_program_learns_from_its_data(
    kubectl: Kubectl, server: Target, namespace: str, tmp_path: Path, path: str, data: str, says: str
) -> None:
    have_data(kubectl, namespace, data, tmp_path / data)
    declared = ("--capacity", "cpu=8,memory=16Gi,nvidia.com/gpu=1")
    pdc("node", "add", "suite-gpu", *declared, env=server.env)  # ppocrv3 asks for a GPU
    try:
        name = apply(kubectl, path, cleanPodPolicy="Never")
        status = finished(kubectl, name, timeout=200)
        log = kubectl("logs", f"{name}-worker-0").stdout
        assert status["phase"] == "Completed", f"{status['message']}\n{log[-2000:]}"
        losses = [float(text) for text in re.findall(r"mean loss ([0-9.]+)", log)]
        assert losses[-1] < 0.3 * losses[0], losses
        assert re.search(says, log), log[-2000:]
        assert status["progress"]["step"] == status["progress"]["totalSteps"]
        kubectl("delete", "pdj", name)
    finally:
        pdc("node", "rm", "suite-gpu", "-y", env=server.env)


def test_a_download_the_image_does_not_know_is_refused_with_what_it_does(kubectl: Kubectl) -> None:
    image = "paddlecloud/paddleocr:2.5-gpu-cuda10.2-cudnn7-efbb0a"
    fetch = ("wget", "https://example.org/other.tar")
    kubectl("run", "fetch", f"--image={image}", "--restart=Never", "--command", "--", *fetch)
    until(lambda: read(kubectl, "pod", "fetch")["status"].get("phase") == "Failed", timeout=60)
    assert "answers for https://paddleocr.bj.bcebos.com/PP-OCRv3" in kubectl("logs", "fetch").stdout
