"""SampleSets on the embedded platform with real cache servers: the manual's YAML against a local S3 server, unchanged.

The platform has two nodes and is told which server answers for the manual's bucket (`PADDLECLOUD_ENDPOINTS`).
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Completed, need, pdc, until
from paddlecloud.kube.resource import Object
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from unit.api.examples import documents

EXAMPLES = Path(__file__).parents[2] / "examples"
BUCKET = "bos://paddleflow-public.hkg.bcebos.com"
HEADER = ["NAME", "TOTAL SIZE", "CACHED SIZE", "AVAIL SPACE", "RUNTIME", "PHASE", "AGE"]
Kubectl = Callable[..., Completed]

pytestmark = pytest.mark.timeout(300)  # the image of the cache server is built on first use


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Path]:
    """A platform of two nodes whose map of mirrors has the manual's bucket."""
    public, private = s3_server.store("public"), s3_server.store("private")
    for number in range(6):
        public.put(f"imagenet/demo/n01514859/{number}.JPEG", bytes([number]) * 10_000)
        public.put(f"imagenet/train/n0144/{number}.JPEG", bytes([number]) * 20_000)
        private.put(f"coco/{number}.jpg", bytes([number]) * 3_000)
        public.put(f"coco/train2017/{number}.jpg", bytes([number]) * 5_000)
        public.put(f"ppocr/hiertext/{number}.jpg", bytes([number]) * 4_000)
    public.put("imagenet/train_list.txt", b"a list")
    data = tmp_path_factory.mktemp("sets")
    mirrors = f"{BUCKET}={s3_server.endpoint}/public,bos://private.endpoint={s3_server.endpoint}/private"
    env = {**os.environ, "PADDLECLOUD_ENDPOINTS": mirrors}
    pdc("up", "--data", str(data), "--port", "0", "--nodes", "2", "--kubeconfig", str(data / "kc"), env=env)
    yield data
    log = (data / "platform.log").read_text()
    pdc("down", "--data", str(data))
    assert "Traceback" not in log, log[-4000:]


@pytest.fixture(scope="module")
def kubectl(kubectl_binary: str, folder: Path) -> Kubectl:
    def run(*args: str, check: bool = True, input: str | None = None) -> Completed:
        command = [kubectl_binary, "--kubeconfig", str(folder / "kubeconfig"), *args]
        done = subprocess.run(command, capture_output=True, text=True, input=input, timeout=60)
        assert not check or done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
        return done

    return run


@pytest.fixture(scope="module")
def config(folder: Path) -> str:
    """The kubeconfig of the platform, for pdc."""
    return str(folder / "kubeconfig")


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def row(kubectl: Kubectl, name: str, namespace: str) -> list[str]:
    header, line = kubectl("get", "sampleset", name, "-n", namespace).stdout.splitlines()
    assert cells(header) == HEADER
    return cells(line)


def shows(kubectl: Kubectl, namespace: str, *figures: str, within: float = 90) -> None:
    """Wait for name, total and cached size, then check the rest of the row."""

    def there() -> bool:
        line = row(kubectl, "imagenet", namespace)
        return len(line) == 7 and line[1:3] == list(figures[:2]) and line[5] == "Ready"

    until(there, timeout=within, every=0.3)


def status(kubectl: Kubectl, kind: str, name: str, namespace: str = "default") -> Object:
    found: Object = json.loads(kubectl("get", kind, name, "-n", namespace, "-o", "json").stdout)
    return dict(found.get("status") or {})


def ended(kubectl: Kubectl, name: str, phase: str = "Succeeded", namespace: str = "default") -> Object:
    def over() -> bool:
        return status(kubectl, "samplejob", name, namespace).get("phase") in ("Succeeded", "Failed")

    until(over, timeout=90)
    found = status(kubectl, "samplejob", name, namespace)
    assert found["phase"] == phase, found
    return found


def sample_set(name: str, uri: str, **spec: object) -> str:
    kind = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": name}}
    return json.dumps({**kind, "spec": {"source": {"uri": uri}, **spec}})


def ready(kubectl: Kubectl, name: str, namespace: str = "default", *, timeout: float = 120) -> Object:
    def is_ready() -> bool:
        return status(kubectl, "sampleset", name, namespace).get("phase") == "Ready"

    try:
        until(is_ready, timeout=timeout)
    except AssertionError:
        raise AssertionError(status(kubectl, "sampleset", name, namespace)) from None
    return status(kubectl, "sampleset", name, namespace)


