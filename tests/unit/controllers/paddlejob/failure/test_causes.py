"""Who is blamed when ranks fall over each other, and what it costs the job."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.clock import rfc3339
from unit.controllers.paddlejob.world import JobCluster, paddlejob


def blamed(world: JobCluster) -> list[tuple[str, str, str]]:
    return [(f["pod"], f["failureClass"], f["action"]) for f in world.status.get("failures", ())]


@pytest.mark.parametrize(
    "end",
    [{"code": 134}, {"code": 1, "message": "gloo: connect to a peer timed out"}],
    ids=["a connection that broke", "a peer that did not come"],
)
def test_a_consequence_that_is_reported_first_waits_for_its_cause(end: dict[str, Any]) -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.fail("job-worker-0", **end)
    world.now += 0.3
    plan = world.step()
    assert (world.phase, blamed(world)) == ("Running", [])
    assert plan.after is not None
    assert plan.after <= 3.0
    world.fail("job-worker-1", code=137)
    world.step()
    assert (world.phase, blamed(world)) == ("Restarting", [("job-worker-1", "Killed", "Restart")])


def test_a_consequence_whose_cause_nobody_reports_restarts_the_job_in_moments() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.fail("job-worker-0", code=134)
    world.now += 3.1
    world.step()
    assert (world.phase, blamed(world)) == ("Restarting", [("job-worker-0", "PeerLost", "Restart")])


def test_a_kubelet_that_was_away_is_given_the_same_moments() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.fail("job-worker-0", code=134)
    world.now += 20.0
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(world.now)}
    world.pods["job-worker-0"]["status"]["conditions"] = [ready]
    world.step()
    assert world.phase == "Running"
    world.now += 3.1
    world.step()
    assert world.phase == "Restarting"


def test_consequences_alone_are_not_waited_on_when_nobody_is_left() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    for name in ("job-worker-0", "job-worker-1"):
        world.fail(name, code=134)
    world.step()
    assert world.phase == "Restarting"


def test_a_restart_whose_cause_was_a_lost_node_is_no_restart_of_the_jobs_own() -> None:
    """The survivors abort at once; that the node is gone shows when its pod does not go."""
    world = JobCluster(paddlejob(worker=2, backoffLimit=1)).start()
    world.fail("job-worker-0", code=134)
    world.now += 3.1
    world.settle()
    assert (world.status["restarts"], world.status.get("disruptions")) == (1, None)
    world.vanish("job-worker-0")
    world.now += 40.0
    world.settle()
    assert (world.status.get("restarts"), world.status["disruptions"]) == (None, 1)
    assert blamed(world) == [("job-worker-1", "NodeLost", "Restart")]
    world.start()
    world.fail("job-worker-0", code=1)
    world.settle()
    assert (world.phase, world.status["restarts"]) == ("Restarting", 1), "the whole budget was left"


def test_a_job_without_restarts_learns_what_it_failed_of() -> None:
    world = JobCluster(paddlejob(worker=2, backoffLimit=0)).start()
    world.fail("job-worker-0", code=134)
    world.now += 81.0  # Kubernetes misses a node after 50 seconds, and its pods tolerate that for 30
    world.step()
    assert world.phase == "Running"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    world.pods["job-worker-1"]["status"]["conditions"] = [condition]
    world.step()
    assert (world.phase, blamed(world)) == ("Restarting", [("job-worker-1", "NodeLost", "Restart")])


def test_a_job_without_restarts_fails_of_the_consequence_when_nothing_else_is_reported() -> None:
    world = JobCluster(paddlejob(worker=2, backoffLimit=0)).start()
    world.fail("job-worker-0", code=134)
    world.now += 91.0
    world.step()
    assert (world.phase, world.status["reason"]) == ("Failed", "PeerLost")
