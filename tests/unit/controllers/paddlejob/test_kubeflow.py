"""Kubeflow's PaddleJob runs as one of ours and reports in its own words."""

from __future__ import annotations

from typing import Any

from paddlecloud.controllers.paddlejob.kubeflow import decide
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object

from .world import START, JobCluster, template


def kubeflow_job(**spec: Any) -> Object:
    worker = {"replicas": 2, "restartPolicy": "OnFailure", "template": template()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "simple", "namespace": "kubeflow", "uid": "kf", "creationTimestamp": rfc3339(START)},
        "spec": {"paddleReplicaSpecs": {"Worker": worker}, **spec},
    }


def born(job: Object) -> JobCluster:
    """The world of the PaddleJob that was made for `job`."""
    (child,) = decide(job, None, START).create
    child["metadata"] |= {"uid": "ours", "generation": 1, "creationTimestamp": rfc3339(START), "resourceVersion": "1"}
    return JobCluster(child)


def test_it_becomes_a_paddlejob_that_keeps_its_pods() -> None:
    world = born(kubeflow_job())
    assert world.job["apiVersion"] == "batch.paddlepaddle.org/v1"
    assert world.job["metadata"]["ownerReferences"][0]["uid"] == "kf"
    world.start()
    world.succeed(*world.pods)
    world.settle()
    assert (world.phase, len(world.pods)) == ("Completed", 2)


def test_its_state_column_follows_the_job() -> None:
    job = kubeflow_job()
    world = born(job)
    seen = []

    def look() -> None:
        job["status"] = decide(job, world.job, world.now).status
        seen.append(job["status"]["conditions"][-1]["type"] if job["status"]["conditions"] else "")
        world.now += 10

    look()
    world.settle()
    look()
    world.start()
    look()
    assert job["status"]["replicaStatuses"]["Worker"]["active"] == 2
    world.succeed(*world.pods)
    world.settle()
    look()
    assert seen == ["", "Created", "Running", "Succeeded"]
    assert job["status"]["replicaStatuses"]["Worker"]["succeeded"] == 2
    assert decide(job, world.job, world.now + 99).status == job["status"], "nothing to write when nothing changed"


def test_changes_reach_the_converted_job() -> None:
    job = kubeflow_job()
    world = born(job)
    job["spec"]["paddleReplicaSpecs"]["Worker"]["replicas"] = 3
    job["spec"]["runPolicy"] = {"suspend": True}
    (patch,) = decide(job, world.job, START).patch
    assert patch.patch["spec"]["worker"]["replicas"] == 3
    assert patch.patch["spec"]["runPolicy"]["suspend"] is True


def test_a_paddlejob_of_the_same_name_is_not_taken_over() -> None:
    job = kubeflow_job()
    stranger = born(job).job
    stranger["metadata"]["ownerReferences"] = []
    plan = decide(job, stranger, START)
    assert plan.create == plan.patch == []
    assert plan.status is not None
    assert "rename either" in plan.status["conditions"][0]["message"]


def test_a_job_that_makes_no_sense_is_refused_and_one_that_runs_goes_on_unchanged() -> None:
    job = kubeflow_job(elasticPolicy={"minReplicas": 1, "maxReplicas": 3})
    world = born(job)
    job["spec"]["paddleReplicaSpecs"]["Worker"]["replicas"] = 9
    plan = decide(job, world.job, START)
    assert plan.patch == []
    assert [event.reason for event in plan.events] == ["InvalidSpec"]
    assert "must lie between requests (1) and limits (3)" in plan.events[0].message
    fresh = decide(job, None, START)
    assert (fresh.create, fresh.status["conditions"][0]["reason"]) == ([], "InvalidSpec")