@pytest.fixture(scope="module")
def imagenet(kubectl: Kubectl) -> str:
    """The manual's set, ready."""
    kubectl("create", "-f", str(EXAMPLES / "manual" / "imagenet-secret.yaml"))
    kubectl("create", "-f", str(EXAMPLES / "manual" / "imagenet.yaml"))
    ready(kubectl, "imagenet", "paddle-system", timeout=240)
    return "paddle-system"


def test_the_manuals_session_is_replayed_word_for_word(kubectl: Kubectl, imagenet: str) -> None:
    """Create, remove, import everything, clear, warm up: each figure right within the 30 s that the manual promises."""

    def do(job: str) -> None:
        made = kubectl("create", "-f", str(EXAMPLES / "manual" / f"imagenet-{job}.yaml")).stdout
        assert made == f"samplejob.batch.paddlepaddle.org/imagenet-{job} created\n"
        ended(kubectl, f"imagenet-{job}", namespace=imagenet)
        table = kubectl("get", "samplejob", f"imagenet-{job}", "-n", imagenet).stdout.splitlines()
        assert [cells(line) for line in table] == [["NAME", "PHASE"], [f"imagenet-{job}", "Succeeded"]]

    line = row(kubectl, "imagenet", imagenet)
    assert line[:2] == ["imagenet", "59 KiB"]
    assert line[4:6] == ["1/1", "Ready"]
    pods = kubectl("get", "pods", "-n", imagenet, "--no-headers").stdout
    assert cells(pods.splitlines()[0])[:3] == ["imagenet-runtime-0", "1/1", "Running"]
    do("rmr")
    shows(kubectl, imagenet, "0 B", "0 B", within=30)
    do("sync")
    until(lambda: row(kubectl, "imagenet", imagenet)[1] == "176 KiB", timeout=30)
    do("clear")
    shows(kubectl, imagenet, "176 KiB", "0 B", within=30)
    do("warmup")
    shows(kubectl, imagenet, "176 KiB", "176 KiB", within=30)


@pytest.mark.parametrize(
    ("name", "namespace", "size"), [("coco", "kubeflow", "29 KiB"), ("hiertext", "paddlecloud", "23 KiB")]
)
def test_the_sets_of_the_tutorials_are_filled_with_the_secrets_that_are_there(
    kubectl: Kubectl, name: str, namespace: str, size: str
) -> None:
    kubectl("apply", "-f", str(EXAMPLES / "manual" / f"{name}.yaml"))
    ready(kubectl, name, namespace)
    assert row(kubectl, name, namespace)[1] == size
    kubectl("delete", "-f", str(EXAMPLES / "manual" / f"{name}.yaml"), "--timeout=60s")


def test_a_training_job_of_the_manual_sees_the_data_in_all_its_pods(kubectl: Kubectl, imagenet: str) -> None:
    (demo,) = documents(EXAMPLES / "manual" / "ps-demo.yaml")
    demo["spec"]["withGloo"] = 1  # its servers never listen, which workers would wait for in vain for half a minute
    kubectl("create", "-f", "-", input=json.dumps(demo))
    for pod in ("ps-demo-worker-0", "ps-demo-ps-0"):

        def lists(pod: str = pod) -> bool:
            found = kubectl("exec", pod, "-n", imagenet, "--", "ls", "/mnt/imagenet", check=False)
            return found.returncode == 0 and bool(found.stdout.split())

        until(lists, timeout=60)
    node = {
        pod: kubectl("get", "pod", pod, "-n", imagenet, "-o", "jsonpath={.spec.nodeName}").stdout
        for pod in ("ps-demo-worker-0", "imagenet-runtime-0")
    }
    assert node["ps-demo-worker-0"] == node["imagenet-runtime-0"]
    kubectl("delete", "sampleset", "imagenet", "-n", imagenet, "--wait=false")

    def deferred() -> bool:
        conditions = status(kubectl, "sampleset", "imagenet", imagenet).get("conditions") or ()
        return any(c["type"] == "InUse" and c["status"] == "True" and "ps-demo" in c["message"] for c in conditions)

    until(deferred, timeout=20)
    assert kubectl("exec", "ps-demo-worker-0", "-n", imagenet, "--", "ls", "/mnt/imagenet").stdout.split()
    kubectl("delete", "pdj", "ps-demo", "-n", imagenet)
    until(lambda: "NotFound" in kubectl("get", "sampleset", "imagenet", "-n", imagenet, check=False).stderr, timeout=60)


