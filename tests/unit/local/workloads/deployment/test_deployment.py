"""Deployments: what a rollout promises, revision numbers that `kubectl rollout` reads, and conditions it waits for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddlecloud.kube.conditions import condition_in, conditions_of
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.deployment.decide import Observed, decide
from paddlecloud.local.workloads.deployment.revisions import HISTORY, REVISION
from paddlecloud.local.workloads.deployment.rollout import Limits, Size, rescale, roll
from paddlecloud.local.workloads.pods import is_active, is_available
from unit.local.workloads import test_replicaset
from unit.local.workloads.cluster import Cluster, Crash, Row, make, names, template

LABELS = {"app": "web"}


def deployment(replicas: int = 3, *, image: str = "v1", surge: Any = 1, unavailable: Any = 0, **spec: Any) -> Object:
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": template(LABELS, container={"image": image}),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        **spec,
    }
    return make("Deployment", "apps/v1", "web", body)


def observe(cluster: Cluster, obj: Object) -> Observed:
    owned = cluster.owned("ReplicaSet", obj)
    pods = {rs["metadata"]["uid"]: cluster.owned("Pod", rs) for rs in owned}
    return Observed(owned, cluster.orphans("ReplicaSet"), pods)


ROWS = {"Deployment": Row(observe, decide), "ReplicaSet": test_replicaset.ROW}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(ROWS)


def set_image(cluster: Cluster, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    cluster.change("Deployment", "web", {"spec": {"template": {"spec": {"containers": containers}}}})


def active(cluster: Cluster) -> list[Object]:
    return [pod for pod in cluster.pods.values() if is_active(pod)]


def images(cluster: Cluster) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in active(cluster))


def live(cluster: Cluster) -> None:
    """Controllers and kubelets work until all is quiet."""
    for _ in range(40):
        before = len(cluster.writes)
        cluster.settle()
        cluster.start()
        cluster.obey()
        cluster.settle()
        if len(cluster.writes) == before:
            return
    raise AssertionError("the rollout never ends")


def progressing(cluster: Cluster) -> tuple[str, str]:
    condition = condition_in(conditions_of(cluster.get("Deployment", "web")), "Progressing")
    assert condition is not None
    return condition["status"], condition["reason"]


def revisions(cluster: Cluster) -> dict[str, str]:
    """Image → revision number, as `kubectl rollout history` would list them."""
    return {
        rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs["metadata"]["annotations"][REVISION]
        for rs in cluster.all("ReplicaSet")
    }


# Limits


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (3, 1, 0, (3, 1, 0)),
        (10, "25%", "25%", (10, 3, 2)),
        (1, "25%", "25%", (1, 1, 0)),
        (3, 0, 0, (3, 0, 1)),
        (3, "0%", "10%", (3, 0, 1)),
        (2, 0, 5, (2, 0, 2)),
        (0, "25%", "25%", (0, 0, 1)),
    ],
)
def test_limits_round_the_surge_up_and_the_unavailable_down(
    replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int, int]
) -> None:
    assert Limits.of(deployment(replicas, surge=surge, unavailable=unavailable)) == expected


@pytest.mark.parametrize(
    ("case", "new", "old", "expected"),
    [
        ("nothing yet", Size(0), [], (3, [])),
        ("begin", Size(0), [Size(3, 3)], (1, [3])),
        ("the newcomer is not ready", Size(1, 0), [Size(3, 3)], (1, [3])),
        ("it is, one may go", Size(1, 1), [Size(3, 3)], (1, [2])),
        ("room again", Size(1, 1), [Size(2, 3)], (2, [2])),
        ("an old set that never worked goes first", Size(1, 1), [Size(1, 0), Size(2, 2)], (1, [0, 2])),
        ("sizes unknown: nothing grows", Size(1, 1), [Size(2, 2, settled=False)], (1, [2])),
        ("sizes unknown: nothing is given up", Size(1, 1, settled=False), [Size(3, 3)], (1, [3])),
        ("scaled down meanwhile", Size(5, 5), [Size(2, 2)], (3, [2])),
        ("the end", Size(3, 3), [Size(1, 1)], (3, [0])),
    ],
)
def test_each_step_of_a_rollout_with_three_pods_one_extra_and_none_missing(
    case: str, new: Size, old: list[Size], expected: tuple[int, list[int]]
) -> None:
    assert roll(Limits(3, 1, 0), new, old) == expected


@pytest.mark.parametrize(
    ("limits", "sizes", "expected"),
    [
        (Limits(30, 3, 2), [(8, 13), (5, 13)], [20, 13]),
        (Limits(10, 3, 2), [(20, 33), (13, 33)], [8, 5]),
        (Limits(5, 0, 1), [(2, 3), (1, 3)], [3, 2]),
        (Limits(0, 0, 1), [(8, 13), (5, 13)], [0, 0]),
        (Limits(7, 1, 1), [(3, 4)], [7]),
        (Limits(7, 1, 1), [(0, 4), (3, 4), (0, 4)], [0, 7, 0]),
        (Limits(7, 1, 1), [(0, 4), (0, 4)], [0, 7]),
        (Limits(7, 1, 1), [], []),
        (Limits(3, 1, 1), [(2, None), (2, None)], [2, 2]),
        (Limits(7, 1, 1), [(2, None), (2, None)], [4, 4]),
        (Limits(4, 0, 1), [(1, 3), (1, 3), (1, 3)], [1, 1, 2]),
        (Limits(2, 0, 1), [(1, 3), (1, 3), (1, 3)], [0, 1, 1]),
        (Limits(5, 0, 1), [(2, 999_999_999), (1, 0)], [3, 2]),
    ],
)
def test_another_size_is_shared_out_among_the_sets_by_their_own(
    limits: Limits, sizes: list[tuple[int, int | None]], expected: list[int]
) -> None:
    given = [Size(replicas, most=most) for replicas, most in sizes]
    assert rescale(limits, given, sum(size.replicas for size in given)) == expected


# Rollouts


def test_a_new_deployment_becomes_available_and_says_so(cluster: Cluster) -> None:
    cluster.add(deployment(3))
    cluster.step("Deployment", "web")
    assert progressing(cluster) == ("True", "NewReplicaSetCreated")
    live(cluster)
    obj = cluster.get("Deployment", "web")
    assert progressing(cluster) == ("True", "NewReplicaSetAvailable")
    (replica_set,) = cluster.all("ReplicaSet")
    assert replica_set["metadata"]["name"].startswith("web-")
    mark = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert all(pod["metadata"]["labels"]["pod-template-hash"] == mark for pod in active(cluster))
    assert obj["metadata"]["annotations"][REVISION] == "1"
    numbers = {name: value for name, value in obj["status"].items() if name != "conditions"}
    assert numbers == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    available = condition_in(conditions_of(obj), "Available")
    assert available is not None
    assert available["reason"] == "MinimumReplicasAvailable"
    assert cluster.events[0].endswith(f"Scaled up replica set {replica_set['metadata']['name']} from 0 to 3")


def test_undo_brings_the_old_template_back_under_a_new_number(cluster: Cluster) -> None:
    cluster.add(deployment(2))
    live(cluster)
    set_image(cluster, "v2")
    live(cluster)
    assert revisions(cluster) == {"v1": "1", "v2": "2"}
    set_image(cluster, "v1")
    live(cluster)
    assert revisions(cluster) == {"v1": "3", "v2": "2"}
    assert images(cluster) == ["v1", "v1"]
    back = next(rs for rs in cluster.all("ReplicaSet") if rs["metadata"]["annotations"][REVISION] == "3")
    assert back["metadata"]["annotations"][HISTORY] == "1"
    assert cluster.get("Deployment", "web")["metadata"]["annotations"][REVISION] == "3"


def test_the_change_cause_goes_with_the_revision_and_applied_configuration_does_not(cluster: Cluster) -> None:
    obj = deployment(1)
    obj["metadata"]["annotations"] = {
        "kubernetes.io/change-cause": "first",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    cluster.add(obj)
    live(cluster)
    (replica_set,) = cluster.all("ReplicaSet")
    assert replica_set["metadata"]["annotations"] == {
        "kubernetes.io/change-cause": "first",
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "1",
        "deployment.kubernetes.io/max-replicas": "2",
    }


def test_history_is_kept_to_its_limit(cluster: Cluster) -> None:
    cluster.add(deployment(1, revisionHistoryLimit=2))
    live(cluster)
    for number in range(2, 6):
        cluster.now += 1
        set_image(cluster, f"v{number}")
        live(cluster)
    assert sorted(revisions(cluster)) == ["v3", "v4", "v5"]


def test_recreate_lets_the_last_old_pod_go_before_the_first_new_one(cluster: Cluster) -> None:
    cluster.add(deployment(2, strategy={"type": "Recreate"}))
    live(cluster)
    set_image(cluster, "v2")
    cluster.settle()
    assert images(cluster) == []
    assert len(cluster.pods) == 2
    cluster.obey()
    cluster.settle()
    assert images(cluster) == ["v2", "v2"]


def test_a_paused_deployment_can_be_scaled_but_starts_no_rollout(cluster: Cluster) -> None:
    cluster.add(deployment(2))
    live(cluster)
    cluster.change("Deployment", "web", {"spec": {"paused": True, "replicas": 4}})
    set_image(cluster, "v2")
    live(cluster)
    assert images(cluster) == ["v1"] * 4
    assert progressing(cluster) == ("Unknown", "DeploymentPaused")
    cluster.change("Deployment", "web", {"spec": {"paused": False}})
    live(cluster)
    assert images(cluster) == ["v2"] * 4
    assert progressing(cluster) == ("True", "NewReplicaSetAvailable")


def test_a_deployment_that_is_scaled_amid_a_rollout_stays_where_it_was(cluster: Cluster) -> None:
    cluster.add(deployment(10, surge=3, unavailable=2))
    live(cluster)
    set_image(cluster, "broken")
    cluster.settle()
    cluster.obey()
    cluster.settle()
    assert Counter(images(cluster)) == {"v1": 8, "broken": 5}
    cluster.change("Deployment", "web", {"spec": {"replicas": 30}})
    cluster.settle()
    assert Counter(images(cluster)) == {"v1": 20, "broken": 13}
    sets = cluster.all("ReplicaSet")
    numbers = ("deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas")
    assert {tuple(rs["metadata"]["annotations"][name] for name in numbers) for rs in sets} == {("30", "33")}


def test_a_rollout_that_does_not_move_is_called_late_after_its_deadline(cluster: Cluster) -> None:
    cluster.add(deployment(2, progressDeadlineSeconds=60))
    live(cluster)
    set_image(cluster, "broken")
    cluster.settle()
    cluster.now += 30
    plan = cluster.step("Deployment", "web")
    assert progressing(cluster)[0] == "True"
    assert plan.after == pytest.approx(31)
    cluster.now += 31
    cluster.settle()
    assert progressing(cluster) == ("False", "ProgressDeadlineExceeded")
    live(cluster)
    assert progressing(cluster) == ("True", "NewReplicaSetAvailable")


def test_a_rollout_that_is_undone_after_its_deadline_is_not_called_late_again(cluster: Cluster) -> None:
    strategy = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    cluster.add(deployment(1, progressDeadlineSeconds=60, strategy=strategy))
    live(cluster)
    set_image(cluster, "broken")
    cluster.settle()
    cluster.now += 61
    cluster.settle()
    assert progressing(cluster) == ("False", "ProgressDeadlineExceeded")
    set_image(cluster, "v1")
    cluster.step("Deployment", "web")
    assert progressing(cluster) == ("True", "FoundNewReplicaSet"), "as `kubectl rollout status` reads it at once"
    live(cluster)
    assert progressing(cluster) == ("True", "NewReplicaSetAvailable")


def test_pods_lost_after_a_rollout_are_no_new_rollout(cluster: Cluster) -> None:
    cluster.add(deployment(2, progressDeadlineSeconds=60))
    live(cluster)
    for name in list(cluster.pods):
        cluster.delete("Pod", name, grace=0)
    cluster.settle()
    assert progressing(cluster) == ("True", "NewReplicaSetAvailable")
    available = condition_in(conditions_of(cluster.get("Deployment", "web")), "Available")
    assert available is not None
    assert available["status"] == "False"


def test_a_broken_rollout_gives_way_to_the_next_one(cluster: Cluster) -> None:
    cluster.add(deployment(3, surge=1, unavailable=0))
    live(cluster)
    set_image(cluster, "broken")
    cluster.settle()
    assert images(cluster) == ["broken", "v1", "v1", "v1"]
    set_image(cluster, "v2")
    for _ in range(10):
        cluster.settle()
        cluster.start(*(name for name, pod in cluster.pods.items() if pod["spec"]["containers"][0]["image"] == "v2"))
        cluster.obey()
    assert images(cluster) == ["v2"] * 3


def test_sets_left_by_a_deleted_deployment_are_taken_over_by_one_of_the_same_template(cluster: Cluster) -> None:
    cluster.add(deployment(1))
    live(cluster)
    (before,) = names(cluster.pods.values())
    replica_set = cluster.all("ReplicaSet")[0]["metadata"]["name"]
    cluster.change("ReplicaSet", replica_set, {"metadata": {"ownerReferences": []}})
    del cluster.objects[("Deployment", "web")]
    cluster.add(deployment(1))
    live(cluster)
    assert names(cluster.all("ReplicaSet")) == [replica_set]
    assert names(cluster.pods.values()) == [before]


# Whatever happens

WEIGHTS = {"Deployment": 6, "ReplicaSet": 9, "crash": 2, "start": 5, "obey": 2, "later": 1, "image": 1}


def happenings(seed: int, *more: str) -> Iterator[tuple[str, int]]:
    """Long enough that a rollout gets somewhere between two changes of mind."""
    rng = random.Random(seed)
    events = [event for event, weight in WEIGHTS.items() for _ in range(weight)]
    for _ in range(120):
        yield rng.choice([*events, *more]), rng.randrange(10**6)


@settings(max_examples=100, deadline=None)
@example(11071849, False, 1, (1, 0))  # a set had to shrink and to grow again before it had counted
@given(
    st.integers(0, 2**32),
    st.booleans(),
    st.integers(1, 5),
    st.sampled_from([(1, 0), (0, 1), (2, 1), ("25%", "25%"), ("100%", 0), (0, "50%")]),
)
def test_in_any_order_and_with_any_crash_the_promises_hold_and_the_rollout_ends(
    seed: int, resizing: bool, replicas: int, strategy: tuple[Any, Any]
) -> None:
    cluster = Cluster(ROWS)
    cluster.add(deployment(replicas, surge=strategy[0], unavailable=strategy[1]))
    live(cluster)
    limits = Limits.of(cluster.get("Deployment", "web"))
    scaled = False
    for event, number in happenings(seed, *(["scale"] if resizing else [])):
        known = sorted(cluster.pods)
        if event in ("Deployment", "ReplicaSet", "crash"):
            kind = event if event != "crash" else ("Deployment", "ReplicaSet")[number % 2]
            sets = names(cluster.all(kind))
            try:
                cluster.step(kind, sets[number % len(sets)], crash_after=number % 3 if event == "crash" else None)
            except Crash:
                pass
        elif event == "image":
            set_image(cluster, f"v{number % 3}")
        elif event == "scale":
            cluster.change("Deployment", "web", {"spec": {"replicas": 1 + number % 5}})
            scaled = True  # then the limits are others, and pods of the former ones may be there
        elif event == "obey":
            cluster.obey()
        elif event == "later":
            cluster.now += number % 20
        elif known:
            cluster.start(known[number % len(known)])
        if not scaled:
            assert len(active(cluster)) <= limits.wanted + limits.surge
            serving = [pod for pod in active(cluster) if is_available(pod, 0, cluster.now)]
            assert len(serving) >= limits.wanted - limits.unavailable
    live(cluster)
    obj = cluster.get("Deployment", "web")
    image = obj["spec"]["template"]["spec"]["containers"][0]["image"]
    assert images(cluster) == [image] * obj["spec"]["replicas"]
    assert progressing(cluster) == ("True", "NewReplicaSetAvailable")
