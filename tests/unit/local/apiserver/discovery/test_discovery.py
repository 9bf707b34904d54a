"""Discovery documents: what kubectl and client libraries read before anything else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from paddlecloud.kube.resource import NODES, PODS, Resource
from paddlecloud.local.apiserver.discovery.groups import Discovery, negotiate, version_priority
from paddlecloud.local.apiserver.registry import KindInfo, Registry

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
KUBECTL = f"{V2},{V2BETA1},application/json"
WIDGET_V1 = KindInfo(Resource("example.com", "v1", "widgets", "Widget"), "widget", custom=True)
WIDGET_V2ALPHA1 = KindInfo(Resource("example.com", "v2alpha1", "widgets", "Widget"), "widget", custom=True)


@pytest.fixture
def registry() -> Registry:
    return Registry(
        [
            KindInfo(
                PODS,
                "pod",
                short_names=("po",),
                categories=("all",),
                subresources=frozenset(("status", "log", "exec", "eviction")),
            ),
            KindInfo(NODES, "node", short_names=("no",)),
            KindInfo(
                Resource("apps", "v1", "deployments", "Deployment"),
                "deployment",
                subresources=frozenset(("status", "scale")),
            ),
            KindInfo(
                Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
                "selfsubjectaccessreview",
                verbs=("create",),
            ),
            WIDGET_V2ALPHA1,
            WIDGET_V1,
        ]
    )


def get(registry: Registry, path: str, accept: str = "application/json") -> Any:
    document = Discovery(registry, server_address="127.0.0.1:6443").find(path, accept)
    return None if document is None else json.loads(document.body)


def test_core_versions(registry: Registry) -> None:
    document = get(registry, "/api")
    assert document["kind"] == "APIVersions"
    assert document["versions"] == ["v1"]
    assert document["serverAddressByClientCIDRs"][0]["serverAddress"] == "127.0.0.1:6443"


def test_groups_prefer_the_most_stable_version(registry: Registry) -> None:
    groups = {group["name"]: group for group in get(registry, "/apis")["groups"]}
    assert set(groups) == {"apps", "authorization.k8s.io", "example.com"}
    assert [v["groupVersion"] for v in groups["example.com"]["versions"]] == ["example.com/v1", "example.com/v2alpha1"]
    assert groups["example.com"]["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}


def test_one_group(registry: Registry) -> None:
    document = get(registry, "/apis/example.com")
    assert (document["kind"], document["apiVersion"], document["name"]) == ("APIGroup", "v1", "example.com")


def test_resources_of_a_version_with_subresources(registry: Registry) -> None:
    document = get(registry, "/api/v1")
    assert document["groupVersion"] == "v1"
    by_name = {resource["name"]: resource for resource in document["resources"]}
    assert list(by_name) == ["nodes", "pods", "pods/eviction", "pods/exec", "pods/log", "pods/status"]
    assert by_name["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert by_name["nodes"]["namespaced"] is False
    assert "categories" not in by_name["nodes"]
    assert by_name["pods/status"]["verbs"] == ["get", "patch", "update"]
    assert by_name["pods/eviction"]["group"] == "policy"
    assert by_name["pods/eviction"]["kind"] == "Eviction"
    assert "group" not in by_name["pods/log"]


def test_scale_is_a_kind_of_autoscaling(registry: Registry) -> None:
    scale = get(registry, "/apis/apps/v1")["resources"][1]
    assert (scale["name"], scale["group"], scale["version"], scale["kind"]) == (
        "deployments/scale",
        "autoscaling",
        "v1",
        "Scale",
    )


@pytest.mark.parametrize(
    "path", ["/api/v2", "/apis/apps/v9", "/apis/nope", "/apis//v1", "/apis/a/b/c", "/other", "", "/"]
)
def test_what_is_not_served_is_not_found(registry: Registry, path: str) -> None:
    assert get(registry, path) is None


@pytest.mark.parametrize("path", ["/api/", "/apis/", "/api/v1/", "/apis/apps/"])
def test_a_trailing_slash_changes_nothing(registry: Registry, path: str) -> None:
    assert get(registry, path) == get(registry, path.rstrip("/"))


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_groups(registry: Registry, version: str) -> None:
    accept = V2.replace("v=v2", f"v={version}")
    document = get(registry, "/apis", accept)
    assert document["kind"] == "APIGroupDiscoveryList"
    assert document["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert [item["metadata"]["name"] for item in document["items"]] == ["apps", "authorization.k8s.io", "example.com"]
    apps = document["items"][0]["versions"][0]
    assert (apps["version"], apps["freshness"]) == ("v1", "Current")
    deployments = apps["resources"][0]
    assert deployments["responseKind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert deployments["scope"] == "Namespaced"
    assert deployments["singularResource"] == "deployment"
    scale, status = deployments["subresources"]
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert status["responseKind"]["kind"] == "Deployment"
    assert [v["version"] for v in document["items"][2]["versions"]] == ["v1", "v2alpha1"]


def test_the_aggregated_core_group_has_no_name(registry: Registry) -> None:
    document = get(registry, "/api", V2)
    assert [item["metadata"]["name"] for item in document["items"]] == [""]
    nodes, pods = document["items"][0]["versions"][0]["resources"]
    assert nodes["scope"] == "Cluster"
    assert pods["shortNames"] == ["po"]
    assert "subresources" not in nodes


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (KUBECTL, "v2"),
        (f"{V2BETA1},{V2}", "v2beta1"),
        ("application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "v2"),
        (V2.replace(";", "; "), "v2"),
        (V2.replace("v=v2", "v=v9") + ",application/json", None),
        (f"application/json,{V2}", None),
        (V2.replace("json", "vnd.kubernetes.protobuf") + ",application/json", None),
        ("application/json", None),
        ("*/*", None),
        ("", None),
    ],
)
def test_accept_decides_the_form(accept: str, expected: str | None) -> None:
    assert negotiate(accept) == expected


def test_the_answer_names_its_form(registry: Registry) -> None:
    discovery = Discovery(registry)
    aggregated, legacy = discovery.find("/apis", KUBECTL), discovery.find("/apis")
    assert aggregated is not None
    assert legacy is not None
    assert aggregated.content_type == V2
    assert legacy.content_type == "application/json"


def test_documents_are_made_once_per_generation(registry: Registry) -> None:
    discovery = Discovery(registry)
    first = discovery.find("/apis", V2)
    assert discovery.find("/apis", V2) is first
    registry.remove("example.com", "v1", "widgets")
    second = discovery.find("/apis", V2)
    assert first is not None
    assert second is not None
    assert second.etag != first.etag
    registry.add(WIDGET_V1)
    third = discovery.find("/apis", V2)
    assert third is not None
    assert third.etag == first.etag


def test_unknown_paths_do_not_fill_the_cache(registry: Registry) -> None:
    discovery = Discovery(registry)
    for index in range(100):
        assert discovery.find(f"/apis/group{index}") is None
    assert len(discovery._documents) == 0


def test_versions_sort_by_stability_then_number() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled, key=version_priority) == ordered
