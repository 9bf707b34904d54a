"""Kubeflow's PaddleJob becomes one of ours."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api import kubeflow, paddlejob
from paddlecloud.api.schema import root_schema
from paddlecloud.local.apiserver.schema import structural


def replica(replicas: int = 1, **more: Any) -> dict[str, Any]:
    containers = [{"name": "sidecar", "image": "a"}, {"name": "paddle", "image": "b"}]
    return {"replicas": replicas, "template": {"spec": {"containers": containers}}, **more}


def convert(spec: dict[str, Any]) -> paddlejob.PaddleJob:
    return kubeflow.convert(
        kubeflow.decode({"metadata": {"name": "kf", "namespace": "ns", "labels": {"a": "b"}}, "spec": spec})
    )


def test_master_becomes_ps_and_worker_stays() -> None:
    job = convert({"paddleReplicaSpecs": {"Master": replica(1), "Worker": replica(2)}})
    assert paddlejob.validate(job) == []
    settings, warnings = paddlejob.normalise(job)
    assert [(role.name, role.replicas) for role in settings.roles] == [("ps", 1), ("worker", 2)]
    assert warnings == []


def test_the_container_called_paddle_trains() -> None:
    job = convert({"paddleReplicaSpecs": {"Worker": replica(2)}})
    worker = paddlejob.normalise(job).settings.role("worker")
    assert worker is not None
    assert [container["name"] for container in worker.template["spec"]["containers"]] == ["paddle", "sidecar"]


@pytest.mark.parametrize(
    ("written", "meant"), [(None, "Never"), ("None", "Never"), ("All", "Always"), ("Running", "Running")]
)
def test_pods_are_kept_by_default(written: str | None, meant: str) -> None:
    policy = {} if written is None else {"runPolicy": {"cleanPodPolicy": written}}
    job = convert({"paddleReplicaSpecs": {"Worker": replica(2)}, **policy})
    assert paddlejob.normalise(job).settings.clean_pod_policy == meant


def test_run_and_elastic_policies_are_carried_over() -> None:
    job = convert(
        {
            "runPolicy": {
                "suspend": True,
                "backoffLimit": 4,
                "activeDeadlineSeconds": 60,
                "ttlSecondsAfterFinished": 30,
                "managedBy": "kueue.x-k8s.io/multikueue",
                "schedulingPolicy": {"queue": "q", "scheduleTimeoutSeconds": 9},
            },
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 9},
            "paddleReplicaSpecs": {"Worker": replica(2, restartPolicy="ExitCode")},
        }
    )
    assert paddlejob.validate(job) == []
    settings = paddlejob.normalise(job).settings
    worker = settings.role("worker")
    assert worker is not None
    assert (worker.minimum, worker.maximum, worker.restart_policy) == (1, 4, "ExitCode")
    assert (settings.suspend, settings.backoff_limit, settings.managed_by) == (True, 4, "kueue.x-k8s.io/multikueue")
    assert (settings.scheduling.queue, settings.scheduling.timeout_seconds) == ("q", 9)
    assert (settings.active_deadline_seconds, settings.ttl_seconds_after_finished) == (60, 30)


def test_the_converted_job_says_where_it_comes_from_and_keeps_its_labels() -> None:
    job = convert({"paddleReplicaSpecs": {"Worker": replica()}})
    assert job.metadata["labels"] == {"a": "b"}
    assert job.metadata["annotations"][kubeflow.ORIGIN_ANNOTATION] == "kubeflow.org/v1"
    assert job.api_version == "batch.paddlepaddle.org/v1"


@pytest.mark.parametrize("spec", [{}, {"paddleReplicaSpecs": {}}, {"paddleReplicaSpecs": {"Worker": {}}}])
def test_an_unfinished_job_is_converted_and_then_refused(spec: dict[str, Any]) -> None:
    assert paddlejob.validate(convert(spec))


@pytest.mark.parametrize(
    ("workers", "policy", "refused"),
    [
        (replica(2), None, False),
        (replica(2), {"minReplicas": 1, "maxReplicas": 3}, False),
        (replica(9), {"minReplicas": 1, "maxReplicas": 3}, True),
        (replica(0), {"minReplicas": 1}, True),
        ({"template": replica()["template"]}, {"minReplicas": 2}, True),
        ({"template": replica()["template"]}, {"maxReplicas": 2}, False),
    ],
)
def test_workers_outside_of_the_bounds_are_refused_by_the_definition_and_by_ours(
    workers: dict[str, Any], policy: dict[str, Any] | None, refused: bool
) -> None:
    spec = {"paddleReplicaSpecs": {"Worker": workers}, **({"elasticPolicy": policy} if policy else {})}
    assert bool(structural.validate({"spec": spec}, root_schema(kubeflow.DECLARATION), {})) == refused
    assert bool(paddlejob.validate(convert(spec))) == refused
