"""A version that a training program makes knows where it came from, also when its job is gone; and what differs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from embedded.test_paddlejob import finished
from harness import Kubectl, Target, pdc, until
from scenarios.hands import read

pytestmark = pytest.mark.timeout(300)  # images are built on first use

TRAIN = """
import json, os, pathlib, sys
import paddlecloud as pc
from paddlecloud.data import report
words = sorted(path.name for path in pathlib.Path("/data").iterdir())
report.progress(step=3, total=3, loss=0.25, accuracy=0.9)
client = pc.connect()
with client.models.new("words", description="counts") as v:
    (v / "net.onnx").write_text(json.dumps(words))
print("made", repr(v.name))
try:
    with client.models.new("words") as v:
        (v / "net.onnx").write_text("half")
        raise RuntimeError("diverged")
except RuntimeError as error:
    print("refused:", error, v.version == "", v.folder.exists())
"""


def job(name: str, store: str, *, workers: int = 1, data: str = "") -> str:
    container = {
        "name": "paddle",
        "image": "paddlecloud/pipeline",
        "command": ["python", "-c", TRAIN, "--token=hunter2"],
        "env": [
            {"name": "LR", "value": "0.1"},
            {"name": "API_TOKEN", "value": "hunter2"},
            {"name": "PADDLECLOUD_MODEL_STORE", "value": store},
        ],
    }
    pod = {"serviceAccountName": "trainer", "containers": [container]}
    spec = {
        "cleanPodPolicy": "Never",
        "sampleSetRef": {"name": data, "mountPath": "/data"},
        "worker": {"replicas": workers, "template": {"spec": pod}},
    }
    return json.dumps(
        {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}, "spec": spec}
    )


@pytest.fixture
def data(kubectl: Kubectl, namespace: str, tmp_path: Path) -> str:
    """A SampleSet of two files, and an account for trainings that may edit the namespace."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a.txt", "b.txt"):
        (source / name).write_text(name)
    kind = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": "letters"}}
    kubectl("apply", "-f", "-", input=json.dumps({**kind, "spec": {"source": {"uri": f"file://{source}"}}}))
    kubectl("create", "serviceaccount", "trainer")
    kubectl("create", "rolebinding", "trainer", "--clusterrole=edit", f"--serviceaccount={namespace}:trainer")
    return "letters"


def test_a_version_knows_its_job_and_data_after_both_are_gone(
    kubectl: Kubectl, server: Target, namespace: str, data: str, tmp_path: Path
) -> None:
    store = f"file://{tmp_path}/store"

    def run(*words: str) -> Any:
        return json.loads(pdc("-n", namespace, *words, "-o", "json", env=server.env).stdout)

    kubectl("apply", "-f", "-", input=job("train", store, workers=2, data=data))
    assert finished(kubectl, "train")["phase"] == "Completed", kubectl("logs", "train-worker-0").stdout
    log = kubectl("logs", "train-worker-0").stdout
    assert "made 'words:1'" in log
    assert "refused: diverged True False" in log
    assert "made 'words'" in kubectl("logs", "train-worker-1").stdout, "one job makes one version"

    (version,) = read(kubectl, "modelversions")["items"]
    origin, uid = version["spec"]["origin"], read(kubectl, "pdj", "train")["metadata"]["uid"]
    assert (origin["job"], origin["job-uid"], origin["image"]) == ("train", uid, "paddlecloud/pipeline")
    assert origin["image-id"].startswith("sha256:")
    assert (origin["env.LR"], origin["data"], origin["data.letters.files"]) == ("0.1", "letters", "2")
    assert origin["data.letters.listing"].startswith("sha256:")
    assert "hunter2" not in json.dumps(version)
    assert version["spec"]["metrics"] == {"loss": 0.25, "accuracy": 0.9}
    assert version["spec"]["createdBy"] == "paddlejob/train"

    down = run("trace", f"sampleset/{data}")["to"]
    assert [(one["kind"], one["name"], one["state"]) for one in down] == [("pdj", "train", "exists")]
    assert [one["name"] for one in down[0]["to"]] == ["words:1"]
    kubectl("delete", "pdj", "train")
    kubectl("delete", "sampleset", data)
    until(lambda: kubectl("get", "pdj,samplesets", "-o", "name").stdout, "", what="what is left")
    (up,) = run("trace", "model/words:1")["from"]
    assert (up["kind"], up["name"], up["state"], up["facts"]["env.LR"]) == ("pdj", "train", "gone", "0.1")
    assert [(one["name"], one["state"], one["facts"]["files"]) for one in up["from"]] == [(data, "gone", "2")]
    assert run("trace", "pdj/train")["to"][0]["name"] == "words:1"
    assert run("trace", f"sampleset/{data}")["to"][0]["to"][0]["name"] == "words:1"

    shown = pdc("-n", namespace, "trace", "words:1", env=server.env).stdout
    assert "pdj/train  gone, recorded" in shown
    assert f"sampleset/{data}  gone, recorded" in shown
    assert "已不存在" in pdc("-n", namespace, "trace", "words@latest", "--lang", "zh", env=server.env).stdout


