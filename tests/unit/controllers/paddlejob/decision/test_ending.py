"""After the end and by the clock: what is kept, what goes, deadlines, and being run again."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.cli.objects.why import why
from paddlecloud.kube.clock import rfc3339
from unit.controllers.paddlejob.world import JobCluster, conditions, paddlejob


@pytest.mark.parametrize(
    ("policy", "completed", "failed"),
    [
        (None, 0, 2),
        ("Always", 0, 0),
        ("OnCompletion", 0, 2),
        ("OnFailure", 2, 0),
        ("Never", 2, 2),
        ("Nerver", 2, 2),
        ("OnFailed", 2, 0),
        ("All", 0, 0),
        ("Running", 2, 1),
    ],
)
def test_clean_pod_policy(policy: str | None, completed: int, failed: int) -> None:
    left = {}
    for ending in ("Completed", "Failed"):
        spec: dict[str, Any] = {"cleanPodPolicy": policy} if policy else {}
        world = JobCluster(paddlejob(worker=2, backoffLimit=0, **spec)).start()
        if ending == "Completed":
            world.succeed("job-worker-0", "job-worker-1")
        else:
            world.fail("job-worker-0", code=1)
        for _ in range(2):
            world.settle()
            world.obey()
        assert world.phase == ending
        left[ending] = len(world.pods)
    assert left == {"Completed": completed, "Failed": failed}


def test_pods_of_a_failed_job_that_are_kept_do_not_go_on_using_the_machine() -> None:
    world = JobCluster(paddlejob(worker=2, backoffLimit=0, cleanPodPolicy="Never")).start()
    world.fail("job-worker-0", code=1)
    world.settle()
    world.obey()
    assert world.pods["job-worker-1"]["status"]["phase"] == "Failed"
    assert world.status["worker"]["ready"] == "0/2"


def test_servers_that_are_ended_with_a_completed_job_say_that_it_was_meant() -> None:
    world = JobCluster(paddlejob(ps=2, worker=1, cleanPodPolicy="Never")).start()
    world.succeed("job-worker-0")
    world.settle()
    world.obey()
    assert world.phase == "Completed"
    servers = [world.pods[f"job-ps-{number}"] for number in range(2)]
    assert [pod["metadata"]["annotations"]["paddlepaddle.org/ended"] for pod in servers] == [
        "on purpose: its job is Completed"
    ] * 2
    assert "paddlepaddle.org/ended" not in (world.pods["job-worker-0"]["metadata"].get("annotations") or {})
    assert world.status["message"] == "1 worker succeeded; 2 pods that still ran were ended"
    for server in servers:
        verdict = why({**server, "kind": "Pod"}, now=world.now)
        assert (verdict.state, verdict.text) == ("ok", "ended on purpose: its job is Completed")


def test_a_finished_job_is_forgotten_after_its_ttl() -> None:
    world = JobCluster(paddlejob(worker=1, ttlSecondsAfterFinished=60)).start()
    world.succeed("job-worker-0")
    world.settle()
    assert world.plan().after == pytest.approx(60, abs=1)
    world.now += 61
    (deletion,) = [d for d in world.plan().delete if d.resource.kind == "PaddleJob"]
    assert deletion.uid == "uid-job"


def test_the_active_deadline_fails_the_job() -> None:
    world = JobCluster(paddlejob(worker=1, activeDeadlineSeconds=60)).start()
    assert world.plan().after == pytest.approx(60, abs=1)
    world.now += 61
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "failures" not in world.status, "nothing failed but the clock"


def test_a_job_that_had_not_started_by_its_deadline_says_what_it_waited_for() -> None:
    world = JobCluster(paddlejob(worker=2, activeDeadlineSeconds=60))
    world.settle()
    world.assign(waiting="ImagePullBackOff")
    world.now += 61
    world.settle()
    assert world.status["message"].startswith("the job was active for more than 60 seconds, and had not started: job-")
    (failure,) = world.status["failures"]
    assert (failure["failureClass"], failure["pod"], failure["action"]) == ("StartTimeout", "job-worker-0", "Fail")
    assert "ImagePullBackOff" in failure["message"]


def test_the_schedule_timeout_counts_only_until_pods_have_nodes() -> None:
    spec = {"worker": 2, "scheduleTimeoutSeconds": 60}
    placed = JobCluster(paddlejob(**spec)).start()
    placed.now += 100
    placed.settle()
    assert placed.phase == "Running"
    waiting = JobCluster(paddlejob(**spec))
    waiting.settle()
    waiting.assign("job-worker-0")
    waiting.now += 100
    waiting.settle()
    assert (waiting.phase, waiting.status["reason"]) == ("Failed", "ScheduleTimeout")
    assert [(f["pod"], f["failureClass"]) for f in waiting.status["failures"]] == [("job-worker-1", "StartTimeout")]


def asked_to_retry(world: JobCluster, value: str) -> JobCluster:
    world.job["metadata"]["annotations"] = {"paddlepaddle.org/retry-at": value}
    world.settle()
    return world


def failed_job(**spec: Any) -> JobCluster:
    world = JobCluster(paddlejob(worker=2, backoffLimit=1, **spec)).start()
    for _ in range(2):
        world.now += 10
        world.fail("job-worker-1", message="ValueError: no")
        world.settle()
        world.obey()
        world.now += 10
        world.settle()
        if world.phase != "Failed":
            world.start()
    assert (world.phase, world.status["restarts"]) == ("Failed", 1)
    return world


def test_a_failed_job_that_is_asked_for_again_runs_with_its_whole_budget() -> None:
    world = failed_job()
    uids = {pod["metadata"]["uid"] for pod in world.pods.values()}
    asked_to_retry(world, rfc3339(world.now))
    assert (world.phase, world.status["reason"]) == ("Restarting", "Retried")
    assert "restarts" not in world.status
    assert "completionTime" not in world.status
    assert conditions(world)["Failed"] == "False"
    assert [failure["message"] for failure in world.status["failures"]] == ["ValueError: no"] * 2
    world.obey()
    world.start()
    assert not uids & {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    assert (world.phase, conditions(world)["Succeeded"]) == ("Completed", "True")
    assert world.phase == "Completed", "and is not run a third time"


def test_a_completed_job_can_be_run_again_too() -> None:
    world = JobCluster(paddlejob(worker=1, cleanPodPolicy="OnCompletion", intranet="Service")).start()
    world.succeed("job-worker-0")
    world.settle()
    world.obey()
    world.now += 10
    asked_to_retry(world, rfc3339(world.now))
    world.start()
    assert conditions(world)["Succeeded"] == "False"


def test_a_retry_asked_for_while_the_job_ran_is_not_followed_when_it_ends() -> None:
    world = JobCluster(paddlejob(worker=1)).start()
    asked_to_retry(world, rfc3339(world.now))
    world.now += 10
    world.fail("job-worker-0", message="ModuleNotFoundError")
    world.job["spec"]["backoffLimit"] = 0
    world.settle()
    world.settle()
    assert world.phase == "Failed"


def test_any_new_word_asks_for_one_more_run() -> None:
    world = asked_to_retry(failed_job(), "please")
    assert world.phase == "Restarting"


def test_the_deadline_counts_from_the_retry() -> None:
    world = failed_job(activeDeadlineSeconds=3600)
    world.now += 10_000
    asked_to_retry(world, rfc3339(world.now))
    world.obey()
    world.start()
    world.now += 3000
    world.settle()
    assert world.phase == "Running"
    world.now += 600
    world.settle()
    assert world.status["reason"] == "DeadlineExceeded"