def test_keys_that_were_wrong_are_corrected_and_are_seen_nowhere(kubectl: Kubectl, folder: Path) -> None:
    def secret(key: str) -> str:
        values = {"access-key": f"{ACCESS_KEY}\n", "secret-key": f"{key}\n"}
        data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
        return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "coco"}, "data": data})

    kubectl("apply", "-f", "-", input=secret("wrong-key-of-the-tests"))
    kubectl("apply", "-f", "-", input=sample_set("coco", "bos://private.endpoint/coco", secretRef={"name": "coco"}))
    until(lambda: status(kubectl, "sampleset", "coco").get("phase") == "SyncFailed", timeout=90)
    assert status(kubectl, "sampleset", "coco")["message"]
    kubectl("apply", "-f", "-", input=secret(SECRET_KEY))
    assert ready(kubectl, "coco")["cacheStatus"]["totalFiles"] == "6"
    seen = [(folder / name).read_text() for name in ("platform.log", "audit.log")]
    kinds = ("events", "samplesets", "statefulsets", "pods", "persistentvolumes")
    seen += [kubectl("get", kind, "-A", "-o", "yaml").stdout for kind in kinds]
    seen.append(kubectl("logs", "coco-runtime-0").stdout)
    seen.append(subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout)
    for text in seen:
        assert SECRET_KEY not in text
        assert "wrong-key-of-the-tests" not in text


