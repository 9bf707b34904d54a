"""StatefulSets: numbers in order, names and claims that stay, and updates that wait for each other."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.pods import is_active, is_available
from paddlecloud.local.workloads.replicaset import BURST
from paddlecloud.local.workloads.statefulset.decide import Observed, decide
from paddlecloud.local.workloads.statefulset.identity import ordinal_of
from unit.local.workloads.cluster import Cluster, Crash, Row, make, names, template

LABELS = {"app": "db"}
CLAIM = {
    "metadata": {"name": "data", "labels": {"kind": "fast"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(replicas: int = 3, *, image: str = "v1", partition: int = 0, **spec: Any) -> Object:
    body = {
        "replicas": replicas,
        "serviceName": "peers",
        "selector": {"matchLabels": LABELS},
        "template": template(LABELS, container={"image": image}),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        **spec,
    }
    return make("StatefulSet", "apps/v1", "db", body)


def observe(cluster: Cluster, obj: Object) -> Observed:
    return Observed(
        pods=cluster.owned("Pod", obj),
        orphans=cluster.orphans("Pod"),
        revisions=cluster.owned("ControllerRevision", obj),
        claims=tuple(cluster.all("PersistentVolumeClaim")),
    )


ROWS = {"StatefulSet": Row(observe, decide)}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(ROWS)


def set_image(cluster: Cluster, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    cluster.change("StatefulSet", "db", {"spec": {"template": {"spec": {"containers": containers}}}})


def active(cluster: Cluster) -> list[str]:
    return names(pod for pod in cluster.pods.values() if is_active(pod))


def images(cluster: Cluster) -> dict[str, str]:
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in sorted(cluster.pods.items())}


def status(cluster: Cluster) -> Object:
    return dict(cluster.get("StatefulSet", "db")["status"])


def live(cluster: Cluster, rounds: int = 60) -> None:
    for _ in range(rounds):
        before = len(cluster.writes)
        cluster.settle()
        cluster.start()
        cluster.obey()
        cluster.settle()
        if len(cluster.writes) == before:
            return
    raise AssertionError("it never comes to rest")


def test_pods_come_one_after_the_other_each_when_those_before_are_ready(cluster: Cluster) -> None:
    cluster.add(stateful_set(3))
    for expected in (["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]):
        cluster.settle()
        assert active(cluster) == expected
        cluster.start()
    cluster.settle()
    assert status(cluster)["readyReplicas"] == status(cluster)["availableReplicas"] == 3


def test_a_pod_knows_its_number_and_is_reachable_under_its_name(cluster: Cluster) -> None:
    cluster.add(stateful_set(1, ordinals={"start": 4}))
    cluster.settle()
    pod = cluster.pods["db-4"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-4", "peers")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-4"
    assert labels["apps.kubernetes.io/pod-index"] == "4"
    assert labels["controller-revision-hash"] == status(cluster)["updateRevision"]


def test_parallel_sets_wait_for_nobody(cluster: Cluster) -> None:
    cluster.add(stateful_set(3, podManagementPolicy="Parallel"))
    cluster.step("StatefulSet", "db")
    assert active(cluster) == ["db-0", "db-1", "db-2"]
    cluster.start()
    cluster.change("StatefulSet", "db", {"spec": {"replicas": 0}})
    cluster.step("StatefulSet", "db")
    assert active(cluster) == []


def test_a_huge_parallel_set_is_filled_burst_by_burst(cluster: Cluster) -> None:
    cluster.add(stateful_set(2**31 - 1, podManagementPolicy="Parallel", volumeClaimTemplates=[CLAIM]))
    for passes in (1, 2):
        cluster.step("StatefulSet", "db")
        assert sorted(cluster.pods) == sorted(f"db-{ordinal}" for ordinal in range(passes * BURST))
    cluster.change("StatefulSet", "db", {"spec": {"replicas": 2 * BURST + 1}})
    live(cluster)
    assert status(cluster)["readyReplicas"] == 2 * BURST + 1, "and ends where a small one does"


def test_scaling_down_takes_the_highest_number_and_waits_until_it_is_gone(cluster: Cluster) -> None:
    cluster.add(stateful_set(3))
    live(cluster)
    cluster.change("StatefulSet", "db", {"spec": {"replicas": 1}})
    cluster.settle()
    assert active(cluster) == ["db-0", "db-1"]
    cluster.obey()
    cluster.settle()
    assert active(cluster) == ["db-0"]


def test_a_deleted_or_failed_pod_comes_back_under_its_name_on_its_claim(cluster: Cluster) -> None:
    cluster.add(stateful_set(2, volumeClaimTemplates=[CLAIM]))
    live(cluster)
    claims = {c["metadata"]["name"]: c["metadata"]["uid"] for c in cluster.all("PersistentVolumeClaim")}
    assert sorted(claims) == ["data-db-0", "data-db-1"]
    uids = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.delete("Pod", "db-0")
    cluster.settle()
    assert active(cluster) == ["db-1"], "the name is taken until the old pod is gone"
    cluster.finish("db-1", code=1)
    live(cluster)
    assert active(cluster) == ["db-0", "db-1"]
    assert all(cluster.pods[name]["metadata"]["uid"] != uid for name, uid in uids.items())
    assert {c["metadata"]["name"]: c["metadata"]["uid"] for c in cluster.all("PersistentVolumeClaim")} == claims
    volumes = cluster.pods["db-1"]["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    assert cluster.get("PersistentVolumeClaim", "data-db-0")["metadata"]["labels"] == {"kind": "fast", **LABELS}


@pytest.mark.parametrize(
    ("policy", "after_scaling", "after_deleting"),
    [
        (None, ["data-db-0", "data-db-1"], ["data-db-0", "data-db-1"]),
        ({"whenScaled": "Delete", "whenDeleted": "Retain"}, ["data-db-0"], ["data-db-0"]),
        ({"whenScaled": "Retain", "whenDeleted": "Delete"}, ["data-db-0", "data-db-1"], []),
    ],
)
def test_claims_are_kept_unless_the_retention_policy_says_otherwise(
    cluster: Cluster, policy: Object | None, after_scaling: list[str], after_deleting: list[str]
) -> None:
    more: dict[str, Any] = {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
    cluster.add(stateful_set(2, volumeClaimTemplates=[CLAIM], **more))
    live(cluster)
    cluster.change("StatefulSet", "db", {"spec": {"replicas": 1}})
    live(cluster)
    assert names(cluster.all("PersistentVolumeClaim")) == after_scaling
    owned = [
        claim["metadata"]["name"]
        for claim in cluster.all("PersistentVolumeClaim")
        if not any(owner["kind"] == "StatefulSet" for owner in claim["metadata"].get("ownerReferences", ()))
    ]
    assert owned == after_deleting, "what has no owner stays when the set is deleted"


def test_no_pod_starts_on_a_claim_that_is_being_deleted(cluster: Cluster) -> None:
    cluster.add(stateful_set(1, volumeClaimTemplates=[CLAIM]))
    live(cluster)
    protection = {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}}
    cluster.change("PersistentVolumeClaim", "data-db-0", protection)
    cluster.delete("PersistentVolumeClaim", "data-db-0")
    cluster.delete("Pod", "db-0", grace=0)
    cluster.settle()
    assert active(cluster) == []
    cluster.change("PersistentVolumeClaim", "data-db-0", {"metadata": {"finalizers": None}})
    live(cluster)
    assert active(cluster) == ["db-0"]


def test_scaling_down_in_order_halts_while_more_than_one_pod_is_ill(cluster: Cluster) -> None:
    cluster.add(stateful_set(3))
    live(cluster)
    cluster.become("db-1", "Running", ready=False)
    cluster.become("db-2", "Running", ready=False)
    cluster.change("StatefulSet", "db", {"spec": {"replicas": 0}})
    live(cluster)
    assert active(cluster) == ["db-0", "db-1", "db-2"]
    cluster.become("db-1", "Running", ready=True)
    cluster.settle()
    assert active(cluster) == ["db-0", "db-1"], "the only ill pod may go"
    live(cluster)
    assert active(cluster) == []


def test_an_update_goes_downwards_one_at_a_time(cluster: Cluster) -> None:
    cluster.add(stateful_set(3))
    live(cluster)
    before = status(cluster)["currentRevision"]
    set_image(cluster, "v2")
    for name in ("db-2", "db-1", "db-0"):
        cluster.settle()
        assert [n for n, pod in cluster.pods.items() if not is_active(pod)] == [name]
        assert status(cluster)["currentRevision"] == before
        cluster.obey()
        cluster.settle()
        assert images(cluster)[name] == "v2"
        cluster.start()
    cluster.settle()
    assert status(cluster)["currentRevision"] == status(cluster)["updateRevision"] != before
    assert status(cluster)["updatedReplicas"] == status(cluster)["currentReplicas"] == 3


def test_a_partition_keeps_the_numbers_below_it_on_the_old_template_even_when_they_restart(cluster: Cluster) -> None:
    cluster.add(stateful_set(3, partition=2))
    live(cluster)
    set_image(cluster, "v2")
    live(cluster)
    assert images(cluster) == {"db-0": "v1", "db-1": "v1", "db-2": "v2"}
    assert status(cluster)["currentRevision"] != status(cluster)["updateRevision"]
    cluster.delete("Pod", "db-0", grace=0)
    live(cluster)
    assert images(cluster)["db-0"] == "v1"
    cluster.change("StatefulSet", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    live(cluster)
    assert set(images(cluster).values()) == {"v2"}


def test_with_on_delete_only_a_user_replaces_pods(cluster: Cluster) -> None:
    cluster.add(stateful_set(2, updateStrategy={"type": "OnDelete"}))
    live(cluster)
    set_image(cluster, "v2")
    live(cluster)
    assert set(images(cluster).values()) == {"v1"}
    cluster.delete("Pod", "db-1")
    live(cluster)
    assert images(cluster) == {"db-0": "v1", "db-1": "v2"}


def test_undoing_a_broken_update_heals_the_set_without_help(cluster: Cluster) -> None:
    cluster.add(stateful_set(2))
    live(cluster)
    set_image(cluster, "broken")
    cluster.settle()
    cluster.obey()
    cluster.settle()
    assert images(cluster) == {"db-0": "v1", "db-1": "broken"}
    set_image(cluster, "v1")
    live(cluster)
    assert images(cluster) == {"db-0": "v1", "db-1": "v1"}


def test_an_update_waits_for_a_pod_of_the_proven_revision_that_is_not_ready(cluster: Cluster) -> None:
    cluster.add(stateful_set(3))
    live(cluster)
    before = status(cluster)["currentRevision"]
    cluster.become("db-1", "Running", ready=False)
    set_image(cluster, "v2")
    live(cluster)
    assert set(images(cluster).values()) == {"v1"}
    assert status(cluster)["currentRevision"] == before != status(cluster)["updateRevision"]
    cluster.become("db-1", "Running", ready=True)
    live(cluster)
    assert set(images(cluster).values()) == {"v2"}


def test_a_set_of_which_no_pod_was_ever_ready_is_mended_by_a_new_template(cluster: Cluster) -> None:
    cluster.add(stateful_set(2, image="broken"))
    cluster.settle()
    assert images(cluster) == {"db-0": "broken"}
    set_image(cluster, "v1")
    live(cluster)
    assert images(cluster) == {"db-0": "v1", "db-1": "v1"}


def test_revisions_are_kept_for_undo_numbered_and_limited(cluster: Cluster) -> None:
    cluster.add(stateful_set(1, revisionHistoryLimit=2))
    for image in ("v1", "v2", "v3", "v4", "v2"):
        set_image(cluster, image)
        live(cluster)
    kept = {
        revision["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: revision["revision"]
        for revision in cluster.all("ControllerRevision")
    }
    assert kept == {"v3": 3, "v4": 4, "v2": 5}
    assert all(r["data"]["spec"]["template"]["$patch"] == "replace" for r in cluster.all("ControllerRevision"))


WEIGHTS = {"step": 8, "crash": 3, "start": 5, "obey": 3, "later": 1, "image": 1, "delete": 1, "vanish": 1, "scale": 1}


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.integers(0, 3))
def test_in_any_order_and_with_any_crash_numbers_stay_in_order(seed: int, disturbed: bool, partition: int) -> None:
    """Undisturbed by users, at most one pod is away at a time; disturbed, it still comes right in the end."""
    rng = random.Random(seed)
    cluster = Cluster(ROWS)
    cluster.add(stateful_set(3, partition=partition, volumeClaimTemplates=[CLAIM]))
    live(cluster)
    events = [e for e, n in WEIGHTS.items() for _ in range(n) if disturbed or e not in ("delete", "vanish", "scale")]
    for _ in range(80):
        event = rng.choice(events)
        known = active(cluster)
        before = set(cluster.pods)
        if event in ("step", "crash"):
            good = {
                ordinal_of(cluster.get("StatefulSet", "db"), name)
                for name, pod in cluster.pods.items()
                if is_active(pod) and is_available(pod, 0, cluster.now)
            }
            try:
                cluster.step("StatefulSet", "db", crash_after=rng.randrange(3) if event == "crash" else None)
            except Crash:
                pass
            for name in set(cluster.pods) - before:
                number = ordinal_of(cluster.get("StatefulSet", "db"), name)
                assert number is not None
                assert good >= set(range(number)), f"{name} came before those below it were available"
        elif event == "image":
            set_image(cluster, f"v{rng.randrange(3)}")
        elif event == "scale":
            cluster.change("StatefulSet", "db", {"spec": {"replicas": rng.randrange(5)}})
        elif event == "obey":
            cluster.obey()
        elif event == "later":
            cluster.now += rng.randrange(20)
        elif event == "start":
            cluster.start(*known)
        elif known:
            cluster.delete("Pod", rng.choice(known), grace=None if event == "delete" else 0)
        if not disturbed:
            serving = [n for n, pod in cluster.pods.items() if is_active(pod) and is_available(pod, 0, cluster.now)]
            assert len(serving) >= 2
    live(cluster)
    obj = cluster.get("StatefulSet", "db")
    wanted = [f"db-{n}" for n in range(obj["spec"]["replicas"])]
    assert active(cluster) == wanted
    newest = obj["spec"]["template"]["spec"]["containers"][0]["image"]
    for name in wanted[partition:]:
        assert images(cluster)[name] == newest
