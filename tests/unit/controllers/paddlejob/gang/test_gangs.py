"""PodGroups: whose they are, what they ask for, and what the job says while it waits for one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlecloud.controllers.paddlejob import JobOptions
from paddlecloud.controllers.paddlejob.gang.podgroup import COSCHEDULING, VOLCANO
from unit.controllers.paddlejob.world import JobCluster, paddlejob, template


def test_the_pod_group_sums_what_the_pods_ask_for() -> None:
    worker = {"replicas": 2, "template": template(container={"resources": {"requests": {"cpu": "200m"}}})}
    server = {"replicas": 2, "template": template(container={"resources": {"limits": {"cpu": "300m"}}})}
    policy = {"queue": "paddle", "priorityClass": "high"}
    world = JobCluster(paddlejob(ps=server, worker=worker, schedulingPolicy=policy, withGloo=1)).start()
    group = world.get("PodGroup")
    assert group is not None
    assert group["spec"] == {
        "minMember": 4,
        "minResources": {"cpu": "1"},
        "queue": "paddle",
        "priorityClassName": "high",
    }
    pod = world.pods["job-ps-0"]
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "job"


def test_pods_wait_until_the_group_is_queued_and_the_job_says_so() -> None:
    world = JobCluster(paddlejob(worker=2, schedulingPolicy={}))
    world.step()
    group = world.get("PodGroup")
    assert group is not None
    said = {"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable"}
    group["status"] = {"phase": "Pending", "conditions": [said]}
    world.now += 100
    world.settle()
    assert world.pods == {}
    assert "2/2 tasks in gang unschedulable" in world.status["message"]
    group["status"] = {"phase": "Inqueue"}
    world.settle()
    assert len(world.pods) == 2


def volcano_worker() -> dict[str, Any]:
    return paddlejob(
        worker={"replicas": 2, "template": template(schedulerName="volcano")}, ps=2, withGloo=1, cleanPodPolicy="Never"
    )


def test_the_manuals_form_uses_the_users_pod_group_for_all_roles() -> None:
    world = JobCluster(volcano_worker())
    world.step()
    assert world.pods == {}, "the file lists the job first: its PodGroup follows"
    users = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"minMember": 4},
        "status": {"phase": "Inqueue"},
    }
    world.objects[("PodGroup", "job")] = copy.deepcopy(users)
    world.start()
    assert {pod["spec"]["schedulerName"] for pod in world.pods.values()} == {"volcano"}
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    assert world.get("PodGroup") == users, "neither changed nor deleted"


def test_without_a_users_pod_group_one_is_made_after_a_few_seconds() -> None:
    world = JobCluster(volcano_worker())
    assert world.step().after == pytest.approx(3, abs=0.1)
    world.now += 3
    world.settle()
    assert world.get("PodGroup") is not None


def test_a_foreign_scheduler_turns_the_gang_off() -> None:
    worker = {"replicas": 1, "template": template(schedulerName="mine")}
    world = JobCluster(paddlejob(worker=worker, schedulingPolicy={"queue": "q"})).start()
    assert world.get("PodGroup") is None
    assert world.pods["job-worker-0"]["spec"]["schedulerName"] == "mine"


def test_the_pod_group_follows_the_scale_and_goes_with_the_job() -> None:
    world = JobCluster(paddlejob(worker=2, schedulingPolicy={})).start()
    world.job["spec"]["worker"]["replicas"] = 3
    world.step()
    world.obey()
    world.start()
    group = world.get("PodGroup")
    assert group is not None
    assert group["spec"]["minMember"] == 3
    world.succeed(*world.pods)
    world.settle()
    assert world.get("PodGroup") is None


def coscheduled(**spec: Any) -> JobCluster:
    """A cluster with the coscheduling plugin and without Volcano."""
    return JobCluster(paddlejob(**spec), options=JobOptions(gangs=(COSCHEDULING,)))


def test_where_only_coscheduling_is_served_its_pod_group_is_made_with_the_pods() -> None:
    policy = {"minAvailable": 2, "priorityClass": "high", "queue": "q"}
    world = coscheduled(worker={"replicas": 3, "template": cpu("500m")}, schedulingPolicy=policy)
    world.step()
    group = world.get("PodGroup")
    assert group is not None
    assert group["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert group["spec"] == {"minMember": 2, "minResources": {"cpu": "1500m"}}
    pod = world.pods["job-worker-0"]
    assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "job"
    assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    assert pod["spec"]["priorityClassName"] == "high"
    world.start()
    world.succeed(*world.pods)
    world.settle()
    assert world.get("PodGroup") is None


def cpu(amount: str) -> dict[str, Any]:
    return template(container={"resources": {"requests": {"cpu": amount}}})


def test_where_both_are_served_the_named_scheduler_decides() -> None:
    both = JobOptions(gangs=(VOLCANO, COSCHEDULING))
    worker = {"replicas": 1, "template": template(schedulerName="scheduler-plugins-scheduler")}
    for job, group in (
        (paddlejob(worker=worker, schedulingPolicy={}), "scheduling.x-k8s.io/v1alpha1"),
        (paddlejob(worker=1, schedulingPolicy={}), "scheduling.volcano.sh/v1beta1"),
    ):
        world = JobCluster(job, options=both).start()
        made = world.get("PodGroup")
        assert made is not None
        assert made["apiVersion"] == group


def test_where_nobody_schedules_gangs_the_job_runs_without_and_says_so() -> None:
    world = JobCluster(paddlejob(worker=1, schedulingPolicy={"queue": "q"}), options=JobOptions(gangs=())).start()
    assert world.get("PodGroup") is None
    assert any("serves no PodGroups" in event for event in world.events)
    reports = next(each for each in world.status["conditions"] if each["type"] == "GangScheduled")
    assert (reports["status"], reports["reason"]) == ("False", "NoGangScheduler")
    assert "serves no PodGroups" in reports["message"]
