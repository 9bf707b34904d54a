"""SampleSets on the embedded platform with real cache servers: keys, crashes, the command line.

What is the same on a cluster is in `scenarios/test_sampleset.py`; JuiceFS is in `test_juicefs_life.py`.
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

from harness import Completed, pdc, until
from paddlecloud.controllers.sampledata.servers import access
from paddlecloud.kube.resource import Object
from paddlecloud.local import loopback
from tools.impostor import Impostor
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

Kubectl = Callable[..., Completed]

pytestmark = pytest.mark.timeout(300)  # the image of the cache server is built on first use


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Path]:
    """A platform of two nodes that is configured with the address of a private bucket."""
    private = s3_server.store("private")
    for number in range(6):
        private.put(f"coco/{number}.jpg", bytes([number]) * 3_000)
    data = tmp_path_factory.mktemp("sets")
    mirrors = f"bos://private.endpoint={s3_server.endpoint}/private"
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


def test_a_program_that_holds_the_address_first_gets_no_secret_and_makes_nothing_ready(
    kubectl: Kubectl, folder: Path, tmp_path: Path
) -> None:
    """Pod addresses can be guessed: the next ones of the platform's network are taken before a set's server starts."""
    values = {"access-key": ACCESS_KEY, "secret-key": SECRET_KEY}
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guarded"}, "data": data}
    kubectl("apply", "-f", "-", input=json.dumps(secret))
    for name, value in access.fresh().items():
        (tmp_path / name).write_bytes(base64.b64decode(value))
    network = loopback.network_for(str(folder.resolve()), loopback.PODS)
    start = loopback.start_in(network, str(folder.resolve()))
    next_ones = [str(network[(start + number) % (network.num_addresses - 1)]) for number in range(1, 600)]
    guarded = sample_set("guarded", "bos://private.endpoint/coco", secretRef={"name": "guarded"})
    with Impostor(next_ones, 7716, tmp_path / "tls.crt", tmp_path / "tls.key") as impostor:
        kubectl("apply", "-f", "-", input=guarded)
        until(lambda: impostor.requests >= 3, timeout=120)
        runtime = json.loads(kubectl("get", "pod", "guarded-runtime-0", "-o", "json").stdout)
        assert runtime["status"]["podIP"] in impostor.addresses
        until(lambda: "guarded-runtime-0" in status(kubectl, "sampleset", "guarded").get("message", ""), timeout=60)
        found = status(kubectl, "sampleset", "guarded")
        assert (found["phase"], found["runtimeStatus"]["runtimeReady"]) == ("Bound", "0/1")
        token = json.loads(kubectl("get", "secret", "guarded-runtime-keys", "-o", "json").stdout)["data"]["token"]
    for value in (SECRET_KEY, ACCESS_KEY, "Bearer", base64.b64decode(token).decode()):
        assert value.encode() not in impostor.received
    kubectl("delete", "pod", "guarded-runtime-0", "--grace-period=0", "--force")  # else it waits in its back-off
    ready(kubectl, "guarded")
    kubectl("delete", "sampleset", "guarded", "--timeout=90s")


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
    until(lambda: cached() == "20 KiB")


def test_the_command_line_reports_progress_success_and_failure(
    kubectl: Kubectl, config: str, tmp_path: Path, folder: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("a")
    kubectl("apply", "-f", "-", input=sample_set("words", f"file://{tmp_path}/more"))
    ready(kubectl, "words")

    def sync_again() -> str:
        done = pdc("samplejob", "sync", "words", "--destination", "again", "--kubeconfig", config)
        return re.sub(r"^samplejob\S* ", "", done.stdout)

    assert sync_again() == "succeeded: 1 file copied (1 B), 0 unchanged\n"
    assert sync_again() == "succeeded: 0 files copied (0 B), 1 unchanged\n"
    data = folder / "samplesets" / "default" / "words" / "data"
    assert {path.name for path in data.iterdir()} == {"a.txt", "again"}, "what pods see is the data alone"
    (tmp_path / "more" / "a.txt").rename(tmp_path / "more" / "b.txt")
    assert sync_again() == "succeeded: 1 file copied (1 B), 0 unchanged, 1 only in the set (kept)\n"
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
    assert advice.startswith("3 samples of 1 B on 1 node")


def test_a_job_that_mounts_a_set_with_pdc_run_reads_all_of_its_files(
    kubectl: Kubectl, config: str, tmp_path: Path
) -> None:
    source = tmp_path / "late"
    kubectl("apply", "-f", "-", input=sample_set("late", f"file://{source}"))
    program = ("sh", "-c", "ls /d | wc -l")
    image = ("--image", "paddlecloud/runtime", "--volume", "late:/d:ro", "--kubeconfig", config)
    pdc("run", "-d", "--name", "counts", *image, "--", *program)
    until(lambda: "waiting for its import" in str(status(kubectl, "pdj", "counts").get("message")), timeout=60)
    source.mkdir()
    for number in range(50):
        (source / f"{number}.txt").write_text(str(number))
    until(lambda: status(kubectl, "pdj", "counts").get("phase") in ("Completed", "Failed"), timeout=120)
    assert pdc("logs", "counts", "--kubeconfig", config).stdout.split()[-1] == "50"
    kubectl("delete", "pdj", "counts", "--timeout=60s")
    kubectl("delete", "sampleset", "late", "--timeout=60s")


def test_a_set_gets_a_folder_of_its_own_and_none_that_the_operator_does_not_allow(
    kubectl: Kubectl, config: str, tmp_path: Path
) -> None:
    """What somebody keeps in the folder that a set names is theirs: no clear and no deletion touches it."""
    for refused in ("/etc", "/", f"{tmp_path}/../../../etc"):
        level = {"path": refused, "cacheSize": 1}
        kubectl(
            "apply", "-f", "-", input=sample_set("greedy", "bos://private.endpoint/coco", cache={"levels": [level]})
        )
        until(lambda: "spec.cache: folder" in status(kubectl, "sampleset", "greedy").get("message", ""), timeout=60)
        assert not status(kubectl, "sampleset", "greedy").get("phase")
        kubectl("delete", "sampleset", "greedy", "--timeout=60s")
    named = tmp_path / "cache"
    (named / "thesis").mkdir(parents=True)
    (named / "thesis" / "chapter-1.txt").write_text("not of the set")
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.jpg").write_bytes(b"x" * 1000)
    level = {"mediumType": "SSD", "path": str(named), "cacheSize": 1}
    kubectl("apply", "-f", "-", input=sample_set("modest", f"file://{source}", cache={"levels": [level]}))
    assert ready(kubectl, "modest")["cacheDirs"] == [f"{named}/paddlecloud-cache/default/modest"]
    pdc("samplejob", "warmup", "modest", "--kubeconfig", config)
    assert len(list((named / "paddlecloud-cache" / "default" / "modest").glob("*/a.jpg"))) == 1
    pdc("samplejob", "clear", "modest", "--kubeconfig", config)
    assert not list((named / "paddlecloud-cache").rglob("a.jpg"))
    outside = pdc("samplejob", "clear", "modest", f"{named}/../source", "--kubeconfig", config, check=False)
    assert outside.returncode != 0
    stolen = pdc("samplejob", "sync", "modest", "--source", "file:///root/.ssh", "--kubeconfig", config, check=False)
    assert "the operator allows" in stolen.stderr or "hidden" in stolen.stderr
    kubectl("delete", "sampleset", "modest", "--timeout=90s")
    assert (named / "thesis" / "chapter-1.txt").read_text() == "not of the set"
    assert (source / "a.jpg").exists()


PASSING_ON = """
import glob, os, time
from paddlecloud.cache.plan.sampler import batches, rank_reads
from paddlecloud.data import Files

