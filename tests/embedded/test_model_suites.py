"""The manual's jobs of Paddle's model suites on the embedded platform: its SampleSet, then its PaddleJob, unchanged.

The images of PaddleOCR and PaddleClas hold the suites' own training code, that of PaddleDetection a small program. The
data is generated here and lies on a local S3 server that answers for the manual's bucket; weights that the manual's job
downloads are carried by the image, which says so.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import Completed, pdc, until
from paddlecloud.kube.resource import Object
from scenarios.hands import EXAMPLES
from tools.s3 import S3Server

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(400)]

SUITE = "paddlecloud/model-suite:latest"
BUCKET = "bos://paddleflow-public.hkg.bcebos.com"
SETS = {"hiertext": "ppocr/hiertext", "coco": "coco", "imagenet": "imagenet/demo"}
"""Each data set and where the manual says it lies."""
Kubectl = Callable[..., Completed]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Path]:
    """A platform whose only open node declares a GPU, as ppocrv3 wants one beside its data."""
    folder = tmp_path_factory.mktemp("suites")
    env = {**os.environ, "PADDLECLOUD_ENDPOINTS": f"{BUCKET}={s3_server.endpoint}/suites"}
    pdc("up", "--data", str(folder), "--port", "0", "--kubeconfig", str(folder / "kc"), env=env)
    yield folder
    pdc("down", "--data", str(folder))


@pytest.fixture(scope="module")
def kubectl(kubectl_binary: str, data: Path) -> Kubectl:
    def run(*args: str, check: bool = True, input: str | None = None, timeout: float = 60) -> Completed:
        command = [kubectl_binary, "--kubeconfig", str(data / "kubeconfig"), *args]
        done = subprocess.run(command, capture_output=True, text=True, input=input, timeout=timeout)
        assert not check or done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done

    env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}
    own = run("get", "nodes", "-o", "name").stdout.strip()
    pdc("node", "add", "gpu", "--capacity", "cpu=8,memory=16Gi,nvidia.com/gpu=1", env=env)
    run("cordon", own)
    return run


@pytest.fixture(scope="module")
def filled(kubectl: Kubectl, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The bucket of the manual, with generated data that a pod of the suites' image wrote."""
    folder = tmp_path_factory.mktemp("samples")
    script = "; ".join(f"python /opt/suite/samples.py {name} /data/{name}" for name in SETS)
    writer = {
        "name": "samples",
        "image": SUITE,
        "command": ["sh", "-ec", script],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "data", "hostPath": {"path": str(folder)}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "samples"},
        "spec": {"restartPolicy": "Never", "containers": [writer], "volumes": volumes},
    }
    kubectl("apply", "-f", "-", input=json.dumps(pod))
    until(lambda: status(kubectl, "pod", "samples").get("phase") in ("Succeeded", "Failed"), timeout=180)
    bucket = s3_server.store("suites")  # of its own: other tests have other data behind the same names
    for name, prefix in SETS.items():
        found = [path for path in (folder / name).rglob("*") if path.is_file()]
        assert len(found) > 30, kubectl("logs", "samples").stdout
        for path in found:
            bucket.put(f"{prefix}/{path.relative_to(folder / name)}", path.read_bytes())


