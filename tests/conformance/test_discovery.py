"""Discovery: what is served, in the aggregated form that clients ask for first and in the legacy one."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.resource import Object, Resource

from .world import Api, ScratchNamespace, eventually

AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


def by_name(items: list[Object], key: str = "name") -> dict[str, Object]:
    return {item[key]: item for item in items}


def test_the_core_group_names_its_version(api: Api) -> None:
    assert api.fetch("/api")["versions"] == ["v1"]


def test_groups_name_their_versions_and_the_preferred_one(api: Api) -> None:
    groups = by_name(api.fetch("/apis")["groups"])
    assert {"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io"} <= groups.keys()
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["apps"]["versions"] == [{"groupVersion": "apps/v1", "version": "v1"}]


def test_one_group_can_be_asked_for(api: Api) -> None:
    group = api.fetch("/apis/apps")
    assert (group["kind"], group["name"]) == ("APIGroup", "apps")


def test_resources_of_a_group_show_verbs_scope_and_short_names(api: Api) -> None:
    document = api.fetch("/api/v1")
    resources = by_name(document["resources"])
    assert (document["kind"], document["groupVersion"]) == ("APIResourceList", "v1")
    assert resources["pods"]["namespaced"] is True
    assert resources["pods"]["kind"] == "Pod"
    assert resources["pods"]["singularName"] == "pod"
    assert resources["pods"]["shortNames"] == ["po"]
    assert resources["pods"]["categories"] == ["all"]
    assert set(resources["pods"]["verbs"]) == VERBS
    assert resources["namespaces"]["namespaced"] is False
    assert "deletecollection" not in resources["namespaces"]["verbs"]


def test_subresources_are_listed_with_their_own_kind(api: Api) -> None:
    core, apps = by_name(api.fetch("/api/v1")["resources"]), by_name(api.fetch("/apis/apps/v1")["resources"])
    assert set(core["pods/status"]["verbs"]) == {"get", "patch", "update"}
    assert core["pods/eviction"]["kind"] == "Eviction"
    assert core["serviceaccounts/token"]["group"] == "authentication.k8s.io"
    scale = apps["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_the_aggregated_document_says_the_same_in_one_answer(api: Api) -> None:
    response = api.send("GET", "/apis", accept=AGGREGATED)
    assert response.headers["content-type"].startswith("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroup")
    document = api.fetch("/apis", accept=AGGREGATED)
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    groups = {group["metadata"]["name"]: group for group in document["items"]}
    apps = by_name(groups["apps"]["versions"], "version")["v1"]
    assert apps["freshness"] == "Current"
    deployments = by_name(apps["resources"], "resource")["deployments"]
    assert deployments["responseKind"]["kind"] == "Deployment"
    assert deployments["scope"] == "Namespaced"
    assert set(deployments["verbs"]) == VERBS
    subresources = by_name(deployments["subresources"], "subresource")
    assert subresources["scale"]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_the_aggregated_core_document_has_one_nameless_group(api: Api) -> None:
    document = api.fetch("/api", accept=AGGREGATED)
    (core,) = document["items"]
    assert core["metadata"].get("name", "") == ""
    assert "pods" in by_name(core["versions"][0]["resources"], "resource")


def test_clients_that_list_several_forms_get_the_first_that_is_served(api: Api) -> None:
    wanted = f"{AGGREGATED},application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json"
    assert api.fetch("/apis", accept=wanted)["kind"] == "APIGroupDiscoveryList"
    assert api.fetch("/apis")["kind"] == "APIGroupList"


def test_discovery_is_revalidated_by_etag(api: Api) -> None:
    """kubectl and client-go keep aggregated discovery on disk and ask only whether it changed."""
    first = api.send("GET", "/apis", accept=AGGREGATED).headers
    etag = first["etag"]
    assert first["vary"] == "Accept"
    with api.connect() as connection:
        connection.request("GET", "/apis", headers=api.headers(**{"If-None-Match": etag, "Accept": AGGREGATED}))
        answer = connection.getresponse()
        assert answer.status == 304
        assert answer.read() == b""
        assert answer.headers["Content-Type"] in (None, first["content-type"])


def test_custom_kinds_appear_with_their_names_and_subresources(api: Api, widgets: Resource, group: str) -> None:
    def resources() -> dict[str, Any]:
        return by_name(api.fetch(f"/apis/{group}/v1")["resources"])

    found = eventually(resources, lambda seen: "widgets" in seen)
    assert found["widgets"]["shortNames"] == ["wid"]
    assert found["widgets/status"]["kind"] == "Widget"
    assert found["widgets/scale"]["kind"] == "Scale"
    assert group in by_name(api.fetch("/apis")["groups"])


def test_the_projects_client_finds_kinds_by_any_of_their_names(here: ScratchNamespace, widgets: Resource) -> None:
    from paddlecloud.kube.stdlib import drive

    discovery = drive(here.api.client.discover())
    for name in ("widgets", "widget", "wid", f"widgets.{widgets.group}", "Widget"):
        assert discovery.find(name) == widgets
    assert discovery.for_kind("apps/v1", "Deployment").plural == "deployments"


def test_version_and_health_answer(api: Api) -> None:
    assert api.fetch("/version")["major"] == "1"
    for path in ("/healthz", "/livez", "/readyz"):
        assert api.send("GET", path).body == b"ok"


def test_an_unknown_group_version_is_not_found(api: Api) -> None:
    assert api.send("GET", "/apis/nothing.example.org/v1").status == 404
    assert api.send("GET", "/apis/apps/v9").status == 404