class Sampler:
    batch_size, shuffle, drop_last, nranks, epoch = 2, True, False, 2, 0
    local_rank = int(os.environ["PADDLE_TRAINER_ID"])
    def __iter__(self):
        reads = rank_reads(24, batch_size=2, epoch=self.epoch, ranks=2, rank=self.local_rank, shuffle=True)
        self.epoch += 1
        yield from batches(reads, 2)

def together(step):
    open(f"/data/.{step}-{Sampler.local_rank}", "w").close()
    while not os.path.exists(f"/data/.{step}-{1 - Sampler.local_rank}"):
        time.sleep(0.01)

def taken():
    return sum(os.path.getsize(name) for name in glob.glob("/cache/0/.paddlecloud/*/*.taken"))

files, sampler, steps = Files.walk(), Sampler(), 0
files.follow(sampler, epochs=40)
for epoch in range(40):
    for batch in files.watch([files.read(index) for index in indices] for indices in sampler):
        time.sleep(0.1)  # what training would compute
        together(steps := steps + 1)
    open(f"/data/.passed-{Sampler.local_rank}-{epoch}", "w").write(str(taken()))
    together(f"counted-{epoch}")
    if all(int(open(f"/data/.passed-{rank}-{epoch}").read()) for rank in range(2)):
        print("both passed samples on")
        break
