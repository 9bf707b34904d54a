"""`pdc top`: figures as kubectl rounds them, jobs added up, and servers that measure nothing."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.cli.commands.top import Usage, usage
from unit.cli.conftest import Pdc
from unit.cli.samples import make_job
from unit.cli.stub import Stub

METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"cpu": "1", "memory": "1Mi"}, Usage(1000, 1 << 20)),
        ({"cpu": "250m", "memory": "1048575"}, Usage(250, 1048575)),
        ({"cpu": "1234567n", "memory": "500Ki"}, Usage(2, 512000)),
        ({"cpu": "0"}, Usage(0, 0)),
        (None, Usage(0, 0)),
    ],
)
def test_cpu_is_rounded_up(amounts: Any, expected: Usage) -> None:
    assert usage(amounts) == expected


def measured(stub: Stub, cpu: dict[str, str]) -> None:
    items = [
        {
            "metadata": {"name": name, "namespace": "default"},
            "containers": [{"name": "paddle", "usage": {"cpu": amount, "memory": "64Mi"}}],
        }
        for name, amount in cpu.items()
    ]
    stub.refuse["GET", METRICS] = (200, {"kind": "PodMetricsList", "metadata": {}, "items": items})


def job(stub: Stub) -> dict[str, Any]:
    made = make_job(stub, workers=2, servers=1)
    made["spec"]["ps"] = {"replicas": 1, "template": {}}
    for (plural, _, name), pod in stub.objects.items():
        if plural == "pods" and name.startswith("wide-"):
            pod["metadata"]["labels"]["paddlepaddle.org/job-name"] = "wide"
    return made


def test_the_pods_of_a_job_are_added_up(stub: Stub, pdc: Pdc) -> None:
    made = job(stub)
    container = {"name": "paddle", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    made["spec"]["worker"]["template"] = {"spec": {"containers": [container]}}
    made["status"]["progress"] = {
        "epoch": 1, "totalEpochs": 3, "step": 40, "done": "40/120 (33%)", "etaSeconds": 3725, "loss": 0.123456,
    }  # fmt: skip
    measured(stub, {"wide-worker-0": "1500m", "wide-worker-1": "500m", "wide-ps-0": "1m", "stranger": "9"})
    item = pdc("top", "pdj", "-o", "json").json()["items"][0]
    assert item == {
        "name": "wide", "status": "Running", "pods": 3, "cpuMillicores": 2001, "memoryBytes": 3 * (64 << 20),
        "gpus": 4, "progress": "40/120 (33%)", "epoch": "1/3", "etaSeconds": 3725, "loss": 0.123456,
    }  # fmt: skip
    header, row = pdc("top", "pdj").out.splitlines()
    assert header.split()[-3:] == ["EPOCH", "ETA", "LOSS"]
    assert row.endswith("1h02m   0.1235")


def test_a_job_shows_its_progress_where_nothing_is_measured(stub: Stub, pdc: Pdc) -> None:
    job(stub)["status"]["progress"] = {"step": 7}
    stub.refuse["GET", METRICS] = (404, {"reason": "NotFound", "code": 404, "message": "no such group"})
    result = pdc("top", "pdj")
    assert result.code == 0
    assert "step 7" in result.out


def test_without_metrics_pods_cannot_be_measured(stub: Stub, pdc: Pdc) -> None:
    stub.refuse["GET", METRICS] = (404, {"reason": "NotFound", "code": 404, "message": "no such group"})
    result = pdc("top", "pods")
    assert result.code == 3
    assert "metrics-server" in result.err


def test_the_largest_first(stub: Stub, pdc: Pdc) -> None:
    measured(stub, {"a": "1m", "b": "3", "c": "20m"})
    lines = pdc("top", "pods", "--sort-by", "cpu", "--no-headers").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["b", "3000m"], ["c", "20m"], ["a", "1m"]]
