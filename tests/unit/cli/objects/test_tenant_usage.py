"""What a tenant used, from objects whose times are known."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.cli.commands import top
from paddlecloud.cli.objects.tenant_usage import TenantUsage, Window, usage
from paddlecloud.kube.times import rfc3339

NOW = 1_790_000_000.0
ALWAYS = Window(0.0, NOW)


def at(hours_ago: float) -> str:
    return rfc3339(NOW - hours_ago * 3600)


def pod_spec(**requests: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def job(created: float, started: float | None, ended: float | None) -> dict[str, Any]:
    status = {"startTime": started and at(started), "completionTime": ended and at(ended)}
    worker = {"replicas": 2, "template": {"spec": pod_spec(cpu="500m", **{"nvidia.com/gpu": "1"})}}
    ps = {"template": {"spec": pod_spec(cpu="1")}}
    meta = {"name": "train", "creationTimestamp": at(created)}
    return {"metadata": meta, "spec": {"worker": worker, "ps": ps}, "status": {k: v for k, v in status.items() if v}}


def pod(started: float, ended: float | None, **labels: str) -> dict[str, Any]:
    state = {"terminated": {"finishedAt": at(ended)}} if ended is not None else {"running": {}}
    phase = "Running" if ended is None else "Succeeded"
    status = {"phase": phase, "startTime": at(started), "containerStatuses": [{"state": state}]}
    spec = {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}
    return {"metadata": {"name": "lab", "labels": labels}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("made", "window", "found"),
    [
        (job(5, 4, 1), ALWAYS, TenantUsage(jobs=1, gpu_hours=6, cpu_hours=6, queue_hours=1)),
        (job(5, 4, None), ALWAYS, TenantUsage(jobs=1, gpu_hours=8, cpu_hours=8, queue_hours=1)),
        (job(5, None, None), ALWAYS, TenantUsage(jobs=1, queue_hours=5)),
        (job(5, None, 3), ALWAYS, TenantUsage(jobs=1, queue_hours=2)),  # it never ran
        (job(5, 4, 1), Window(NOW - 2 * 3600, NOW), TenantUsage(jobs=1, gpu_hours=2, cpu_hours=2)),
    ],
)
def test_a_job_counts_by_the_pods_it_asks_for_and_the_time_it_ran(
    made: Any, window: Window, found: TenantUsage
) -> None:
    assert usage([made], [], [], window) == found


@pytest.mark.parametrize(
    ("made", "hours"),
    [(pod(3, None), 6), (pod(3, 1), 4), (pod(3, 1, **{JOB_LABEL: "train"}), 0), (pod(0, None), 0)],
)
def test_pods_of_no_job_count_by_their_own_times(made: Any, hours: float) -> None:
    assert usage([], [made], [], ALWAYS) == TenantUsage(cpu_hours=hours)


def test_claims_count_by_what_they_got_or_else_ask_for() -> None:
    asked = {"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    bound = {**asked, "status": {"capacity": {"storage": "2Gi"}}}
    assert usage([], [], [asked, bound], ALWAYS).storage == 3 << 30


NONSENSE: list[Any] = [
    7,
    {"spec": 7},
    {"spec": {"containers": 7}},
    {"spec": {"containers": ["x", 5]}},
    {"spec": {"containers": [{"resources": "q"}]}},
    {"spec": {"containers": [{"resources": {"limits": 1, "requests": {"cpu": "1e999999999", "nvidia.com/gpu": []}}}]}},
]


@pytest.mark.parametrize("template", NONSENSE)
def test_a_template_that_is_nonsense_does_not_keep_others_from_being_counted(template: Any) -> None:
    spoiled = job(2, 1, None) | {"spec": {"worker": {"replicas": 1, "template": template}}}
    alone, both = (usage(jobs, [], [], ALWAYS) for jobs in ([job(2, 1, None)], [spoiled, job(2, 1, None)]))
    assert (both.cpu_hours, both.gpu_hours, both.jobs) == (alone.cpu_hours, alone.gpu_hours, 2)
    assert top._gpus(spoiled["spec"]) == 0