else:
    print(os.environ.get("PADDLECLOUD_PEER_PORT"), files.figures())
"""


def test_nodes_that_hold_a_set_only_together_pass_its_samples_on(kubectl: Kubectl, tmp_path: Path) -> None:
    """24 files of 64 KiB, a mebibyte of cache on each of two nodes: the job knows it, its program asks for nothing."""
    source = tmp_path / "samples"
    source.mkdir()
    for number in range(24):
        (source / f"{number:02}.bin").write_bytes(bytes([number]) * 65536)
    level = {"mediumType": "MEM", "path": f"/dev/shm/pdc-test-{os.getpid()}", "cacheSize": 1}
    kubectl("apply", "-f", "-", input=sample_set("halves", f"file://{source}", partitions=2, cache={"levels": [level]}))
    ready(kubectl, "halves")
    container = {"name": "main", "image": "paddlecloud/runtime", "command": ["python", "-c", PASSING_ON]}
    job = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "passing-on"},
        "spec": {
            "cleanPodPolicy": "Never",
            "sampleSetRef": {"name": "halves", "mountPath": "/data"},
            "worker": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        },
    }
    kubectl("apply", "-f", "-", input=json.dumps(job))
    until(lambda: status(kubectl, "pdj", "passing-on").get("phase") in ("Completed", "Failed"), timeout=120)
    for rank in range(2):
        assert "both passed samples on" in kubectl("logs", f"passing-on-worker-{rank}").stdout
    kubectl("delete", "pdj", "passing-on", "--timeout=60s")
    kubectl("delete", "sampleset", "halves", "--timeout=60s")


def test_data_of_a_deleted_set_is_taken_over_from_its_own_source_alone_and_removed_by_a_command(
    kubectl: Kubectl, config: str, folder: Path, tmp_path: Path
) -> None:
    sources = [tmp_path / "first", tmp_path / "second"]
    for source in sources:
        source.mkdir()
        (source / f"{source.name}.csv").write_text(source.name)
    first, second = (sample_set("kept", f"file://{source}") for source in sources)
    data = folder / "samplesets" / "default" / "kept" / "data"

    def files() -> list[str]:
        return sorted(path.name for path in data.iterdir())

    def delete() -> None:
        done = pdc("delete", "sampleset", "kept", "-y", "--kubeconfig", config)
        assert "pdc sampleset rm-data kept" in done.stderr

    for _ in range(2):  # the second set of that name has the same source
        kubectl("apply", "-f", "-", input=first)
        ready(kubectl, "kept")
        assert files() == ["first.csv"]
        in_use = pdc("sampleset", "rm-data", "kept", "-y", "--kubeconfig", config, check=False)
        assert (in_use.returncode, "in use" in in_use.stderr) == (4, True), in_use
        delete()
    listed = json.loads(pdc("sampleset", "retained", "-o", "json", "--kubeconfig", config).stdout)["items"]
    assert [(item["name"], item["source"], item["files"]) for item in listed if item["name"] == "kept"] == [
        ("kept", f"file://{sources[0]}", 1)
    ]

    kubectl("apply", "-f", "-", input=second)
    until(lambda: "left data of" in str(status(kubectl, "sampleset", "kept").get("message")), timeout=30)
    assert files() == ["first.csv"], "nothing of another source is mixed in"
    why = pdc("explain", "sampleset/kept", "--kubeconfig", config, check=False).stdout
    assert "pdc sampleset rm-data kept" in why
    assert "1 file (5 B)" in pdc("sampleset", "rm-data", "kept", "-y", "--kubeconfig", config).stdout
    ready(kubectl, "kept")
    assert files() == ["second.csv"]
    delete()
    pdc("sampleset", "rm-data", "kept", "-y", "--kubeconfig", config)
    assert not data.parent.exists()
