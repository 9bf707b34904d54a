"""Jobs that make no sense, and what others refuse: said on the job, nothing made half-way."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controllers.paddlejob.decision import gang_formation
from paddlecloud.kube.clock import rfc3339
from unit.controllers.paddlejob.world import JobCluster, conditions, paddlejob, template

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no role": ({}, "at least one role"),
    "no template": ({"worker": {"replicas": 1}}, "spec.worker.template.spec"),
    "no container": ({"worker": {"replicas": 1, "template": {"spec": {"containers": []}}}}, "at least one container"),
    "negative": ({"worker": {"replicas": -1, "template": template()}}, "spec.worker.replicas"),
    "two billion workers": (
        {"worker": 2_000_000_000},
        "spec.worker.replicas: Invalid value: 2000000000: must be at most",
    ),
    "two billion servers": ({"worker": 1, "ps": 2_000_000_000}, "spec.ps.replicas"),
    "room for two billion": (
        {"worker": {"replicas": 1, "limits": 2_000_000_000, "template": template()}, "elastic": 1},
        "spec.worker.limits",
    ),
    "elastic without workers": ({"ps": 1, "elastic": 1}, "an elastic job needs workers"),
    "unknown intranet": ({"worker": 1, "intranet": "Carrier"}, "spec.intranet"),
    "not a mapping": ({"worker": "two"}, "worker"),
    "sample set without a name": ({"worker": 1, "sampleSetRef": {"mountPath": "/x"}}, "sampleSetRef.name"),
    "sample set of another namespace": (
        {"worker": 1, "sampleSetRef": {"name": "x", "namespace": "victim", "mountPath": "/x"}},
        "spec.sampleSetRef.namespace",
    ),
}


def _misshapen(container: dict[str, Any] | None = None, **of_template: Any) -> dict[str, Any]:
    """A job whose template has something where the API server keeps whatever it is given."""
    main = {"name": "paddle", "image": "x", **(container or {})}
    pod = {"containers": [main], **of_template.pop("pod", {})}
    return {"worker": {"replicas": 1, "template": {"spec": pod, **of_template}}}


BAD |= {
    "variables that are a text": (_misshapen({"env": "x"}), "spec.worker.template.spec.containers[0].env"),
    "a variable that is a text": (_misshapen({"env": ["A=1"]}), "containers[0].env"),
    "a port that is a number": (_misshapen({"ports": [80]}), "containers[0].ports"),
    "volumes that are an object": (_misshapen(pod={"volumes": {"name": "a"}}), "spec.worker.template.spec.volumes"),
    "metadata that is a text": (_misshapen(metadata="x"), "spec.worker.template.metadata"),
    "labels that are a list": (_misshapen(metadata={"labels": ["a"]}), "spec.worker.template.metadata.labels"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_is_named_and_creates_nothing(case: tuple[dict[str, Any], str]) -> None:
    spec, word = case
    world = JobCluster(paddlejob(**spec))
    world.settle()
    assert world.objects == {}
    assert world.phase == "Failed"
    assert conditions(world)["Valid"] == "False"
    assert word in world.status["message"]
    assert any("InvalidSpec" in event for event in world.events)
    assert len(world.writes) == 2, "one status, one event, and silence"


@pytest.mark.parametrize("change", ["retry", "delete", "suspend", "edit while running"])
def test_a_job_stored_with_two_billion_workers_can_be_handled_like_any_other(change: str) -> None:
    world = JobCluster(paddlejob(worker=1 if change == "edit while running" else 2_000_000_000))
    if change == "edit while running":
        world.start()
        world.job["spec"]["worker"]["replicas"] = 2_000_000_000
    world.settle()
    if change == "retry":
        world.job["metadata"]["annotations"] = {"paddlepaddle.org/retry-at": rfc3339(world.now + 5)}
    elif change == "delete":
        world.job["metadata"]["deletionTimestamp"] = rfc3339(world.now)
    elif change == "suspend":
        world.job["spec"]["suspend"] = True
        world.job["metadata"]["generation"] = 2
    world.settle()
    assert conditions(world)["Valid"] == "False"
    assert len(world.pods) == (1 if change == "edit while running" else 0)


def test_a_large_gang_is_created_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_formation, "AT_ONCE", 4)
    world = JobCluster(paddlejob(worker=gang_formation.AT_ONCE + 3))
    world.step()
    assert len(world.pods) == gang_formation.AT_ONCE
    world.step()
    assert len(world.pods) == gang_formation.AT_ONCE + 3


def test_a_name_that_is_too_long_is_refused() -> None:
    world = JobCluster(paddlejob("x" * 60, worker=1))
    world.settle()
    assert "use a job name of at most" in world.status["message"]


def test_an_invalid_job_begins_when_it_is_repaired() -> None:
    world = JobCluster(paddlejob(worker=1, intranet="Carrier"))
    world.settle()
    world.job["spec"]["intranet"] = "PodIP"
    world.job["metadata"]["generation"] = 2
    world.start()
    assert conditions(world)["Valid"] == "True"


def test_a_job_managed_by_somebody_else_is_left_alone() -> None:
    world = JobCluster(paddlejob(worker=1, managedBy="kueue.x-k8s.io/multikueue"))
    world.settle()
    assert world.writes == []


def test_a_job_being_deleted_creates_nothing() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.job["metadata"]["deletionTimestamp"] = rfc3339(world.now)
    world.settle()
    assert world.objects == {}
    assert world.phase == "Terminating"


def test_a_refusal_is_said_on_the_job() -> None:
    world = JobCluster(paddlejob(worker=2))
    world.trouble = 'pods "job-worker-1" is forbidden: exceeded quota'
    world.step()
    assert "exceeded quota" in world.status["message"]


def test_a_gang_that_is_refused_in_part_holds_nothing_until_it_is_tried_again() -> None:
    world = JobCluster(paddlejob(worker=2))
    world.settle()
    world.objects.pop(("Pod", "job-worker-1"))  # was never granted
    world.trouble, world.retry_at = "exceeded quota", world.now + 4
    world.settle()
    assert world.pods == {}
    assert (world.phase, world.status["reason"], world.status["message"]) == (
        "Pending",
        "FailedCreate",
        "exceeded quota",
    )
    assert conditions(world)["Created"] == "False"
    world.trouble, world.retry_at = "", None
    world.start()
    assert (world.phase, conditions(world)["Created"]) == ("Running", "True")
    assert (world.status.get("restarts"), world.status.get("disruptions")) == (None, None)


def test_a_gang_that_is_refused_for_too_long_fails_when_it_had_to_be_scheduled_by_then() -> None:
    world = JobCluster(paddlejob(worker=2, schedulingPolicy={"scheduleTimeoutSeconds": 20}))
    world.trouble, world.retry_at = "exceeded quota", world.now + 1000
    world.settle()
    world.now += 21
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "ScheduleTimeout")
    assert world.status["message"].endswith("exceeded quota")


def test_a_mistake_made_later_does_not_end_a_running_job() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.job["spec"]["intranet"] = "Carrier"
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 2)
    assert conditions(world)["Valid"] == "False"


def test_leftovers_and_strangers_are_distinguished() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.leftovers = 2
    world.settle()
    assert (world.pods, "2 objects of an earlier job" in world.status["message"]) == ({}, True)
    world.leftovers, world.blockers = 0, ("ConfigMap job",)
    world.now += 100
    world.settle()
    assert world.pods == {}
    assert "ConfigMap job exists and is not ours" in world.status["message"]


MISTAKES: dict[str, Any] = {
    "outside of the bounds": {"worker": {"replicas": 9}},
    "nothing to run": {"worker": {"template": {"spec": {"containers": []}}}},
    "two billion": {"worker": {"replicas": 2_000_000_000}},
    "not a role": {"worker": "two"},
}


def edit(world: JobCluster, change: Any, into: Any = None) -> None:
    """A merge patch of the spec, as a user sends it."""
    into = world.job["spec"] if into is None else into
    for name, value in change.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            edit(world, value, into[name])
        else:
            into[name] = value
    world.job["metadata"]["generation"] += 1 if into is world.job["spec"] else 0


def elastic() -> JobCluster:
    worker = {"replicas": 2, "requests": 1, "limits": 3, "template": template()}
    return JobCluster(paddlejob(worker=worker, elastic=1, backoffLimit=3, cleanPodPolicy="Always"))


@pytest.mark.parametrize("change", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_job_with_a_mistake_made_later_is_healed_and_ends_by_its_last_valid_spec(change: Any) -> None:
    world = elastic().start()
    edit(world, change)
    world.forget()  # another controller takes over
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 2)
    first = world.status["conditions"][0]
    assert (first["type"], first["status"], first["reason"]) == ("Valid", "False", "InvalidSpec")
    assert first["message"].endswith("the job goes on by its last valid spec")
    assert world.status["message"] == first["message"]
    assert sum("InvalidSpec" in event for event in world.events) == 1

    world.fail("job-worker-0", code=1)
    world.settle()
    world.obey()
    world.now += 60
    world.start()
    assert (world.phase, len(world.pods), world.status["restarts"]) == ("Running", 2, 1)
    world.succeed(*world.pods)
    world.settle()
    world.obey()
    assert (world.phase, world.pods) == ("Completed", {}), "by the cleanPodPolicy of the valid spec"


def test_a_mistake_that_is_repaired_leaves_the_new_spec_in_force() -> None:
    world = elastic().start()
    edit(world, {"worker": {"replicas": 9}})
    world.settle()
    edit(world, {"worker": {"replicas": 3}})
    world.settle()
    world.obey()
    world.start()
    assert (conditions(world)["Valid"], len(world.pods)) == ("True", 3)
    assert world.status["lastValidSpec"]["worker"]["replicas"] == 3
    assert world.status.get("message") is None
    world.succeed(*world.pods)
    world.settle()
    assert (world.phase, "lastValidSpec" in world.status) == ("Completed", False)


def test_a_spec_too_large_to_be_kept_twice_is_not() -> None:
    world = elastic()
    world.job["spec"]["worker"]["template"]["metadata"] = {"annotations": {"much": "x" * 300_000}}
    world.start()
    assert (world.phase, "lastValidSpec" in world.status) == ("Running", False)
    edit(world, {"worker": {"replicas": 9}})
    world.settle()
    assert (world.phase, len(world.pods), conditions(world)["Valid"]) == ("Running", 2, "False")


def test_of_a_huge_job_a_first_burst_shows_whether_pods_may_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    world = JobCluster(paddlejob(worker=5_000))
    assert len([obj for obj in world.plan().create if obj["kind"] == "Pod"]) == gang_formation.FIRST_BURST
    monkeypatch.setattr(gang_formation, "FIRST_BURST", 4)
    world = JobCluster(paddlejob(worker=400))
    made = []
    for _ in range(4):
        world.step()
        made.append(len(world.pods))
    assert made == [4, 36, 324, 400], "a gang that nobody refuses is there after a few passes"


def test_a_message_names_some_of_many_objects_that_have_the_names_of_a_job() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.blockers = tuple(f"Pod job-worker-{number}" for number in range(9))
    world.settle()
    assert "Pod job-worker-4 and 4 more exists and is not ours" in world.status["message"]