def test_a_push_from_outside_records_the_job_and_differs_from_the_one_before(
    kubectl: Kubectl, server: Target, namespace: str, data: str, tmp_path: Path
) -> None:
    store = ("--store", f"file://{tmp_path}/store")
    model = tmp_path / "model"
    model.mkdir()
    (model / "net.onnx").write_text("first")
    (model / "old.txt").write_text("goes")
    pdc("-n", namespace, "model", "push", "words", str(model), *store, "--metric", "loss=0.5", env=server.env)
    kubectl("apply", "-f", "-", input=job("train", f"file://{tmp_path}/other", data=data))
    assert finished(kubectl, "train")["phase"] == "Completed"
    (model / "net.onnx").write_text("second one")
    (model / "old.txt").unlink()
    pushed = ("model", "push", "words", str(model), *store, "--from-job", "train", "-o", "json")
    made = json.loads(pdc("-n", namespace, *pushed, env=server.env).stdout)
    assert (made["origin"]["job"], made["origin"]["data"], made["metrics"]["accuracy"]) == ("train", data, 0.9)
    both = [f"words:{number}" for number in ("1", made["version"])]
    found = json.loads(pdc("-n", namespace, "model", "diff", *both, *store, "-o", "json", env=server.env).stdout)
    assert [(one["change"], one["path"]) for one in found["files"]] == [("changed", "net.onnx"), ("removed", "old.txt")]
    assert [one["difference"] for one in found["metrics"]] == [None, -0.25]
    assert {"name": "job", "before": None, "after": "train"} in found["origin"]
    shown = pdc("-n", namespace, "model", "diff", *both, *store, env=server.env).stdout
    assert "-0.25" in shown


def test_each_job_and_version_keeps_the_state_of_the_data_that_it_read(
    kubectl: Kubectl, server: Target, namespace: str, data: str, tmp_path: Path
) -> None:
    """What a job and its version read stays what it was when data is synced later, and says that it changed."""
    store = ("--store", f"file://{tmp_path}/store")

    def run(*words: str) -> str:
        return pdc("-n", namespace, *words, env=server.env).stdout

    def data_of(name: str) -> tuple[Any, ...]:
        (seen,) = json.loads(run("trace", name, "-o", "json"))["from"]
        seen = seen if seen["kind"] == "sampleset" else seen["from"][0]
        return seen["state"], seen["facts"]["revision"], seen["facts"]["files"]

    run("wait", f"sampleset/{data}", "--for=jsonpath={.status.content.files}", "--timeout=120s")
    for number in (1, 2):
        run(
            "run",
            "--image",
            "python:3.11",
            "--name",
            f"train-{number}",
            "--volume",
            f"{data}:/data",
            "--",
            "ls",
            "/data",
        )
        assert data_of(f"pdj/train-{number}") == ("exists", str(number), str(number + 1))
        (tmp_path / "source" / f"more-{number}.txt").write_text("more")
        run("samplejob", "sync", data)
        until(lambda n=number: data_of(f"pdj/train-{n}")[0], "changed", what="the state of the data")
    (tmp_path / "net.onnx").write_text("made of the first state")
    run("model", "push", "late", str(tmp_path / "net.onnx"), *store, "--from-job", "train-1")
    assert data_of("late:1") == ("changed", "1", "2")
    shown = run("trace", "late:1", "--lang", "en")
    assert "revision 1 · 2 files" in shown
    assert "changed since: revision 3 now" in shown


def test_what_was_never_there_cannot_be_traced(server: Target, namespace: str) -> None:
    refused = pdc("-n", namespace, "trace", "pdj/never", env=server.env, check=False)
    assert refused.returncode == 3, refused.stderr
    assert isinstance(refused, subprocess.CompletedProcess)