@contextlib.contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """The files of a folder behind a URL of this machine."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def status(kubectl: Kubectl, kind: str, name: str, namespace: str = "default") -> Object:
    found: Object = json.loads(kubectl("get", kind, name, "-n", namespace, "-o", "json").stdout)
    return dict(found.get("status") or {})


class Lesson(NamedTuple):
    """A job of the manual: its files, its name and namespace, how its log shows the loss, and what else it must say."""

    files: tuple[str, ...]
    job: str
    namespace: str
    loss: str
    says: str


LESSONS = {
    "ocr": Lesson(
        ("manual/hiertext.yaml", "manual/ppocrv3.yaml"),
        "ppocrv3",
        "paddlecloud",
        r"global_step: .*?, loss: ([0-9.]+)",
        r"answered from inside the image: [^$]*weights of a network that nobody trained[^$]*"
        r"load pretrain successful from ./pre_train/ch_PP-OCRv3_det_distill_train/best_accuracy[^$]*"
        r"hmean: [^$]*save best model is to ./output/best_accuracy[^$]*save model in ./output/latest",
    ),
    "detection": Lesson(
        ("manual/coco.yaml", "manual/ppyoloe.yaml"),
        "ppyoloe",
        "kubeflow",
        r"mean loss ([0-9.]+)",
        r"epoch: \[10/10\] iter: 15 loss",
    ),
    "clas": Lesson(
        ("manual/imagenet-secret.yaml", "manual/imagenet.yaml", "paddlejob/sampleset-clas.yaml"),
        "paddleclas",
        "paddle-system",
        r"\[Train\]\[Epoch .*?, loss: ([0-9.]+)",
        r"PaddleClas is powered by PaddlePaddle",
    ),
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("suite", LESSONS)
def test_the_set_is_filled_and_the_suite_learns_from_it(kubectl: Kubectl, data: Path, suite: str) -> None:
    files, job, namespace, loss, says = LESSONS[suite]
    for file in files:
        kubectl("apply", "-f", str(EXAMPLES / file))
    labelled = ("get", "pods", "-n", namespace, "-l", f"paddle-res-name={job}-worker-0", "--no-headers")
    until(lambda: kubectl(*labelled).stdout.split()[:4] == [f"{job}-worker-0", "1/1", "Running", "0"], timeout=120)
    assert re.search(loss, kubectl("logs", "-f", f"{job}-worker-0", "-n", namespace, timeout=300).stdout)
    until(lambda: status(kubectl, "pdj", job, namespace).get("phase") in ("Completed", "Failed"), timeout=60)
    found = status(kubectl, "pdj", job, namespace)
    env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}
    log = pdc("-n", namespace, "logs", job, env=env).stdout  # the pod is gone, as the manual's policy says
    assert found["phase"] == "Completed", f"{found['message']}\n{log[-2000:]}"
    losses = [float(text) for text in re.findall(loss, log)]
    assert losses[-1] < 0.95 * losses[0], losses
    assert re.search(says, log), log[-2000:]
    assert re.match(r".*note: image \S+ here is a stand-in: ", log.splitlines()[0])
    reported = json.loads(kubectl("get", "events", "-n", namespace, "-o", "json").stdout)["items"]
    names = {event["involvedObject"]["name"] for event in reported if event["reason"] == "StandInImage"}
    assert f"{job}-worker-0" in names
    assert found["progress"]["step"] == found["progress"]["totalSteps"]
    kubectl("delete", "pdj", job, "-n", namespace)


def test_weights_that_are_not_there_are_an_error_not_a_fresh_start(kubectl: Kubectl) -> None:
    image = "paddlecloud/paddleocr:latest"
    train = "tools/train.py -c configs/det/ch_PP-OCRv3/ch_PP-OCRv3_det_cml.yml -o Global.pretrained_model=./nowhere"
    kubectl("run", "train", f"--image={image}", "--restart=Never", "--command", "--", "python", *train.split())
    until(lambda: status(kubectl, "pod", "train").get("phase") == "Failed", timeout=90)
    assert "Global.pretrained_model=./nowhere: there is no ./nowhere.pdparams" in kubectl("logs", "train").stdout


def test_a_download_the_image_does_not_carry_is_a_real_one(kubectl: Kubectl, tmp_path: Path) -> None:
    image = "paddlecloud/paddleocr:2.5-gpu-cuda10.2-cudnn7-efbb0a"
    (tmp_path / "other.tar").write_text("from the network")
    with file_server(tmp_path) as site:
        fetch = f"wget -q {site}/other.tar && cat other.tar && wget {site}/nowhere.tar"
        kubectl("run", "fetch", f"--image={image}", "--restart=Never", "--command", "--", "bash", "-c", fetch)
        until(lambda: status(kubectl, "pod", "fetch").get("phase") == "Failed", timeout=60)
    log = kubectl("logs", "fetch").stdout
    assert "from the network" in log
    assert "404" in log
    assert "answered from inside" not in log
