"""Where a version came from, made of objects: no secret in it, within the bounds of a ModelVersion."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.api.model.spec import ModelVersionSpec
from paddlecloud.api.problems import declared_problems
from paddlecloud.kube.resource import Object
from paddlecloud.modelhub import code_commit, origin

COMMIT = "3f" * 20


def job(container: dict[str, Any] | None = None, **meta: Any) -> Object:
    made = {"name": "paddle", "image": "paddle:3", "command": ["python", "train.py"], **(container or {})}
    volumes = [{"name": "task", "persistentVolumeClaim": {"claimName": "task"}}, {"name": "tmp", "emptyDir": {}}]
    pod = {"containers": [made], "volumes": volumes}
    return {
        "metadata": {"name": "train", "namespace": "a", "uid": "u-1", **meta},
        "spec": {"sampleSetRef": {"name": "words", "mountPath": "/data"}, "worker": {"template": {"spec": pod}}},
    }


def test_a_job_is_recorded_with_its_image_and_command() -> None:
    pod = {"status": {"containerStatuses": [{"name": "paddle", "imageID": "docker-pullable://paddle@sha256:12"}]}}
    found = origin.of_job(job({"args": ["--epochs", "3"], "env": [{"name": "LR", "value": "0.1"}]}), pod, namespace="a")
    assert found == {
        "job": "train",
        "job-uid": "u-1",
        "image": "paddle:3",
        "image-id": "paddle@sha256:12",
        "command": "python train.py --epochs 3",
        "env.LR": "0.1",
    }
    assert origin.of_job(job(), namespace="b")["job-namespace"] == "a"
    assert origin.claims_of(job()) == ["words", "task"]


def test_a_template_that_is_nonsense_has_no_claims_and_no_container() -> None:
    """Templates of pods have no schema."""
    for pod in (None, "x", {"volumes": "x"}, {"volumes": ["x", {"persistentVolumeClaim": "x"}]}):
        assert origin.claims_of({"spec": {"worker": {"template": {"spec": pod}}}}) == []
    named = {"volumes": [{"persistentVolumeClaim": {"claimName": {"a": 1}}}], "containers": ["x"]}
    assert origin.claims_of({"spec": {"worker": {"template": {"spec": named}}}}) == []
    assert origin.training_container({"spec": {"worker": {"template": {"spec": named}}}}) == {}
    found = origin.of_job(job({"command": 5, "args": "x", "env": "y"}))
    assert (found["image"], "command" in found) == ("paddle:3", False)


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": "API_TOKEN", "value": "hunter2"}]},
        {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
        {"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}]},
        {"env": [{"name": "SOURCE", "value": "https://me:hunter2@host/x"}]},
        {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "hunter2", "key": "k"}}}]},
        {"command": ["python", "train.py", "--api-key", "hunter2"]},
        {"command": ["sh", "-c", "python train.py --password='hunter2' --lr 1"]},
        {"command": ["python", "train.py", "s3://me:hunter2@host/bucket"]},
    ],
)
def test_what_looks_like_a_secret_is_left_out(container: dict[str, Any]) -> None:
    assert "hunter2" not in str(origin.of_job(job(container)))


def test_an_origin_fits_into_a_version() -> None:
    found = origin.bounded({f"env.{number}": "x" * 5000 for number in range(200)})
    spec = ModelVersionSpec(origin=found)
    assert [one for one in declared_problems(spec, "spec") if "origin" in one.field] == []
    assert len(found) == origin.MOST
    many = [{"name": f"V{number}", "value": "1"} for number in range(100)]
    assert len(origin.of_job(job({"env": many}))) < 32


def test_the_run_and_the_step_of_a_pipeline_are_recorded() -> None:
    marks = {
        "paddlepaddle.org/pipeline-step": "wf-uid/digest",
        "paddlepaddle.org/pipeline-run-name": "ppocr-x7",
        "paddlepaddle.org/pipeline-step-name": "training",
    }
    found = origin.of_job(job(annotations=marks))
    assert (found["run"], found["run-name"], found["step"]) == ("wf-uid", "ppocr-x7", "training")
    alone = origin.of_job(job(annotations={"paddlepaddle.org/pipeline-step": "random/digest"}))
    assert "run" not in alone, "a launcher outside of a pipeline has no run"


def test_a_pod_of_argo_has_a_run_and_a_step() -> None:
    meta = {
        "labels": {"workflows.argoproj.io/workflow": "ppocr-x7"},
        "annotations": {"workflows.argoproj.io/node-name": "ppocr-x7.training(0)"},
        "ownerReferences": [{"kind": "Workflow", "uid": "wf-uid"}],
    }
    assert origin.of_step({"metadata": meta}) == {"run": "wf-uid", "run-name": "ppocr-x7", "step": "training(0)"}
    assert origin.of_step({"metadata": {"labels": meta["labels"]}}) == {}


def test_the_content_of_a_data_set_is_recorded() -> None:
    status = {
        "source": "s3://me:hunter2@bucket/words",
        "cacheStatus": {"totalSize": "4.2 GiB", "totalFiles": "1200"},
        "conditions": [{"type": "Synced", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    words = {"metadata": {"name": "words", "uid": "u-2", "generation": 3}, "status": status}
    found = origin.of_data([words])
    assert origin.data_names(found) == ["words"]
    assert origin.data_facts(found, "words") == {
        "uid": "u-2",
        "generation": "3",
        "source": "s3://…@bucket/words",
        "files": "1200",
        "size": "4.2 GiB",
        "imported": "2026-01-01T00:00:00Z",
    }


def test_the_data_of_a_job_is_what_its_pods_started_with() -> None:
    content = {"revision": 3, "files": 9, "bytes": 99, "changedAt": "2026-01-03T00:00:00Z"}
    words = {
        "metadata": {"name": "words", "uid": "u-2", "generation": 1},
        "status": {"content": content, "cacheStatus": {"totalSize": "99 B", "totalFiles": "9"}},
    }
    seen = {"name": "words", "uid": "u-2", "revision": 1, "files": 1, "bytes": 21, "changedAt": "2026-01-01T00:00:00Z"}
    job = {"status": {"data": [seen]}}
    found = origin.data_facts(origin.of_data([words], job), "words")
    assert (found["revision"], found["files"], found["size"], found["changed"]) == ("1", "1", "21 B", seen["changedAt"])
    now = origin.data_facts(origin.of_data([words]), "words")
    assert (now["revision"], now["files"], now["size"]) == ("3", "9", "99 B")
    unmeasured = {"status": {"data": [{"name": "words", "uid": "u-2", "revision": 1}]}}
    assert "files" not in origin.data_facts(origin.of_data([words], unmeasured), "words"), "those of now are others"
    other = {"status": {"data": [{**seen, "uid": "u-1"}]}}
    assert origin.data_facts(origin.of_data([words], other), "words")["revision"] == "3"


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_a_clone_and_of_a_worktree_is_found(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "inner").mkdir(parents=True)
    (clone / "train.py").write_text("1")
    _git(clone, "init", "-q")
    _git(clone, "add", ".")
    _git(clone, "commit", "-q", "-m", "first")
    commit = _git(clone, "rev-parse", "HEAD")
    assert code_commit.of_folder(clone / "inner") == {"commit": commit}
    (clone / "train.py").write_text("2")
    assert code_commit.of_folder(clone) == {"commit": commit, "commit-changed": "yes"}
    _git(clone, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    assert code_commit.of_folder(tmp_path / "other") == {"commit": commit}
    _git(clone, "checkout", "-q", "--", ".")
    _git(clone, "pack-refs", "--all")
    assert code_commit.of_folder(clone) == {"commit": commit}


@pytest.mark.parametrize(
    ("head", "commit"),
    [(COMMIT, COMMIT), ("ref: refs/heads/none", ""), ("ref: ../../etc/passwd", ""), ("garbage", ""), ("", "")],
)
def test_what_is_no_commit_is_not_recorded(
    head: str, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert code_commit.of_folder(tmp_path) == ({"commit": commit} if commit else {})
