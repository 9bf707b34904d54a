"""A pass copies no more of a template than it can write down at once."""

from __future__ import annotations

import pytest

from paddlecloud.kube.bursts import ROOM, burst
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads import replicaset
from paddlecloud.local.workloads.job import decide as job
from unit.controllers.paddlejob.world import JobCluster, paddlejob

LABELS = {"a": "b"}


def template(size: int) -> Object:
    variables = [{"name": f"V{number:06}", "value": ""} for number in range(size // 31)]
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i", "env": variables}]}}


def workload(kind: str, **spec: object) -> Object:
    meta = {"name": "w", "namespace": "d", "uid": "u", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": {"selector": {"matchLabels": LABELS}, **spec}}


@pytest.mark.parametrize(
    ("size", "most", "made"), [(100, 500, 500), (ROOM // 3, 500, 3), (ROOM * 2, 500, 1), (100, 0, 0), (100, -3, -3)]
)
def test_of_a_large_template_fewer_copies_are_made_and_always_one(size: int, most: int, made: int) -> None:
    assert burst(template(size), most) == made


def copies(kind: str, size: int) -> int:
    """The pods that the first pass makes of 100,000 that are wanted, or 5,000, the most of a PaddleJob."""
    given = template(size)
    if kind == "ReplicaSet":
        found = workload(kind, replicas=100_000, template=given)
        return len(replicaset.decide(found, replicaset.Observed(), 0.0).create)
    if kind == "PaddleJob":
        world = JobCluster(paddlejob(worker={"replicas": 5_000, "template": given}))
        return len([obj for obj in world.plan().create if obj["kind"] == "Pod"])
    mode = kind.removesuffix(" Job")
    found = workload("Job", completions=100_000, parallelism=10_000, completionMode=mode, template=given)
    return len(job.decide(found, job.Observed(), 0.0).create)


@pytest.mark.parametrize("kind", ["ReplicaSet", "Indexed Job", "NonIndexed Job", "PaddleJob"])
def test_a_template_of_a_megabyte_is_not_copied_hundreds_of_times_in_one_pass(kind: str) -> None:
    assert copies(kind, 100) == 500
    assert copies(kind, 1 << 20) <= 16
