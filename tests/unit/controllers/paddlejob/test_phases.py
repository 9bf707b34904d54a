"""What a PaddleJob says about itself from creation to its end, and who decides that it is over."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controllers.paddlejob.status import hold_back

from .world import JobCluster, conditions, paddlejob


def test_phases_in_the_order_a_user_sees_them() -> None:
    world = JobCluster(paddlejob(worker=2, cleanPodPolicy="Never"))
    seen = []

    def look() -> None:
        world.now += 100
        world.settle()
        seen.append((world.phase, world.status["worker"]["ready"]))

    look()
    world.assign("job-worker-0")
    look()
    world.assign("job-worker-1")
    look()
    world.run("job-worker-0")
    look()
    world.run("job-worker-1")
    look()
    world.succeed("job-worker-0")
    look()
    world.succeed("job-worker-1")
    look()
    assert seen == [
        ("Pending", "0/2"),
        ("Pending", "0/2"),
        ("Starting", "0/2"),
        ("Starting", "1/2"),
        ("Running", "2/2"),
        ("Running", "1/2"),
        ("Completed", "0/2"),
    ]
    assert world.status["startTime"] < world.status["completionTime"]
    assert conditions(world) == {"Created": "True", "PodsReady": "True", "Running": "False", "Succeeded": "True"}


@pytest.mark.parametrize(
    ("code", "phase"), [pytest.param(0, "Running", id="done"), pytest.param(1, "Starting", id="broken")]
)
def test_a_helper_beside_the_program_that_is_done_is_not_awaited(code: int, phase: str) -> None:
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    world.assign()
    world.settle()
    world.run()
    ended = {"name": "helper", "ready": False, "state": {"terminated": {"exitCode": code}}}
    world.pods["job-worker-0"]["status"]["containerStatuses"].append(ended)
    world.now += 100
    world.settle()
    assert world.phase == phase


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Succeed", "Terminated"])
def test_the_end_is_the_end_in_old_words_and_new(phase: str) -> None:
    job = paddlejob(worker=2)
    job["status"] = {"phase": phase}
    world = JobCluster(job)
    world.settle()
    assert world.writes == [], "a finished job creates nothing when its pods are deleted"


def test_a_finished_job_does_not_resurrect_deleted_pods() -> None:
    world = JobCluster(paddlejob(worker=2, cleanPodPolicy="Never")).start()
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    world.vanish("job-worker-0")
    world.settle()
    assert sorted(world.pods) == ["job-worker-1"]


def test_status_is_not_written_when_nothing_changed() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    before = len(world.writes)
    world.now += 1000
    world.settle()
    world.now += 1000
    world.settle()
    assert len(world.writes) - before <= 1, world.writes[before:]


@pytest.mark.parametrize(
    ("new", "drifts", "wait"),
    [
        ({"phase": "Completed", "worker": {"running": 0}}, 0, 0.0),
        ({"phase": "Running", "worker": {"running": 1}}, 0, 1.0),
        ({"phase": "Running", "worker": {"running": 1}}, 1, 10.0),
        ({"phase": "Running", "worker": {"running": 1}}, 2, 60.0),
        ({"phase": "Running", "worker": {"running": 2}, "progress": {"step": 2}}, 9, 10.0),
        ({"phase": "Running", "worker": {"running": 2}, "progress": {"step": 1}, "checkpoint": {"path": "/c"}}, 9, 0.0),
    ],
    ids=["another-phase", "first-counts", "more-counts", "still-more", "reports", "first-checkpoint"],
)
def test_counts_wait_a_second_then_ten_then_sixty_and_a_phase_not_at_all(new: Any, drifts: int, wait: float) -> None:
    old = {"phase": "Running", "worker": {"running": 2}, "progress": {"step": 1}}
    new.setdefault("progress", {"step": 1})
    assert hold_back(old, new, written=100.0, drifts=drifts, workers=2, now=100.0) == wait


def test_refs_name_the_pods_by_index() -> None:
    world = JobCluster(paddlejob(worker=12)).start()
    names = [ref["name"] for ref in world.status["worker"]["refs"]]
    assert names == [f"job-worker-{i}" for i in range(12)]
    assert all("resourceVersion" not in ref for ref in world.status["worker"]["refs"])


def test_what_is_awaited_is_said_on_the_job() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: no gpu"}
    world.pods["job-worker-0"]["status"]["conditions"] = [said]
    world.now += 100
    world.settle()
    assert world.status["message"] == "job-worker-0 is not scheduled: 0/3 nodes: no gpu"


@pytest.mark.parametrize(
    ("policy", "done", "phase"),
    [
        (None, ["job-worker-0"], "Completed"),
        ("Workers", ["job-worker-0"], "Completed"),
        ("AllRoles", ["job-worker-0"], "Running"),
        ("AllRoles", ["job-worker-0", "job-ps-0"], "Completed"),
        (None, ["job-ps-0"], "Running"),
    ],
)
def test_who_decides_completion(policy: str | None, done: list[str], phase: str) -> None:
    spec = {"successPolicy": policy} if policy else {}
    world = JobCluster(paddlejob(ps=1, worker=1, withGloo=1, cleanPodPolicy="Never", **spec)).start()
    world.succeed(*done)
    world.settle()
    assert world.phase == phase


def test_a_server_that_falls_when_the_workers_are_done_is_no_failure() -> None:
    world = JobCluster(paddlejob(ps=1, worker=1, withGloo=1)).start()
    world.succeed("job-worker-0")
    world.fail("job-ps-0", code=1)
    world.settle()
    assert world.phase == "Completed"
