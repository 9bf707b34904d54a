"""Metrics of a job: what a pod that reads them prints, and the pod that is made where none runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.sdk.metrics import MetricsError, parse, reader_pod
from paddlecloud.visualdl.folders import FolderError

LINE = {"run": "r", "tag": "loss", "steps": [0, 1], "times": [5, 6], "values": [1, 0.5]}


def test_curves_and_problems_are_kept_apart() -> None:
    found = parse(json.dumps(LINE) + "\n" + json.dumps({"problem": "x: damaged"}) + "\n")
    assert [(one.tag, one.steps, one.values) for one in found] == [("loss", [0, 1], [1.0, 0.5])]
    assert found.problems == ["x: damaged"]


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "[1]",
        "1",
        "{}",
        json.dumps({**LINE, "values": [1]}),
        json.dumps({**LINE, "steps": [], "times": [], "values": []}),
        json.dumps({**LINE, "values": ["x", "y"]}),
        json.dumps({**LINE, "steps": {"a": 1}}),
        "[" * 100_000,
    ],
)
def test_what_is_no_curve_is_refused(text: str) -> None:
    with pytest.raises(MetricsError, match="the pod printed something else than curves"):
        parse(text)


def job(*mounts: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "paddle", "image": "paddle:1", "volumeMounts": list(mounts)}
    pod = {
        "containers": [container],
        "volumes": [{"name": "task", "persistentVolumeClaim": {"claimName": "task"}}],
        "nodeSelector": {"disk": "fast"},
    }
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "fit", "namespace": "team", "uid": "u1"},
        "spec": {"worker": {"template": {"spec": pod}}},
    }


def test_a_reader_has_the_jobs_image_and_volumes_and_ends_by_itself() -> None:
    pod = reader_pod(job({"name": "task", "mountPath": "/task"}), ["/task/log"])
    assert pod["metadata"]["generateName"] == "fit-metrics-"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "u1"
    spec = pod["spec"]
    assert spec["containers"][0]["image"] == "paddle:1"
    assert spec["containers"][0]["volumeMounts"] == [{"name": "task", "mountPath": "/task", "readOnly": True}]
    assert (spec["nodeSelector"], spec["restartPolicy"]) == ({"disk": "fast"}, "Never")
    assert spec["activeDeadlineSeconds"] > 0
    assert spec["automountServiceAccountToken"] is False


def test_records_that_went_with_the_pods_are_refused() -> None:
    with pytest.raises(FolderError, match="the container's own disk"):
        reader_pod(job(), ["/log"])
