"""ReplicaSets: the right number of pods, the right ones given up, and a status that tells the truth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.pods import is_active
from paddlecloud.local.workloads.replicaset import Observed, decide

from .cluster import START, Cluster, Crash, Row, make, names, template

LABELS = {"app": "web"}


def replica_set(replicas: int = 2, name: str = "web", **spec: Any) -> Object:
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(LABELS), **spec}
    return make("ReplicaSet", "apps/v1", name, body)


def observe(cluster: Cluster, obj: Object) -> Observed:
    return Observed(pods=cluster.owned("Pod", obj), orphans=cluster.orphans("Pod"))


ROW = Row(observe, decide)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster({"ReplicaSet": ROW})


def active(cluster: Cluster) -> list[str]:
    return names(pod for pod in cluster.pods.values() if is_active(pod))


def test_it_makes_its_pods_in_one_pass_and_owns_them(cluster: Cluster) -> None:
    cluster.add(replica_set(3))
    cluster.step("ReplicaSet", "web")
    assert len(cluster.pods) == 3
    for name, pod in cluster.pods.items():
        assert name.startswith("web-")
        assert pod["metadata"]["labels"] == LABELS
        owner = pod["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    assert cluster.events == [f"Normal SuccessfulCreate: Created 3 pods: {', '.join(cluster.pods)}"]


def test_status_counts_pods_ready_pods_and_available_pods(cluster: Cluster) -> None:
    cluster.add(replica_set(3, minReadySeconds=10))
    cluster.settle()
    first, second, _ = cluster.pods
    cluster.start(first)
    cluster.now += 6
    cluster.start(second)
    cluster.now += 5
    plan = cluster.step("ReplicaSet", "web")
    status = cluster.get("ReplicaSet", "web")["status"]
    assert status == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 1,
    }
    assert plan.after == pytest.approx(5)


def test_a_pod_that_fails_leaves_or_vanishes_is_replaced_under_another_name(cluster: Cluster) -> None:
    cluster.add(replica_set(3))
    cluster.settle()
    cluster.start()
    cluster.settle()
    failed, leaving, vanished = cluster.pods
    cluster.finish(failed, code=1)
    cluster.delete("Pod", leaving)
    cluster.delete("Pod", vanished, grace=0)
    cluster.settle()
    assert len(active(cluster)) == 3
    assert not {failed, leaving, vanished} & set(active(cluster))
    assert failed in cluster.pods


def test_scaling_down_gives_up_the_least_valuable_pods_first(cluster: Cluster) -> None:
    cluster.add(replica_set(6))
    cluster.settle()
    unplaced, pending, unready, cheap, young, old = cluster.pods
    for name in (pending, unready, cheap, young, old):
        cluster.assign(name)
    for name in (unready, cheap, young, old):
        cluster.become(name, "Running", ready=name != unready)
    cluster.change("Pod", cheap, {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}})
    for name, age in ((cheap, 100), (young, 50), (old, 200)):
        moment = f"2023-11-14T21:{59 - age // 10:02}:00Z"
        cluster.change("Pod", name, {"metadata": {"creationTimestamp": moment}})
    order = []
    for wanted in range(5, -1, -1):
        cluster.change("ReplicaSet", "web", {"spec": {"replicas": wanted}})
        plan = cluster.step("ReplicaSet", "web")
        order += [delete.name for delete in plan.delete]
        cluster.obey()
    assert order == [unplaced, pending, unready, cheap, young, old]


def test_a_pod_without_an_owner_is_adopted_and_one_that_was_relabelled_is_let_go(cluster: Cluster) -> None:
    cluster.add(make("Pod", "v1", "stray", {}, labels=LABELS))
    cluster.add(make("Pod", "v1", "other", {}, labels={"app": "db"}))
    cluster.add(replica_set(2))
    cluster.settle()
    owner = cluster.get("ReplicaSet", "web")
    assert "stray" in names(cluster.owned("Pod", owner))
    assert len(cluster.owned("Pod", owner)) == 2
    cluster.change("Pod", "stray", {"metadata": {"labels": {"app": "debug"}}})
    cluster.settle()
    assert "stray" in cluster.pods
    assert not cluster.pods["stray"]["metadata"]["ownerReferences"]
    assert len(cluster.owned("Pod", owner)) == 2


def test_a_refusal_is_a_condition_until_it_is_over() -> None:
    owner = replica_set(1)
    owner["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    status = decide(owner, Observed(refusal="exceeded quota"), START).status
    assert status is not None
    (condition,) = status["conditions"]
    assert (condition["type"], condition["reason"], condition["message"]) == (
        "ReplicaFailure",
        "FailedCreate",
        "exceeded quota",
    )
    healed = decide({**owner, "status": status}, Observed(), START).status
    assert healed is not None
    assert "conditions" not in healed


def test_a_set_that_is_being_deleted_makes_nothing(cluster: Cluster) -> None:
    cluster.add(replica_set(2))
    cluster.change("ReplicaSet", "web", {"metadata": {"finalizers": ["foregroundDeletion"]}})
    cluster.delete("ReplicaSet", "web")
    cluster.settle()
    assert cluster.pods == {}


happenings = st.lists(
    st.tuples(
        st.sampled_from(["step", "crash", "start", "fail", "delete", "vanish", "obey", "scale"]),
        st.integers(0, 10**6),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(happenings, st.integers(0, 4))
def test_whatever_happens_the_set_ends_with_what_it_wants_and_never_overshoots(
    events: list[tuple[str, int]], wanted: int
) -> None:
    cluster = Cluster({"ReplicaSet": ROW})
    cluster.add(replica_set(wanted))
    most = wanted
    for event, number in events:
        known = sorted(cluster.pods)
        name = known[number % len(known)] if known else ""
        if event in ("step", "crash"):
            try:
                cluster.step("ReplicaSet", "web", crash_after=number % 4 if event == "crash" else None)
            except Crash:
                pass
        elif event == "scale":
            cluster.change("ReplicaSet", "web", {"spec": {"replicas": number % 5}})
            most = max(most, number % 5)
        elif event == "obey":
            cluster.obey()
        elif name:
            {
                "start": lambda name: cluster.start(name),
                "fail": lambda name: cluster.finish(name, code=1),
                "delete": lambda name: cluster.delete("Pod", name),
                "vanish": lambda name: cluster.delete("Pod", name, grace=0),
            }[event](name)
        assert len(active(cluster)) <= most
    cluster.settle()
    cluster.obey()
    cluster.start()
    cluster.settle()
    owner = cluster.get("ReplicaSet", "web")
    assert len(active(cluster)) == owner["spec"]["replicas"] == owner["status"]["replicas"]
    before = len(cluster.writes)
    cluster.settle()
    assert len(cluster.writes) == before
