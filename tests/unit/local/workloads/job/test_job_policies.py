"""Jobs with limits for each index, with a successPolicy, and whose pods lose their owner or their labels."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.index_failures import FAILURES, IGNORED
from paddlecloud.local.workloads.job.members import index_of
from unit.local.workloads.cluster import Cluster

from .test_job import ROWS, active, conditions, indexes, job, status


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(ROWS)


def indexed(**spec: Any) -> Object:
    given = {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimit": 2**31 - 1, **spec}
    return job(**given)


def pod_of(cluster: Cluster, index: int) -> Object:
    (pod,) = [cluster.pods[name] for name in active(cluster) if index_of(cluster.pods[name]) == index]
    return pod


def finish(cluster: Cluster, index: int, code: int = 0) -> None:
    cluster.start()
    cluster.finish(pod_of(cluster, index)["metadata"]["name"], code=code)
    cluster.settle()


# backoffLimitPerIndex


def test_an_index_fails_by_its_own_limit_and_the_others_go_on(cluster: Cluster) -> None:
    cluster.add(indexed(completions=2, parallelism=2, backoffLimitPerIndex=1))
    cluster.settle()
    assert pod_of(cluster, 0)["metadata"]["annotations"][FAILURES] == "0"
    assert status(cluster)["failedIndexes"] == ""
    finish(cluster, 1, code=1)
    assert indexes(cluster) == [0], "index 1 waits"
    cluster.now += 9
    cluster.settle()
    assert indexes(cluster) == [0]
    cluster.now += 1
    cluster.settle()
    assert pod_of(cluster, 1)["metadata"]["annotations"][FAILURES] == "1"
    finish(cluster, 1, code=1)
    assert (indexes(cluster), status(cluster)["failedIndexes"], conditions(cluster)) == ([0], "1", {})
    cluster.now += 3600
    cluster.settle()
    assert indexes(cluster) == [0], "an index that failed is not tried again"
    finish(cluster, 0)
    assert conditions(cluster) == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}
    found = status(cluster)
    assert (found["completedIndexes"], found["succeeded"], found["failed"]) == ("0", 1, 2)


def test_failures_of_an_index_are_remembered_when_its_pods_are_gone(cluster: Cluster) -> None:
    cluster.add(indexed(completions=2, backoffLimitPerIndex=2))
    cluster.settle()
    first = pod_of(cluster, 0)["metadata"]["name"]
    finish(cluster, 0, code=1)
    cluster.now += 10
    cluster.settle()
    cluster.delete("Pod", first, grace=0)
    finish(cluster, 0, code=1)
    cluster.now += 20
    cluster.settle()
    last = pod_of(cluster, 0)["metadata"]
    assert last["annotations"][FAILURES] == "2"
    finish(cluster, 0, code=1)
    assert status(cluster)["failedIndexes"] == "0"
    cluster.delete("Pod", last["name"], grace=0)
    cluster.settle()
    assert status(cluster)["failedIndexes"] == "0"


def test_too_many_failed_indexes_end_the_job_and_its_other_pods(cluster: Cluster) -> None:
    cluster.add(indexed(backoffLimitPerIndex=0, maxFailedIndexes=1))
    cluster.settle()
    finish(cluster, 2, code=1)
    assert conditions(cluster) == {}
    finish(cluster, 0, code=1)
    assert conditions(cluster) == {"FailureTarget": "MaxFailedIndexesExceeded"}
    assert active(cluster) == []
    cluster.obey()
    cluster.settle()
    assert conditions(cluster)["Failed"] == "MaxFailedIndexesExceeded"
    assert status(cluster)["failedIndexes"] == "0,2"


def test_the_action_fail_index_fails_it_at_once_and_ignored_failures_only_wait_longer(cluster: Cluster) -> None:
    rules = [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
    cluster.add(indexed(completions=2, backoffLimitPerIndex=0, podFailurePolicy={"rules": rules}))
    cluster.settle()
    finish(cluster, 0, code=42)
    assert status(cluster)["failedIndexes"] == "0"
    finish(cluster, 1, code=7)
    cluster.now += 10
    cluster.settle()
    again = pod_of(cluster, 1)["metadata"]["annotations"]
    assert (again[FAILURES], again[IGNORED]) == ("0", "1")
    finish(cluster, 1, code=7)
    cluster.now += 19
    cluster.settle()
    assert indexes(cluster) == []
    cluster.now += 1
    cluster.settle()
    assert indexes(cluster) == [1]
    assert status(cluster)["failed"] == 1


# successPolicy


@pytest.mark.parametrize(
    ("rules", "done", "met"),
    [
        ([{"succeededCount": 2}], [3], None),
        ([{"succeededCount": 2}], [3, 0], 0),
        ([{"succeededIndexes": "0"}], [1, 2], None),
        ([{"succeededIndexes": "0"}], [1, 0], 0),
        ([{"succeededIndexes": "0-1,3"}], [0, 1], None),
        ([{"succeededIndexes": "0-1,3"}], [3, 1, 0], 0),
        ([{"succeededIndexes": "1-3", "succeededCount": 2}], [0, 3], None),
        ([{"succeededIndexes": "1-3", "succeededCount": 2}], [1, 3], 0),
        ([{"succeededIndexes": "0"}, {"succeededCount": 1}], [2], 1),
    ],
)
def test_a_job_succeeds_as_soon_as_a_rule_of_its_policy_is_met(
    cluster: Cluster, rules: list[Object], done: list[int], met: int | None
) -> None:
    cluster.add(indexed(completions=5, parallelism=5, successPolicy={"rules": rules}))
    cluster.settle()
    for index in done:
        assert conditions(cluster) == {}
        finish(cluster, index)
    if met is None:
        assert conditions(cluster) == {}
        return
    assert conditions(cluster) == {"SuccessCriteriaMet": "SuccessPolicy"}
    cluster.obey()
    cluster.settle()
    assert conditions(cluster) == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    (complete,) = [one for one in cluster.get("Job", "work")["status"]["conditions"] if one["type"] == "Complete"]
    assert complete["message"] == f"Matched rules at index {met}"
    assert (status(cluster)["succeeded"], active(cluster)) == (len(done), [])


# owners


def test_a_pod_without_its_owner_is_adopted_and_one_without_its_labels_is_released(cluster: Cluster) -> None:
    cluster.add(job(completions=2, parallelism=2))
    cluster.settle()
    first, second = active(cluster)
    cluster.change("Pod", first, {"metadata": {"ownerReferences": []}})
    cluster.settle()
    assert active(cluster) == [first, second]
    assert cluster.pods[first]["metadata"]["ownerReferences"][0]["name"] == "work"
    cluster.change("Pod", second, {"metadata": {"labels": {"job": "another"}}})
    cluster.settle()
    assert not cluster.pods[second]["metadata"]["ownerReferences"]
    assert len(active(cluster)) == 3
    assert status(cluster)["active"] == 2