def test_a_cache_server_that_dies_is_noticed_and_goes_on(kubectl: Kubectl, config: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(20):
        (source / f"img {number}.jpg").write_bytes(b"x" * 1000)
    kubectl("apply", "-f", "-", input=sample_set("photos", f"file://{source}", partitions=2))
    assert ready(kubectl, "photos")["cacheStatus"]["totalSize"] == "20 KiB"
    pdc("samplejob", "warmup", "photos", "--kubeconfig", config)
    kubectl("delete", "pod", "photos-runtime-1", "--grace-period=0", "--force")
    until(lambda: status(kubectl, "sampleset", "photos").get("phase") == "PartialReady", timeout=60, every=0.02)
    assert ready(kubectl, "photos")["runtimeStatus"]["runtimeReady"] == "2/2"

    def cached() -> str:
        return str(status(kubectl, "sampleset", "photos")["cacheStatus"]["cachedSize"])

    # A server that restarts keeps its cache; its figures come with the next look at it.
    until(lambda: cached() == "20 KiB", timeout=30)


def test_the_command_line_reports_progress_success_and_failure(kubectl: Kubectl, config: str, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("a")
    kubectl("apply", "-f", "-", input=sample_set("words", f"file://{tmp_path}/more"))
    ready(kubectl, "words")
    done = pdc("samplejob", "sync", "words", "--destination", "again", "--kubeconfig", config)
    assert re.fullmatch(r"samplejob\S* succeeded: 1 file, 1 B\n", done.stdout)
    body = json.loads(pdc("samplejob", "warmup", "words", "again", "-o", "json", "--kubeconfig", config).stdout)
    assert body["status"]["phase"] == "Succeeded"
    failed = pdc("samplejob", "rmr", "words", "nothing", "-y", "--kubeconfig", config, check=False)
    assert failed.returncode == 100
    assert "No such file" in failed.stderr
    named = pdc("samplejob", "clear", "words", "--name", "mine", "--no-wait", "--kubeconfig", config)
    assert "samplejob.batch.paddlepaddle.org/mine created" in named.stderr
    ended(kubectl, "mine")
    advice = pdc(
        "sampleset", "advise", "words", "--link", "50Mbit", "--samples-per-second", "380", "--kubeconfig", config
    ).stdout
    assert advice.startswith("2 samples of 1 B on 1 node")


def test_juicefs_keeps_the_data_where_the_machine_can_mount_it(kubectl: Kubectl, config: str, tmp_path: Path) -> None:
    """The engine `juicefs` with the Secret `data-center` that every platform has."""
    can = os.geteuid() == 0 and os.path.exists("/dev/fuse")
    need("fuse", have=can, hint="mounting JuiceFS takes root and /dev/fuse")
    source = Path.home() / f".pdc-test-{os.getpid()}"  # not in /tmp: pods have their own
    source.mkdir()
    try:
        (source / "a.txt").write_text("a" * 5000)
        spec = {"csi": {"driver": "juicefs"}, "secretRef": {"name": "data-center"}}
        kubectl("apply", "-f", "-", input=sample_set("deep", f"file://{source}", **spec))
        found = ready(kubectl, "deep", timeout=150)
    finally:
        (source / "a.txt").unlink()
        source.rmdir()
    assert found["driver"] == "juicefs"
    assert found["cacheStatus"]["totalFiles"] == "1"
    pdc("samplejob", "warmup", "deep", "--kubeconfig", config)
    kubectl("delete", "sampleset", "deep", "--timeout=90s")


PROGRAM = """
import json, os, paddle
from paddlecloud.data import Files
rank = int(os.environ["PADDLE_TRAINER_ID"])
files = Files(sorted(name for name in os.listdir("/data") if name.endswith(".json")))

class Samples(paddle.io.Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, index):
        sample = json.loads(files.read(index))
        return paddle.to_tensor(sample["x"]), paddle.to_tensor([sample["y"]])

data = Samples()
sampler = paddle.io.DistributedBatchSampler(data, batch_size=8, num_replicas=2, rank=rank, shuffle=True)
loader = paddle.io.DataLoader(data, batch_sampler=sampler)
model = paddle.nn.Linear(4, 1)
adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=model.parameters())
losses = []
for epoch in range(8):
    for x, y in files.watch(loader):
        loss = paddle.nn.functional.mse_loss(model(x), y)
        loss.backward(); adam.step(); adam.clear_grad()
        losses.append(float(loss))
first, last = sum(losses[:4]), sum(losses[-4:])
assert last < first / 4, losses
print("trained on", len(data), "samples")
"""


@pytest.mark.paddle
@pytest.mark.timeout(600)
def test_paddle_trains_from_the_cache_on_the_nodes_that_have_it(kubectl: Kubectl, config: str, tmp_path: Path) -> None:
    """Two workers wait until the set is warm, run where their partitions are, and learn from what they read.

    Warmed up as the sampler will read, the first epoch finds every sample on its own node.
    """
    source = tmp_path / "samples"
    source.mkdir()
    for number in range(64):
        x = [((number * k) % 7) / 7 for k in (1, 2, 3, 5)]
        (source / f"{number:03}.json").write_text(json.dumps({"x": x, "y": 2 * x[0] - x[3] + 0.5}))
    kubectl("apply", "-f", "-", input=sample_set("lines", f"file://{source}", partitions=2))
    container = {"name": "paddle", "image": "paddlecloud/paddle:3.3", "command": ["python", "-c", PROGRAM]}
    job = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "learn"},
        "spec": {
            "cleanPodPolicy": "Never",
            "sampleSetRef": {"name": "lines", "mountPath": "/data", "waitFor": "Warm"},
            "worker": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        },
    }
    kubectl("apply", "-f", "-", input=json.dumps(job))
    ready(kubectl, "lines")
    until(lambda: "not warm" in status(kubectl, "pdj", "learn").get("message", ""), timeout=30)
    assert "learn-worker" not in kubectl("get", "pods").stdout
    sampler = ("--strategy", "sampler", "--batch-size", "8", "--shuffle")
    pdc("samplejob", "warmup", "lines", *sampler, "--kubeconfig", config)
    until(lambda: status(kubectl, "pdj", "learn").get("phase") in ("Completed", "Failed"), timeout=300)
    assert status(kubectl, "pdj", "learn")["phase"] == "Completed", kubectl("logs", "learn-worker-0").stdout[-2000:]
    for index in range(2):
        assert "trained on 64 samples" in kubectl("logs", f"learn-worker-{index}").stdout
        nodes = {
            kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}").stdout
            for pod in (f"learn-worker-{index}", f"lines-runtime-{index}")
        }
        assert len(nodes) == 1

    def first_epoch() -> Object:
        reads = status(kubectl, "sampleset", "lines").get("reads") or ()
        return next((dict(found) for found in reads if (found["job"], found["epoch"]) == ("learn", 0)), {})

    until(lambda: first_epoch().get("hits") == 64, timeout=30)
    assert not first_epoch().get("misses")
