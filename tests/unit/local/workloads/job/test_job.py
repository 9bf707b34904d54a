"""Jobs: how much runs at once, what counts, how they end, and that finished work is not done again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.conditions import conditions_of
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.decide import Observed, decide
from paddlecloud.local.workloads.job.indexes import LABEL, Indexes
from paddlecloud.local.workloads.job.members import index_of
from paddlecloud.local.workloads.pods import is_active
from unit.local.workloads.cluster import START, Cluster, Crash, Row, make, names, template

LABELS = {"job": "work"}
SELECTOR = {"matchLabels": LABELS}


def job(**spec: Any) -> Object:
    pod = template(LABELS, restartPolicy=spec.pop("restart", "Never"))
    body = {"parallelism": 1, "backoffLimit": 6, "selector": SELECTOR, "template": pod, **spec}
    return make("Job", "batch/v1", "work", body)


def observe(cluster: Cluster, obj: Object) -> Observed:
    return Observed(cluster.owned("Pod", obj), cluster.orphans("Pod"))


ROWS = {"Job": Row(observe, decide)}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(ROWS)


def status(cluster: Cluster) -> Object:
    return dict(cluster.get("Job", "work")["status"])


def conditions(cluster: Cluster) -> dict[str, str]:
    """Type → reason of those that hold."""
    return {c["type"]: c["reason"] for c in conditions_of(cluster.get("Job", "work")) if c["status"] == "True"}


def active(cluster: Cluster) -> list[str]:
    return names(pod for pod in cluster.pods.values() if is_active(pod))


def indexes(cluster: Cluster) -> list[int]:
    return sorted(i for pod in cluster.pods.values() if is_active(pod) and (i := index_of(pod)) is not None)


def test_a_job_runs_its_pod_and_completes(cluster: Cluster) -> None:
    cluster.add(job(completions=1))
    cluster.settle()
    (name,) = cluster.pods
    assert name.startswith("work-")
    assert status(cluster) == {"active": 1, "ready": 0, "terminating": 0, "startTime": rfc3339(START)}
    cluster.start()
    cluster.settle()
    assert status(cluster)["ready"] == 1
    cluster.now += 5
    cluster.finish(name)
    cluster.settle()
    assert conditions(cluster) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert status(cluster)["succeeded"] == 1
    assert status(cluster)["completionTime"] == rfc3339(START + 5)
    assert name in cluster.pods, "finished pods stay for their logs"


def test_no_more_pods_at_once_than_wanted_and_none_without_work(cluster: Cluster) -> None:
    cluster.add(job(completions=5, parallelism=3))
    done = 0
    for left in (5, 4, 3, 2, 1):
        cluster.settle()
        assert len(active(cluster)) == min(3, left)
        cluster.start()
        cluster.finish(active(cluster)[0])
        done += 1
    cluster.settle()
    assert status(cluster)["succeeded"] == done == 5
    assert "Complete" in conditions(cluster)


def test_a_work_queue_makes_no_more_pods_after_the_first_success_and_waits_for_the_others(cluster: Cluster) -> None:
    cluster.add(job(parallelism=3))
    cluster.settle()
    first, second, third = names(cluster.pods.values())
    cluster.start()
    cluster.finish(first)
    cluster.settle()
    assert active(cluster) == [second, third]
    cluster.finish(second)
    cluster.finish(third)
    cluster.settle()
    assert "Complete" in conditions(cluster)
    assert len(cluster.pods) == 3


def test_each_index_has_a_pod_that_knows_its_number(cluster: Cluster) -> None:
    cluster.add(job(completions=3, parallelism=2, completionMode="Indexed"))
    cluster.settle()
    assert indexes(cluster) == [0, 1]
    pod = next(pod for pod in cluster.pods.values() if index_of(pod) == 1)
    assert pod["metadata"]["name"].startswith("work-1-")
    assert pod["metadata"]["annotations"][LABEL] == pod["metadata"]["labels"][LABEL] == "1"
    assert pod["spec"]["hostname"] == "work-1"
    (variable,) = pod["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{LABEL}']"


def test_completed_indexes_are_remembered_when_their_pods_are_deleted(cluster: Cluster) -> None:
    cluster.add(job(completions=3, parallelism=3, completionMode="Indexed"))
    cluster.settle()
    cluster.start()
    for name in names(cluster.pods.values())[:2]:
        cluster.finish(name)
    cluster.settle()
    assert status(cluster)["completedIndexes"] == "0,1"
    for name in names(cluster.pods.values())[:2]:
        cluster.delete("Pod", name)
    cluster.settle()
    assert indexes(cluster) == [2]
    cluster.finish(active(cluster)[0])
    cluster.settle()
    assert status(cluster)["completedIndexes"] == "0-2"
    assert "Complete" in conditions(cluster)


def test_failures_are_tried_again_with_growing_patience_until_the_limit(cluster: Cluster) -> None:
    cluster.add(job(completions=1, backoffLimit=2))
    waits = []
    for _ in range(3):
        cluster.settle()
        cluster.start()
        cluster.finish(active(cluster)[0], code=1)
        plan = cluster.step("Job", "work")
        waits.append(plan.after)
        cluster.now += plan.after or 0
    assert waits == [10, 20, None]
    assert conditions(cluster) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert status(cluster)["failed"] == 3
    assert any(event.startswith("Warning BackoffLimitExceeded") for event in cluster.events)


def test_a_failing_job_ends_its_other_pods_before_it_has_failed(cluster: Cluster) -> None:
    cluster.add(job(completions=2, parallelism=2, backoffLimit=0))
    cluster.settle()
    cluster.start()
    first, second = names(cluster.pods.values())
    cluster.finish(first, code=1)
    cluster.settle()
    assert conditions(cluster) == {"FailureTarget": "BackoffLimitExceeded"}
    assert cluster.pods[second]["metadata"]["deletionTimestamp"]
    assert status(cluster)["terminating"] == 1
    cluster.obey()
    cluster.settle()
    assert "Failed" in conditions(cluster)
    assert active(cluster) == []


@pytest.mark.parametrize(("limit", "restarts", "fails"), [(0, 0, False), (0, 1, True), (2, 1, False), (2, 2, True)])
def test_restarts_in_place_count_as_failures(cluster: Cluster, limit: int, restarts: int, fails: bool) -> None:
    cluster.add(job(completions=1, backoffLimit=limit, restart="OnFailure"))
    cluster.settle()
    cluster.start()
    (name,) = cluster.pods
    cluster.become(name, "Running", ready=True, containerStatuses=[{"name": "main", "restartCount": restarts}])
    cluster.settle()
    assert ("FailureTarget" in conditions(cluster)) is fails


def test_a_deadline_ends_the_job(cluster: Cluster) -> None:
    cluster.add(job(completions=1, activeDeadlineSeconds=60))
    plan = cluster.step("Job", "work")
    assert plan.after == pytest.approx(60)
    cluster.start()
    cluster.now += 60
    cluster.settle()
    cluster.obey()
    cluster.settle()
    assert conditions(cluster)["Failed"] == "DeadlineExceeded"


def test_a_suspended_job_has_no_pods_and_its_clock_starts_anew(cluster: Cluster) -> None:
    cluster.add(job(completions=2, parallelism=2, activeDeadlineSeconds=60, backoffLimit=0))
    cluster.settle()
    cluster.start()
    cluster.change("Job", "work", {"spec": {"suspend": True}})
    cluster.settle()
    for name in cluster.pods:  # after SIGTERM they exit as they like
        cluster.finish(name, code=143)
    cluster.settle()
    cluster.obey()
    cluster.settle()
    assert cluster.pods == {}
    assert conditions(cluster) == {"Suspended": "JobSuspended"}
    assert "startTime" not in status(cluster)
    cluster.now += 1000
    cluster.change("Job", "work", {"spec": {"suspend": False}})
    cluster.settle()
    assert len(active(cluster)) == 2
    assert conditions(cluster) == {}
    assert status(cluster)["startTime"] == rfc3339(cluster.now)


def test_a_finished_job_goes_when_its_time_to_live_is_over(cluster: Cluster) -> None:
    cluster.add(job(completions=1, ttlSecondsAfterFinished=30))
    cluster.settle()
    cluster.start()
    cluster.finish(active(cluster)[0])
    cluster.settle()
    assert cluster.plan("Job", "work").after == pytest.approx(30)
    cluster.now += 30
    cluster.settle()
    assert cluster.objects == {}


def test_with_replacement_policy_failed_a_pod_is_replaced_only_when_it_is_gone(cluster: Cluster) -> None:
    cluster.add(job(completions=1, podReplacementPolicy="Failed"))
    cluster.settle()
    cluster.start()
    cluster.delete("Pod", active(cluster)[0])
    cluster.settle()
    assert active(cluster) == []
    cluster.obey()
    cluster.settle()
    assert len(active(cluster)) == 1


@pytest.mark.parametrize(
    ("rule", "code", "expected"),
    [
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, 42, "PodFailurePolicy"),
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, 1, None),
        ({"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}, 1, "PodFailurePolicy"),
        (
            {"action": "FailJob", "onExitCodes": {"containerName": "x", "operator": "In", "values": [42]}},
            42,
            None,
        ),
        ({"action": "FailJob", "onPodConditions": [{"type": "Doomed", "status": "True"}]}, 1, "PodFailurePolicy"),
        ({"action": "Ignore", "onPodConditions": [{"type": "Doomed", "status": "True"}]}, 1, "ignored"),
    ],
)
def test_a_failure_policy_ends_the_job_or_overlooks_the_failure(
    cluster: Cluster, rule: Object, code: int, expected: str | None
) -> None:
    cluster.add(job(completions=1, podFailurePolicy={"rules": [rule]}))
    cluster.settle()
    cluster.start()
    doomed = {"conditions": [{"type": "Doomed", "status": "True", "lastTransitionTime": rfc3339(START)}]}
    cluster.finish(active(cluster)[0], code=code, **doomed)
    cluster.settle()
    assert conditions(cluster).get("Failed") == (expected if expected != "ignored" else None)
    assert status(cluster).get("failed", 0) == (0 if expected == "ignored" else 1)
    assert len(active(cluster)) == (1 if expected == "ignored" else 0)


def test_a_planned_stop_of_the_platform_is_no_failure_of_the_job(cluster: Cluster) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [137]}}
    cluster.add(job(completions=1, backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    cluster.settle()
    cluster.start()
    cluster.finish(active(cluster)[0], code=137, reason="Terminated")
    cluster.settle()
    assert (conditions(cluster).get("Failed"), status(cluster).get("failed", 0)) == (None, 0)
    assert len(active(cluster)) == 1, "another pod takes its place at once"


def test_a_job_managed_by_another_controller_is_left_alone(cluster: Cluster) -> None:
    cluster.add(job(completions=1, managedBy="kueue.x-k8s.io/multikueue"))
    cluster.settle()
    assert cluster.pods == {}
    assert "status" not in cluster.get("Job", "work")


@given(st.sets(st.integers(0, 60)))
def test_index_sets_survive_being_written(wanted: set[int]) -> None:
    made = Indexes.of(wanted, below=61)
    assert Indexes.parse(str(made), below=61) == made
    assert (len(made), {index for index in range(70) if index in made}) == (len(wanted), wanted)
    assert list(made.missing(below=61)) == [index for index in range(61) if index not in wanted]
    half = Indexes.of(range(20, 40), below=61)
    assert made & half == half & made == Indexes.of(wanted & set(range(20, 40)), below=61)


@pytest.mark.parametrize(
    "forged", ["0-999999999", "0-999999999," * 1000, "5-3", "x,-1,1-,٣", "9" * 5000, "0-" + "9" * 9]
)
def test_a_forged_status_costs_no_more_than_its_text(forged: str) -> None:
    made = Indexes.parse(forged, below=2**31)
    assert len(made) in (0, 10**9)
    assert len(list(made.missing(below=10**9 + 3))) == 10**9 + 3 - len(made) if made else not str(made)


def test_given_a_forged_status_of_a_huge_job_then_only_what_is_missing_runs(cluster: Cluster) -> None:
    forged = job(completions=1_000_000_002, parallelism=3, completionMode="Indexed")
    cluster.add({**forged, "status": {"completedIndexes": "0-999999999"}})
    cluster.settle()
    assert sorted(indexes(cluster)) == [1_000_000_000, 1_000_000_001]


@pytest.mark.parametrize(
    ("wanted", "text"), [([], ""), ([0], "0"), ([0, 1], "0,1"), ([0, 1, 2], "0-2"), ([1, 3, 4, 5, 7], "1,3-5,7")]
)
def test_index_sets_are_written_as_kubernetes_does(wanted: list[int], text: str) -> None:
    assert str(Indexes.of(wanted, below=100)) == text


WEIGHTS = {"step": 8, "crash": 2, "start": 5, "succeed": 3, "fail": 1, "delete": 1, "vanish": 1, "obey": 2, "later": 2}


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(["Indexed", "NonIndexed"]),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_whatever_happens_all_work_is_done_and_never_too_much_at_once(
    seed: int, mode: str, completions: int, parallelism: int
) -> None:
    rng = random.Random(seed)
    cluster = Cluster(ROWS)
    spec = {"completions": completions, "parallelism": parallelism, "completionMode": mode, "backoffLimit": 1000}
    cluster.add(job(**spec))
    succeeded: list[str] = []
    done_indexes: set[int] = set()

    def succeed(name: str) -> None:
        cluster.finish(name)
        succeeded.append(name)

    def check() -> None:
        assert len(active(cluster)) <= parallelism
        if mode == "Indexed":
            assert len(set(indexes(cluster))) == len(indexes(cluster)), "an index runs twice"
            text = (cluster.get("Job", "work").get("status") or {}).get("completedIndexes", "")
            done = Indexes.parse(text, below=completions)
            done_indexes.update(index for index in range(completions) if index in done)
            assert not done_indexes & set(indexes(cluster)), "finished work is done again"

    for _ in range(80):
        event = rng.choice([event for event, weight in WEIGHTS.items() for _ in range(weight)])
        known = active(cluster)
        name = rng.choice(known) if known else ""
        if event in ("step", "crash"):
            try:
                cluster.step("Job", "work", crash_after=rng.randrange(4) if event == "crash" else None)
            except Crash:
                pass
        elif event == "obey":
            cluster.obey()
        elif event == "later":
            cluster.now += rng.randrange(400)
        elif event == "start":
            cluster.start(*known)
        elif name and (event in ("delete", "vanish") or cluster.pods[name]["status"]["phase"] == "Running"):
            doings: dict[str, Callable[[str], None]] = {
                "succeed": succeed,
                "fail": lambda name: cluster.finish(name, code=1),
                "delete": lambda name: cluster.delete("Pod", name),
                "vanish": lambda name: cluster.delete("Pod", name, grace=0),
            }
            doings[event](name)
        check()
    for _ in range(200):
        cluster.settle()
        check()
        if "Complete" in conditions(cluster):
            break
        cluster.obey()
        cluster.start()
        for name in active(cluster)[:1]:
            succeed(name)
        cluster.now += 600
    assert "Complete" in conditions(cluster)
    assert status(cluster)["succeeded"] == completions
    assert len(succeeded) == completions
