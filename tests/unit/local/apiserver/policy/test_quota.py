"""Quota arithmetic: what counts, for whom, and how a refusal reads."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.quantity import amounts, written
from paddlecloud.local.apiserver.policy.quota import applies, check, collection_of, status_of, usage_of


def container(name: str = "c", **resources: Any) -> dict[str, Any]:
    """`cpu="1"` is a request, `limit_cpu="2"` a limit; an underscore in other names is a dash."""
    limits = {k.removeprefix("limit_").replace("_", "-"): v for k, v in resources.items() if k.startswith("limit_")}
    requests = {k.replace("_", "-"): v for k, v in resources.items() if not k.startswith("limit_")}
    return {"name": name, "resources": {"requests": requests, "limits": limits}}


def pod(*containers: dict[str, Any], phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": list(containers) or [container()], **spec},
        "status": {"phase": phase},
    }


def quota(name: str = "q", *, scopes: Any = (), expressions: Any = (), **hard: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"hard": {key.replace("__", "."): value for key, value in hard.items()}}
    if scopes:
        spec["scopes"] = list(scopes)
    if expressions:
        spec["scopeSelector"] = {"matchExpressions": list(expressions)}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def used(collection: str, obj: dict[str, Any]) -> dict[str, str]:
    return written(usage_of(collection, obj))


# --- usage ---


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod(), {"count/pods": "1", "pods": "1"}),
        (
            pod(container(cpu="500m", memory="1Gi", limit_cpu="1"), container("d", cpu="1", limit_cpu="2")),
            {
                "count/pods": "1",
                "pods": "1",
                "cpu": "1500m",
                "requests.cpu": "1500m",
                "memory": "1Gi",
                "requests.memory": "1Gi",
                "limits.cpu": "3",
            },
        ),
        (
            pod(container(limit_cpu="1")),
            {"count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1", "limits.cpu": "1"},
        ),
        (
            pod(container(**{"nvidia.com/gpu": "2"})),
            {"count/pods": "1", "pods": "1", "requests.nvidia.com/gpu": "2"},
        ),
        (
            pod(container(cpu="1"), initContainers=[container("i", cpu="3")]),
            {"count/pods": "1", "pods": "1", "cpu": "3", "requests.cpu": "3"},
        ),
        (
            pod(container(cpu="1"), initContainers=[{**container("s", cpu="1"), "restartPolicy": "Always"}]),
            {"count/pods": "1", "pods": "1", "cpu": "2", "requests.cpu": "2"},
        ),
        (
            pod(container(cpu="1"), overhead={"cpu": "250m"}),
            {"count/pods": "1", "pods": "1", "cpu": "1250m", "requests.cpu": "1250m"},
        ),
        (pod(container(cpu="1"), phase="Succeeded"), {"count/pods": "1"}),
        (pod(container(cpu="1"), phase="Failed"), {"count/pods": "1"}),
    ],
)
def test_usage_of_a_pod(obj: dict[str, Any], expected: dict[str, str]) -> None:
    assert used("/pods", obj) == expected


@pytest.mark.parametrize(
    ("collection", "obj", "expected"),
    [
        ("apps/deployments", {}, {"count/deployments.apps": "1"}),
        ("/configmaps", {}, {"count/configmaps": "1", "configmaps": "1"}),
        ("/secrets", {}, {"count/secrets": "1", "secrets": "1"}),
        ("/services", {}, {"count/services": "1", "services": "1"}),
        (
            "/services",
            {"spec": {"type": "NodePort", "ports": [{}, {}]}},
            {"count/services": "1", "services": "1", "services.nodeports": "2"},
        ),
        (
            "/services",
            {"spec": {"type": "LoadBalancer", "ports": [{"nodePort": 30000}, {}]}},
            {"count/services": "1", "services": "1", "services.loadbalancers": "1", "services.nodeports": "1"},
        ),
        (
            "/persistentvolumeclaims",
            {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}},
            {
                "count/persistentvolumeclaims": "1",
                "persistentvolumeclaims": "1",
                "requests.storage": "5Gi",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
            },
        ),
    ],
)
def test_usage_of_other_kinds(collection: str, obj: dict[str, Any], expected: dict[str, str]) -> None:
    assert used(collection, obj) == expected
    assert {collection_of(name) for name in expected} == {collection}


@pytest.mark.parametrize(
    ("name", "collection"),
    [
        ("pods", "/pods"),
        ("limits.cpu", "/pods"),
        ("requests.nvidia.com/gpu", "/pods"),
        ("count/paddlejobs.batch.paddlepaddle.org", "batch.paddlepaddle.org/paddlejobs"),
        ("requests.storage", "/persistentvolumeclaims"),
        ("requests.ephemeral-storage", "/pods"),
    ],
)
def test_every_name_belongs_to_a_collection(name: str, collection: str) -> None:
    assert collection_of(name) == collection


# --- scopes ---

KEEPS_OTHERS_AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
        ]
    }
}
AFFINE = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["other"]}]}}


@pytest.mark.parametrize(
    ("scope", "obj", "expected"),
    [
        ("Terminating", pod(activeDeadlineSeconds=0), True),
        ("Terminating", pod(), False),
        ("NotTerminating", pod(), True),
        ("BestEffort", pod(), True),
        ("BestEffort", pod(container(cpu="0")), True),
        ("BestEffort", pod(container(limit_memory="1Gi")), False),
        ("NotBestEffort", pod(container(cpu="1")), True),
        ("CrossNamespacePodAffinity", pod(affinity=AFFINE), True),
        ("CrossNamespacePodAffinity", pod(affinity=KEEPS_OTHERS_AWAY), True),
        ("CrossNamespacePodAffinity", pod(), False),
        ("Unheard", pod(), False),
    ],
)
def test_scopes_select_pods(scope: str, obj: dict[str, Any], expected: bool) -> None:
    assert applies(quota(scopes=[scope], pods=1), "/pods", obj) is expected


@pytest.mark.parametrize(
    ("operator", "values", "name", "expected"),
    [
        ("In", ["high"], "high", True),
        ("In", ["high"], "low", False),
        ("In", ["high"], "", False),
        ("NotIn", ["high"], "low", True),
        ("NotIn", ["high"], "", True),
        ("Exists", [], "low", True),
        ("Exists", [], "", False),
        ("DoesNotExist", [], "", True),
    ],
)
def test_priority_classes_select_pods(operator: str, values: list[str], name: str, expected: bool) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    assert applies(quota(expressions=[expression], pods=1), "/pods", pod(priorityClassName=name)) is expected


def test_a_scoped_quota_counts_nothing_but_pods() -> None:
    assert not applies(quota(scopes=["BestEffort"], services=1), "/services", {})


# --- admission ---


def refusal(*quotas: dict[str, Any], new: Any, old: Any = None, taken: Any = None, at: str = "/pods") -> str | None:
    try:
        check(quotas, at, new, old, used=lambda one: amounts(taken or {}))
    except errors.Forbidden as error:
        return error.message
    return None


@pytest.mark.parametrize(
    ("one", "new", "taken", "message"),
    [
        (quota(pods=2), pod(), {"pods": 1}, None),
        (
            quota("full", pods=2),
            pod(),
            {"pods": 2},
            'pods "p" is forbidden: exceeded quota: full, requested: pods=1, used: pods=2, limited: pods=2',
        ),
        (
            quota("compute", requests__cpu="1", requests__memory="1Gi", pods=9),
            pod(container(cpu="600m", memory="2Gi")),
            {"requests.cpu": "500m"},
            'pods "p" is forbidden: exceeded quota: compute, requested: requests.cpu=600m,requests.memory=2Gi, '
            "used: requests.cpu=500m,requests.memory=0, limited: requests.cpu=1,requests.memory=1Gi",
        ),
        (quota(pods=1, services=0), pod(), {}, None),
        (quota(scopes=["BestEffort"], pods=0), pod(container(cpu="1")), {}, None),
        (
            quota(scopes=["BestEffort"], pods=0),
            pod(),
            {},
            'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0',
        ),
        (
            quota(limits__cpu="4", memory="1Gi"),
            pod(container("a"), container("b", limit_cpu="1"), initContainers=[container("i", memory="1")]),
            {},
            'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: a,i; memory for: a,b',
        ),
    ],
)
def test_room_is_given_or_refused_in_the_words_of_kubernetes(
    one: dict[str, Any], new: dict[str, Any], taken: dict[str, Any], message: str | None
) -> None:
    assert refusal(one, new=new, taken=taken) == message


def test_other_kinds_are_named_with_their_group() -> None:
    message = refusal(
        quota("q", **{"count/deployments.apps": 1}),
        new={"metadata": {"name": "d"}},
        taken={"count/deployments.apps": 1},
        at="apps/deployments",
    )
    assert message is not None
    assert message.startswith(
        'deployments.apps "d" is forbidden: exceeded quota: q, requested: count/deployments.apps=1'
    )


def test_a_quota_without_room_for_them_refuses_pods_that_keep_those_of_others_away() -> None:
    none = quota("apart", scopes=["CrossNamespacePodAffinity"], pods=0)
    assert "exceeded quota: apart" in str(refusal(none, new=pod(affinity=KEEPS_OTHERS_AWAY)))
    assert refusal(none, new=pod()) is None


def test_only_growth_is_refused() -> None:
    """A namespace that is over its quota can still be cleaned up and edited."""
    full = quota(requests__cpu="1", pods=0)
    small, large = pod(container(cpu="1")), pod(container(cpu="2"))
    assert refusal(full, new=small, old=large, taken={"requests.cpu": 5, "pods": 5}) is None
    assert refusal(full, new=small, old=small, taken={"requests.cpu": 5, "pods": 5}) is None
    assert refusal(full, new=large, old=small, taken={"requests.cpu": 5, "pods": 5}) is not None
    ended = {**large, "status": {"phase": "Succeeded"}}
    assert refusal(full, new=ended, old=large, taken={"requests.cpu": 5, "pods": 5}) is None


def test_the_first_full_quota_refuses() -> None:
    message = refusal(quota("roomy", pods=9), quota("tight", pods=1), new=pod(), taken={"pods": 1})
    assert message is not None
    assert "exceeded quota: tight" in message


def test_status_shows_each_limit_with_its_use() -> None:
    one = quota(pods="10", requests__memory="2Gi")
    assert status_of(one, amounts({"pods": 3, "requests.memory": "512Mi", "unlimited": 1})) == {
        "hard": {"pods": "10", "requests.memory": "2Gi"},
        "used": {"pods": "3", "requests.memory": "512Mi"},
    }
