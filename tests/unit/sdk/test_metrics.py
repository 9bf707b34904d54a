"""Metrics of a job: what a pod that reads them prints, and the pod that is made where none runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.kube.config import Config
from paddlecloud.sdk import members, metrics
from paddlecloud.sdk.core import AsyncClient
from paddlecloud.sdk.metrics import MetricsError, found_in, lifetime, parse, reader_pod
from paddlecloud.sdk.remote import Output
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
        json.dumps({**LINE, "steps": ["REPLACED", 1]}).replace('"REPLACED"', "1e999"),
    ],
)
def test_what_is_no_curve_is_refused(text: str) -> None:
    with pytest.raises(MetricsError, match="the pod printed something else than curves"):
        parse(text)


class Endless:
    """A program that prints without end; `closed` when nobody reads it any more."""

    closed = False

    async def exec(self, *_: object, **__: object) -> Endless:
        return self

    async def write(self, data: bytes) -> None: ...
    async def end_input(self) -> None: ...

    async def read(self) -> Output:
        return Output("stderr", b"x" * (1 << 20))

    async def close(self) -> None:
        self.closed = True


async def test_a_pod_that_prints_without_end_is_left() -> None:
    program = Endless()
    running = {"metadata": {"name": "fit-worker-0", "namespace": "team"}, "spec": {"containers": [{"name": "paddle"}]}}
    async with AsyncClient(Config("http://127.0.0.1:1")) as client:
        client._remote = program  # type: ignore[assignment]
        with pytest.raises(MetricsError, match="printed more than 8 MiB"):
            await metrics._read_in(client, members.member(running), ["/task"], 8 << 20)
        client._remote = None
    assert program.closed


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


@pytest.mark.parametrize(
    ("status", "bounds"),
    [
        ({}, ["--since=1795000000"]),
        ({"phase": "Running", "completionTime": "2026-11-18T11:08:00Z"}, ["--since=1795000000"]),
        (
            {"phase": "Completed", "completionTime": "2026-11-18T11:08:00Z"},
            ["--since=1795000000", "--until=1795000080"],
        ),
    ],
)
def test_files_are_read_that_were_written_during_the_jobs_life(status: dict[str, Any], bounds: list[str]) -> None:
    """A job that runs again after its end has no end."""
    body = job()
    body["metadata"]["creationTimestamp"] = "2026-11-18T11:06:40Z"
    assert lifetime({**body, "status": status}) == bounds


def test_a_folder_that_is_named_and_not_there_is_no_empty_list() -> None:
    with pytest.raises(MetricsError, match="nolog: there is no such folder"):
        found_in(metrics.read_here(["nolog"]))
    assert found_in(metrics.Metrics()) == []
