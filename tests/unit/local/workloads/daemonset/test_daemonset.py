"""DaemonSets: one pod on each node that fits, replaced node by node when the template changes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.filters import refusal
from paddlecloud.local.scheduler.state.shape import shape_of
from paddlecloud.local.scheduler.state.snapshot import node_view
from paddlecloud.local.workloads.daemonset.backoff import FailedPodBackoff
from paddlecloud.local.workloads.daemonset.decide import Observed, decide
from paddlecloud.local.workloads.daemonset.placement import node_of
from paddlecloud.local.workloads.pods import is_active, is_available
from unit.local.workloads.cluster import Cluster, Crash, Row, make, template

LABELS = {"app": "agent"}
DEDICATED = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


def daemon_set(*, image: str = "v1", pod: Object | None = None, **spec: Any) -> Object:
    body = {
        "selector": {"matchLabels": LABELS},
        "template": template(LABELS, container={"image": image}, **(pod or {})),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        **spec,
    }
    return make("DaemonSet", "apps/v1", "agent", body)


def node(name: str, *taints: Object, labels: dict[str, str] | None = None, cordoned: bool = False) -> Object:
    found = make("Node", "v1", name, {"taints": list(taints), "unschedulable": cordoned}, labels=labels or {})
    found["status"] = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return found


def rows(backoff: FailedPodBackoff) -> dict[str, Row]:
    def observe(cluster: Cluster, obj: Object) -> Observed:
        pods = cluster.owned("Pod", obj)
        failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
        return Observed(
            nodes=tuple(map(node_view, cluster.all("Node"))),
            pods=pods,
            orphans=cluster.orphans("Pod"),
            revisions=cluster.owned("ControllerRevision", obj),
            loose_revisions=cluster.orphans("ControllerRevision"),
            replaced_at=backoff.observe(obj["metadata"]["uid"], failed, cluster.now),
        )

    return {"DaemonSet": Row(observe, decide)}


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(rows(FailedPodBackoff()))
    for name in ("a", "b", "c"):
        found.add(node(name))
    return found


def schedule(cluster: Cluster) -> None:
    """The scheduler and the kubelets: what the node takes runs and is ready."""
    views = {obj["metadata"]["name"]: node_view(obj) for obj in cluster.all("Node")}
    for name, pod in cluster.pods.items():
        if pod["status"]["phase"] == "Pending" and not pod["metadata"].get("deletionTimestamp"):
            fitting = [view.name for view in views.values() if refusal(shape_of(pod["spec"]), view) is None]
            if fitting:
                assert fitting == [node_of(pod)]
                cluster.assign(name, fitting[0])
                cluster.become(name, "Running", ready=True)


def live(cluster: Cluster, rounds: int = 60) -> None:
    for _ in range(rounds):
        before = len(cluster.writes)
        cluster.settle()
        schedule(cluster)
        cluster.obey()
        cluster.settle()
        if len(cluster.writes) == before:
            return
    raise AssertionError("it never comes to rest")


def places(cluster: Cluster) -> list[str]:
    return sorted(node_of(pod) for pod in cluster.pods.values() if is_active(pod))


def on(cluster: Cluster, name: str) -> str:
    (found,) = (pod["metadata"]["name"] for pod in cluster.pods.values() if is_active(pod) and node_of(pod) == name)
    return str(found)


def images(cluster: Cluster) -> list[str]:
    return sorted(image for _, image in images_by_place(cluster))


def images_by_place(cluster: Cluster) -> list[tuple[str, str]]:
    active = [pod for pod in cluster.pods.values() if is_active(pod)]
    return [(node_of(pod), pod["spec"]["containers"][0]["image"]) for pod in active]


def set_image(cluster: Cluster, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    cluster.change("DaemonSet", "agent", {"spec": {"template": {"spec": {"containers": containers}}}})


def status(cluster: Cluster) -> Object:
    return dict(cluster.get("DaemonSet", "agent")["status"])


# One pod on each node


def test_each_node_gets_a_pod_and_the_status_counts_them(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    cluster.settle()
    assert places(cluster) == ["a", "b", "c"]
    assert status(cluster) == {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 0,
        "updatedNumberScheduled": 3,
        "numberUnavailable": 3,
        "observedGeneration": 1,
    }
    schedule(cluster)
    cluster.settle()
    assert status(cluster)["numberReady"] == status(cluster)["numberAvailable"] == 3
    assert "numberUnavailable" not in status(cluster)


def test_a_pod_is_bound_to_its_node_by_name_in_every_alternative_of_its_affinity(cluster: Cluster) -> None:
    terms: list[Object] = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, {"matchExpressions": []}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    cluster.change("Node", "b", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.add(daemon_set(pod={"affinity": {"nodeAffinity": required}}))
    cluster.settle()
    (pod,) = cluster.pods.values()
    found = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    here = [{"key": "metadata.name", "operator": "In", "values": ["b"]}]
    assert found["nodeSelectorTerms"] == [{**term, "matchFields": here} for term in terms]
    assert pod["metadata"]["labels"]["controller-revision-hash"]


@pytest.mark.parametrize("on_host", [False, True])
def test_pods_tolerate_what_a_node_may_suffer_from(cluster: Cluster, on_host: bool) -> None:
    own = {"key": "dedicated", "operator": "Exists"}
    brief = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    cluster.add(daemon_set(pod={"tolerations": [own, brief], "hostNetwork": on_host}))
    cluster.settle()
    tolerations = next(iter(cluster.pods.values()))["spec"]["tolerations"]
    assert tolerations[0] == own
    assert [(each["key"].partition("/")[2], each["effect"]) for each in tolerations[1:]] == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        *([("network-unavailable", "NoSchedule")] if on_host else []),
    ]
    assert not any("tolerationSeconds" in each for each in tolerations)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({}, ["a", "b", "c", "cordoned"]),
        ({"nodeSelector": {"disk": "ssd"}}, ["ssd-tainted"]),
        ({"nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}]}, ["ssd-tainted"]),
        ({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, ["a", "b", "c", "cordoned", "ssd-tainted"]),
        ({"nodeName": "b"}, ["b"]),
    ],
)
def test_which_nodes_get_a_pod(cluster: Cluster, pod: Object, expected: list[str]) -> None:
    cluster.add(node("cordoned", cordoned=True))
    cluster.add(node("ssd-tainted", DEDICATED, labels={"disk": "ssd"}))
    if "nodeSelector" in pod and "tolerations" not in pod:
        expected = []  # the only node with the label has a taint
    cluster.add(daemon_set(pod=pod))
    live(cluster)
    assert places(cluster) == expected
    assert status(cluster)["desiredNumberScheduled"] == status(cluster).get("numberAvailable", 0) == len(expected)


def test_nodes_that_come_get_a_pod_and_pods_for_nodes_that_go_are_removed(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    cluster.add(node("d"))
    cluster.settle()
    assert places(cluster) == ["a", "b", "c", "d"]
    cluster.delete("Node", "d")
    cluster.settle()
    assert places(cluster) == ["a", "b", "c"]


def test_a_taint_keeps_new_pods_away_and_only_no_execute_ends_those_that_run(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    cluster.change("Node", "a", {"spec": {"taints": [DEDICATED]}})
    live(cluster)
    assert places(cluster) == ["a", "b", "c"]
    assert (status(cluster)["desiredNumberScheduled"], status(cluster)["numberMisscheduled"]) == (2, 1)
    cluster.change("Node", "a", {"spec": {"taints": [{**DEDICATED, "effect": "NoExecute"}]}})
    live(cluster)
    assert places(cluster) == ["b", "c"]
    assert status(cluster)["numberMisscheduled"] == 0


def test_a_pod_that_still_waits_for_a_node_that_got_a_taint_goes(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    cluster.settle()
    cluster.change("Node", "a", {"spec": {"taints": [DEDICATED]}})
    cluster.settle()
    assert places(cluster) == ["b", "c"]


def test_a_node_whose_label_is_taken_away_loses_its_pod(cluster: Cluster) -> None:
    cluster.change("Node", "a", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.add(daemon_set(pod={"nodeSelector": {"disk": "ssd"}}))
    live(cluster)
    assert places(cluster) == ["a"]
    cluster.change("Node", "a", {"metadata": {"labels": {"disk": None}}})
    live(cluster)
    assert places(cluster) == []


def test_a_pod_that_succeeds_or_is_deleted_is_replaced(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    cluster.finish(on(cluster, "a"))
    cluster.delete("Pod", on(cluster, "b"))
    live(cluster)
    assert places(cluster) == ["a", "b", "c"]
    assert any("SucceededDaemonPod" in event for event in cluster.events)


def test_pods_that_fail_again_and_again_are_replaced_later_and_later(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    waits = []
    for _ in range(5):
        live(cluster)
        cluster.finish(on(cluster, "a"), code=1)
        after = cluster.plan("DaemonSet", "agent").after or 0.0
        waits.append(after)
        if after:
            cluster.now += after - 0.5
            cluster.settle()
            assert places(cluster) == ["b", "c"]
            cluster.now += 0.5
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert any("Warning FailedDaemonPod: Found failed daemon pod default/agent-" in event for event in cluster.events)


def test_the_wait_is_bounded_and_forgotten_after_half_an_hour_of_peace() -> None:
    backoff = FailedPodBackoff()

    def wait(number: int, now: float) -> float:
        failed = {"metadata": {"uid": f"p{number}"}, "spec": {"nodeName": "a"}}
        return backoff.observe("set", [failed], now)[f"p{number}"] - now

    now = 1_700_000_000.0
    for number in range(15):
        last = wait(number, now)
        now += last
    assert last == 900.0
    assert wait(16, now + 1801.0) == 0.0


def test_orphans_that_match_are_adopted_and_pods_that_no_longer_match_are_released(cluster: Cluster) -> None:
    orphan = make("Pod", "v1", "lost", template(LABELS)["spec"], labels=LABELS)
    cluster.add(orphan)
    cluster.assign("lost", "b")
    cluster.become("lost", "Running", ready=True)
    cluster.add(daemon_set(updateStrategy={"type": "OnDelete"}))
    live(cluster)
    assert places(cluster) == ["a", "b", "c"]
    assert on(cluster, "b") == "lost"
    released = on(cluster, "a")
    cluster.change("Pod", released, {"metadata": {"labels": {"app": "debug"}}})
    live(cluster)
    assert cluster.pods[released]["metadata"]["ownerReferences"] == []
    assert places(cluster) == ["a", "a", "b", "c"]


def test_of_several_pods_on_a_node_the_oldest_stays(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    first = on(cluster, "a")
    cluster.now += 5
    double = {**cluster.pods[first], "metadata": {**cluster.pods[first]["metadata"], "name": "double", "uid": "second"}}
    cluster.add(double)
    cluster.become("double", "Running", ready=True)
    live(cluster)
    assert on(cluster, "a") == first


# Another template


def test_pods_are_replaced_on_no_more_nodes_at_once_than_may_be_unavailable(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    set_image(cluster, "v2")
    for updated in (1, 2, 3):
        cluster.settle()
        assert len(places(cluster)) == 2
        cluster.obey()
        cluster.settle()
        assert images(cluster) == ["v1"] * (3 - updated) + ["v2"] * updated
        schedule(cluster)
    cluster.settle()
    assert status(cluster)["updatedNumberScheduled"] == status(cluster)["numberAvailable"] == 3


def test_pods_that_serve_nobody_are_replaced_at_once(cluster: Cluster) -> None:
    cluster.add(daemon_set(image="broken"))
    cluster.settle()
    set_image(cluster, "v2")
    cluster.settle()
    assert images(cluster) == ["v2"] * 3


def test_a_new_pod_has_to_be_available_for_a_while_before_the_next_node_follows(cluster: Cluster) -> None:
    cluster.add(daemon_set(minReadySeconds=30))
    cluster.now += 100
    live(cluster)
    cluster.now += 30
    set_image(cluster, "v2")
    live(cluster)
    assert images(cluster) == ["v1", "v1", "v2"]
    assert cluster.plan("DaemonSet", "agent").after == 30.0
    cluster.now += 30
    live(cluster)
    assert images(cluster) == ["v1", "v2", "v2"]


def test_on_delete_only_a_user_replaces_pods(cluster: Cluster) -> None:
    cluster.add(daemon_set(updateStrategy={"type": "OnDelete"}))
    live(cluster)
    set_image(cluster, "v2")
    live(cluster)
    assert images(cluster) == ["v1"] * 3
    assert "updatedNumberScheduled" not in status(cluster)
    cluster.delete("Pod", on(cluster, "a"))
    live(cluster)
    assert images(cluster) == ["v1", "v1", "v2"]


def test_with_a_surge_the_new_pod_comes_first(cluster: Cluster) -> None:
    rolling = {"maxUnavailable": 0, "maxSurge": "50%"}
    cluster.add(daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling}))
    live(cluster)
    set_image(cluster, "v2")
    cluster.settle()
    assert images(cluster) == ["v1", "v1", "v1", "v2", "v2"]
    schedule(cluster)
    cluster.settle()
    assert images(cluster) == ["v1", "v2", "v2", "v2"]
    live(cluster)
    assert images(cluster) == ["v2"] * 3
    assert places(cluster) == ["a", "b", "c"]


def test_each_template_is_a_revision_and_one_that_comes_back_is_the_newest_again(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    set_image(cluster, "v2")
    live(cluster)
    set_image(cluster, "v1")
    live(cluster)
    revisions = {obj["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: obj["revision"]
                 for obj in cluster.all("ControllerRevision")}  # fmt: skip
    assert revisions == {"v1": 3, "v2": 2}
    for obj in cluster.all("ControllerRevision"):
        assert obj["metadata"]["name"] == f"agent-{obj['metadata']['labels']['controller-revision-hash']}"
        assert LABELS.items() <= obj["metadata"]["labels"].items()


def test_the_keys_of_a_revision_are_in_order_since_clients_compare_its_bytes(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    cluster.settle()
    (revision,) = cluster.all("ControllerRevision")
    assert json.dumps(revision["data"]) == json.dumps(revision["data"], sort_keys=True)


def test_revisions_beyond_the_limit_go(cluster: Cluster) -> None:
    cluster.add(daemon_set(revisionHistoryLimit=1))
    for image in ("v2", "v3", "v4"):
        live(cluster)
        set_image(cluster, image)
    live(cluster)
    assert sorted(obj["revision"] for obj in cluster.all("ControllerRevision")) == [3, 4]


def test_a_set_made_anew_takes_its_pods_and_revisions_back(cluster: Cluster) -> None:
    cluster.add(daemon_set())
    live(cluster)
    before = set(cluster.pods)
    gone = cluster.get("DaemonSet", "agent")
    for kind in ("Pod", "ControllerRevision"):
        for obj in cluster.owned(kind, gone):
            cluster.change(kind, obj["metadata"]["name"], {"metadata": {"ownerReferences": []}})
    cluster.delete("DaemonSet", "agent")
    cluster.add(daemon_set())
    live(cluster)
    assert set(cluster.pods) == before
    (revision,) = cluster.all("ControllerRevision")
    assert revision["metadata"]["ownerReferences"][0]["uid"] == cluster.get("DaemonSet", "agent")["metadata"]["uid"]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_whatever_happens_each_node_ends_with_one_pod_and_an_update_keeps_its_promise(seed: int, surge: bool) -> None:
    """Crashes after any write, nodes that come and go, pods that end, templates that change."""
    rng = random.Random(seed)
    cluster = Cluster(rows(FailedPodBackoff()))
    for name in "abcd":
        cluster.add(node(name))
    rolling = {"maxUnavailable": 0, "maxSurge": 1} if surge else {"maxUnavailable": 1, "maxSurge": 0}
    cluster.add(daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling}))
    for step in range(40):
        cluster.now += rng.choice([0, 1, 20])
        event = rng.choice(["pass", "pass", "crash", "start", "obey", "fail", "template", "node"])
        active = [name for name, pod in cluster.pods.items() if is_active(pod) and pod["spec"].get("nodeName")]
        if event == "fail" and active:
            cluster.finish(rng.choice(active), code=rng.choice([0, 1]))
        elif event == "template":
            set_image(cluster, rng.choice(["v1", "v2", "v3"]))
        elif event == "node":
            if rng.random() < 0.5:
                cluster.add(node(f"n{step}"))
            else:
                name = rng.choice([obj["metadata"]["name"] for obj in cluster.all("Node")])
                cluster.change("Node", name, {"spec": {"taints": rng.choice([[], [DEDICATED]])}})
        elif event == "start":
            schedule(cluster)
        elif event == "obey":
            cluster.obey()
        else:
            serving = _serving(cluster)
            try:
                cluster.step("DaemonSet", "agent", crash_after=rng.randrange(3) if event == "crash" else None)
            except Crash:
                pass  # the next pass goes on from what was written
            assert len(serving - _serving(cluster)) <= (0 if surge else 1)
    for _ in range(20):
        cluster.now += 1000
        live(cluster)
    wanted = sorted(obj["metadata"]["name"] for obj in cluster.all("Node") if not obj["spec"]["taints"])
    assert [place for place in places(cluster) if place in wanted] == wanted
    assert len(set(places(cluster))) == len(places(cluster))
    image = cluster.get("DaemonSet", "agent")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert {found for place, found in images_by_place(cluster) if place in wanted} <= {image}
    assert status(cluster)["numberAvailable"] == status(cluster)["desiredNumberScheduled"] == len(wanted)


def _serving(cluster: Cluster) -> set[str]:
    """Nodes that have an available pod."""
    return {node_of(pod) for pod in cluster.pods.values() if is_active(pod) and is_available(pod, 0, cluster.now)}
