"""CronJobs: a Job for each due time, never two for one, and what becomes of earlier ones."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.cronjob.decide import Observed, decide
from unit.local.workloads.cluster import Cluster, Crash, Row, make, names, template

MIDNIGHT = parse_rfc3339("2026-11-16T00:00:00Z")
JOB = {"template": template({}, restartPolicy="Never")}


def cron_job(schedule: str = "*/10 * * * *", **spec: Any) -> Object:
    body = {"schedule": schedule, "concurrencyPolicy": "Allow", "jobTemplate": {"spec": JOB}, **spec}
    return make("CronJob", "batch/v1", "tick", body)


def observe(cluster: Cluster, obj: Object) -> Observed:
    return Observed(cluster.owned("Job", obj))


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster({"CronJob": Row(observe, decide)})
    found.now = MIDNIGHT
    return found


def at(cluster: Cluster, clock: str) -> None:
    """The time of the day at which the controller looks next."""
    cluster.now = parse_rfc3339(f"2026-11-16T{clock}Z")
    cluster.settle()


def name_for(clock: str) -> str:
    return f"tick-{int(parse_rfc3339(f'2026-11-16T{clock}Z')) // 60}"


def jobs(cluster: Cluster) -> list[str]:
    return names(cluster.all("Job"))


def end(cluster: Cluster, name: str, outcome: str = "Complete") -> None:
    condition = {"type": outcome, "status": "True", "lastTransitionTime": rfc3339(cluster.now)}
    done = {"completionTime": rfc3339(cluster.now)} if outcome == "Complete" else {}
    started = cluster.get("Job", name)["metadata"]["creationTimestamp"]
    cluster.change("Job", name, {"status": {"startTime": started, "conditions": [condition], **done}})


def status(cluster: Cluster) -> Object:
    return dict(cluster.get("CronJob", "tick").get("status") or {})


def active(cluster: Cluster) -> list[str]:
    return sorted(each["name"] for each in status(cluster).get("active") or ())


def reasons(cluster: Cluster) -> list[str]:
    return [event.split()[1].rstrip(":") for event in cluster.events]


def test_nothing_is_run_before_the_first_due_time_and_the_controller_looks_again_in_time(cluster: Cluster) -> None:
    cluster.add(cron_job())
    at(cluster, "00:09:30")
    assert jobs(cluster) == []
    assert cluster.plan("CronJob", "tick").after == 30.0


def test_a_due_time_is_a_job_that_belongs_to_the_cron_job(cluster: Cluster) -> None:
    wanted = {"metadata": {"labels": {"app": "tick"}, "annotations": {"note": "x"}}, "spec": JOB}
    cluster.add(cron_job(jobTemplate=wanted, timeZone="Asia/Shanghai"))
    at(cluster, "00:10:02")
    (job,) = cluster.all("Job")
    assert job["metadata"]["name"] == name_for("00:10:00")
    assert job["metadata"]["labels"] == {"app": "tick"}
    assert job["metadata"]["annotations"] == {
        "note": "x",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-16T08:10:00+08:00",
    }
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "tick", True)
    assert job["spec"] == JOB
    assert status(cluster)["lastScheduleTime"] == "2026-11-16T00:10:00Z"
    (reference,) = status(cluster)["active"]
    assert (reference["name"], reference["uid"]) == (job["metadata"]["name"], job["metadata"]["uid"])
    assert f"Normal SuccessfulCreate: Created job {name_for('00:10:00')}" in cluster.events


def test_a_job_that_ended_leaves_the_active_ones(cluster: Cluster) -> None:
    cluster.add(cron_job())
    at(cluster, "00:10:00")
    cluster.now += 5
    end(cluster, name_for("00:10:00"))
    cluster.settle()
    assert active(cluster) == []
    assert status(cluster)["lastSuccessfulTime"] == "2026-11-16T00:10:05Z"
    assert f"Normal SawCompletedJob: Saw completed job: {name_for('00:10:00')}, condition: Complete" in cluster.events


def test_a_job_that_failed_is_no_success(cluster: Cluster) -> None:
    cluster.add(cron_job())
    at(cluster, "00:10:00")
    end(cluster, name_for("00:10:00"), "Failed")
    cluster.settle()
    assert "lastSuccessfulTime" not in status(cluster)
    assert f"Normal SawCompletedJob: Saw completed job: {name_for('00:10:00')}, condition: Failed" in cluster.events


@pytest.mark.parametrize(
    ("policy", "left", "said"),
    [
        ("Allow", ["00:10:00", "00:20:00"], "SuccessfulCreate"),
        ("Forbid", ["00:10:00"], "JobAlreadyActive"),
        ("Replace", ["00:20:00"], "SuccessfulDelete"),
    ],
)
def test_what_happens_while_an_earlier_job_runs(cluster: Cluster, policy: str, left: list[str], said: str) -> None:
    cluster.add(cron_job(concurrencyPolicy=policy))
    at(cluster, "00:10:00")
    cluster.events.clear()
    at(cluster, "00:20:00")
    assert jobs(cluster) == active(cluster) == [name_for(clock) for clock in left]
    assert said in reasons(cluster)
    assert "MissingJob" not in reasons(cluster)


def test_a_run_that_was_forbidden_comes_when_the_earlier_one_ends(cluster: Cluster) -> None:
    cluster.add(cron_job(concurrencyPolicy="Forbid"))
    at(cluster, "00:10:00")
    at(cluster, "00:20:00")
    end(cluster, name_for("00:10:00"))
    at(cluster, "00:23:00")
    assert active(cluster) == [name_for("00:20:00")]
    assert status(cluster)["lastScheduleTime"] == "2026-11-16T00:20:00Z"


def test_while_suspended_nothing_is_run_and_after_it_only_the_latest(cluster: Cluster) -> None:
    cluster.add(cron_job(suspend=True))
    at(cluster, "00:35:00")
    assert jobs(cluster) == []
    assert cluster.plan("CronJob", "tick").after is None
    cluster.change("CronJob", "tick", {"spec": {"suspend": False}})
    cluster.settle()
    assert jobs(cluster) == [name_for("00:30:00")]


def test_a_run_that_is_later_than_its_deadline_is_missed(cluster: Cluster) -> None:
    cluster.add(cron_job(startingDeadlineSeconds=60))
    at(cluster, "00:12:00")
    assert jobs(cluster) == []
    missed = "Warning MissSchedule: Missed scheduled time to start a job: Mon, 16 Nov 2026 00:10:00 +0000"
    assert cluster.events[-1] == missed
    at(cluster, "00:20:59")
    assert jobs(cluster) == [name_for("00:20:00")]


@pytest.mark.parametrize(("deadline", "warned"), [(None, True), (7200, True), (600, False)])
def test_of_many_missed_times_one_is_run_with_a_warning(cluster: Cluster, deadline: int | None, warned: bool) -> None:
    limits = {} if deadline is None else {"startingDeadlineSeconds": deadline}
    cluster.add(cron_job("* * * * *", **limits))
    at(cluster, "03:00:30")
    assert jobs(cluster) == [name_for("03:00:00")]
    assert ("TooManyMissedTimes" in reasons(cluster)) is warned


def test_jobs_beyond_the_limits_of_history_go_the_oldest_first(cluster: Cluster) -> None:
    cluster.add(cron_job(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0))
    for clock, outcome in (("00:10", "Complete"), ("00:20", "Failed"), ("00:30", "Complete"), ("00:40", "Complete")):
        at(cluster, f"{clock}:00")
        end(cluster, name_for(f"{clock}:00"), outcome)
        cluster.settle()
    assert jobs(cluster) == [name_for("00:30:00"), name_for("00:40:00")]
    assert f"Normal SuccessfulDelete: Deleted job {name_for('00:10:00')}" in cluster.events


def test_a_job_that_somebody_deleted_is_missing_and_not_made_again(cluster: Cluster) -> None:
    cluster.add(cron_job())
    at(cluster, "00:10:00")
    cluster.delete("Job", name_for("00:10:00"))
    at(cluster, "00:11:00")
    assert jobs(cluster) == active(cluster) == []
    assert f"Normal MissingJob: Active job went missing: {name_for('00:10:00')}" in cluster.events


def test_a_job_made_by_hand_is_reported_and_holds_nothing_back(cluster: Cluster) -> None:
    cluster.add(cron_job(concurrencyPolicy="Forbid"))
    owner = cluster.get("CronJob", "tick")
    reference = {"kind": "CronJob", "name": "tick", "uid": owner["metadata"]["uid"], "controller": True}
    cluster.add(make("Job", "batch/v1", "tick-now", JOB, ownerReferences=[reference]))
    at(cluster, "00:10:00")
    assert active(cluster) == [name_for("00:10:00")]
    text = "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: tick-now"
    assert text in cluster.events


def test_a_job_that_is_refused_is_tried_again_and_not_reported_as_run(cluster: Cluster) -> None:
    cluster.add(cron_job())
    cluster.refuse = lambda obj: True
    at(cluster, "00:10:00")
    assert "lastScheduleTime" not in status(cluster)
    cluster.refuse = lambda obj: False
    at(cluster, "00:12:00")
    assert jobs(cluster) == [name_for("00:10:00")]


def test_an_interval_counts_from_run_to_run(cluster: Cluster) -> None:
    cluster.now = parse_rfc3339("2026-11-16T00:00:20Z")
    cluster.add(cron_job("@every 90s"))
    for clock in ("00:01:49", "00:01:50", "00:03:19", "00:03:20"):
        at(cluster, clock)
    assert jobs(cluster) == [name_for("00:01:50"), name_for("00:03:20")]
    assert status(cluster)["lastScheduleTime"] == "2026-11-16T00:03:20Z"


def test_an_interval_below_a_minute_is_run_once_a_minute(cluster: Cluster) -> None:
    cluster.add(cron_job("@every 20s", concurrencyPolicy="Replace"))
    for clock in ("00:00:20", "00:00:40", "00:01:00", "00:01:20"):
        at(cluster, clock)
    assert [event for event in reasons(cluster) if event == "SuccessfulCreate"] == ["SuccessfulCreate"] * 2
    assert jobs(cluster) == [name_for("00:01:00")]


def test_a_zone_that_this_machine_does_not_know_is_reported(cluster: Cluster) -> None:
    cluster.add(cron_job(timeZone="Moon/Tycho"))
    at(cluster, "00:10:00")
    assert jobs(cluster) == []
    assert cluster.events == ['Warning UnknownTimeZone: invalid timeZone: "Moon/Tycho": unknown time zone Moon/Tycho']


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["Allow", "Forbid", "Replace"]))
def test_whatever_happens_no_time_is_run_twice_and_no_policy_is_broken(seed: int, policy: str) -> None:
    """Crashes after any write, Jobs that end or vanish, a controller that looks at odd moments."""
    rng = random.Random(seed)
    cluster = Cluster({"CronJob": Row(observe, decide)})
    cluster.now = MIDNIGHT
    cluster.add(cron_job("*/3 * * * *", concurrencyPolicy=policy, successfulJobsHistoryLimit=2))
    made: list[str] = []
    for _ in range(40):
        cluster.now += rng.choice([1, 30, 90, 200, 1000])
        running = [job for job in cluster.all("Job") if "status" not in job]
        if running and rng.random() < 0.5:
            end(cluster, rng.choice(running)["metadata"]["name"], rng.choice(["Complete", "Failed"]))
        before = set(jobs(cluster))
        try:
            cluster.step("CronJob", "tick", crash_after=rng.choice([None, 0, 1, 2]))
        except Crash:
            pass  # the next pass goes on from what was written
        made += sorted(set(jobs(cluster)) - before)
        if policy != "Allow":
            assert sum("status" not in job for job in cluster.all("Job")) <= 1
    assert len(made) == len(set(made))
    assert made == sorted(made)
    cluster.settle()
    succeeded = [job for job in cluster.all("Job") if "completionTime" in (job.get("status") or {})]
    assert len(succeeded) <= 2
    assert status(cluster)["lastScheduleTime"] >= rfc3339(60.0 * int(made[-1].removeprefix("tick-")))
