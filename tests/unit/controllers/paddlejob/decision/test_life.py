"""Whole lives of jobs, from apply to the end, as the manual tells them."""

from __future__ import annotations

import pytest

from unit.controllers.paddlejob.world import JobCluster, paddlejob


def test_two_workers_train_to_completion() -> None:
    world = JobCluster(paddlejob(worker=2, cleanPodPolicy="Never"))
    world.start()
    assert world.status["mode"] == "Collective"
    assert world.status["worker"]["ready"] == "2/2"
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    assert world.phase == "Completed"
    assert world.status["worker"]["ready"] == "0/2"
    assert sorted(world.pods) == ["job-worker-0", "job-worker-1"]


def test_the_manuals_wide_and_deep_shows_ps_2_of_2_and_worker_0_of_2() -> None:
    world = JobCluster(paddlejob("wide-ande-deep", ps=2, worker=2, withGloo=1, cleanPodPolicy="Never"))
    world.start()
    world.succeed("wide-ande-deep-worker-0", "wide-ande-deep-worker-1")
    world.settle()
    world.obey()
    world.settle()
    row = {column: world.status[column] for column in ("phase", "mode")}
    assert row == {"phase": "Completed", "mode": "PS"}
    assert (world.status["ps"]["ready"], world.status["worker"]["ready"]) == ("2/2", "0/2")
    assert len(world.pods) == 4, "Never keeps the pods"
    assert {pod["status"]["phase"] for pod in world.pods.values()} == {"Succeeded", "Failed"}, "servers were ended"


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"worker": 1}, 1),
        ({"worker": 2}, 2),
        ({"ps": 2, "worker": 2, "withGloo": 1}, 4),
        ({"ps": 2, "worker": 2}, 4),
        ({"worker": 2, "intranet": "Service"}, 2),
        ({"ps": 2, "worker": 2, "intranet": "Service", "withGloo": 1}, 4),
        ({"worker": 128}, 128),
    ],
)
def test_a_life_costs_at_most_two_writes_per_pod_and_eight(spec: dict[str, object], pods: int) -> None:
    world = JobCluster(paddlejob(**spec, cleanPodPolicy="Never"))
    world.start()
    world.succeed(*(name for name in world.pods if "-worker-" in name))
    world.settle()
    world.obey()
    world.settle()
    assert world.phase == "Completed"
    assert len(world.writes) <= 2 * pods + 8, world.writes


def test_all_pods_are_created_in_one_pass() -> None:
    world = JobCluster(paddlejob(worker=128))
    world.step()
    assert len(world.pods) == 128
    assert [event for event in world.events if "Created" in event] == ["Normal Created: created pods: 128 worker"]


def test_a_job_that_ended_before_anybody_saw_it_run_has_a_start_all_the_same() -> None:
    world = JobCluster(paddlejob(worker=2, cleanPodPolicy="Never"))
    world.settle()
    world.assign()
    world.settle()
    world.now += 60
    world.succeed("job-worker-0", "job-worker-1")
    for index, second in enumerate((41, 40)):
        container = world.pods[f"job-worker-{index}"]["status"]["containerStatuses"][0]
        container["state"]["terminated"]["startedAt"] = f"2023-11-14T22:13:{second}Z"
    world.settle()
    assert world.phase == "Completed"
    assert world.status["startTime"] == "2023-11-14T22:13:40Z"
