"""Which names a quota may have: those of Kubernetes' validation."""

from __future__ import annotations

import pytest

from paddlecloud.kube.quota_names import quota_name_problem


@pytest.mark.parametrize(
    "name",
    [
        "cpu", "requests.memory", "limits.ephemeral-storage", "requests.storage", "pods", "services.nodeports",
        "hugepages-2Mi", "requests.hugepages-1Gi", "requests.nvidia.com/gpu", "count/jobs.batch",
        "gold.storageclass.storage.k8s.io/requests.storage",
    ],
)  # fmt: skip
def test_a_name_of_a_quota(name: str) -> None:
    assert quota_name_problem(name) == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [("cpus", '"cpu"'), ("mem", '"memory"'), ("request.cpu", '"requests.cpu"'), ("gpu", "requests.nvidia.com/gpu")],
)
def test_another_name_would_limit_nothing(name: str, meant: str) -> None:
    assert meant in quota_name_problem(name)
