"""Discovery: both forms give the same answer, and people's names for kinds find what they mean."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.discovery import Discovery, UnknownKind
from paddlecloud.kube.errors import ServiceUnavailable
from paddlecloud.kube.resource import NODES, PADDLEJOBS, PODS, Resource
from paddlecloud.kube.transport import JSON, Response

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
KNATIVE_SERVICES = Resource("serving.knative.dev", "v1", "services", "Service")
SERVICES = Resource("", "v1", "services", "Service")

# group → versions (preferred first) → (resource, short names, categories, subresources)
SERVED: dict[str, dict[str, list[tuple[Resource, list[str], list[str], list[str]]]]] = {
    "": {
        "v1": [
            (PODS, ["po"], ["all"], ["status", "log"]),
            (NODES, ["no"], [], []),
            (SERVICES, ["svc"], ["all"], []),
            (Resource("", "v1", "events", "Event"), ["ev"], [], []),
        ]
    },
    "apps": {"v1": [(DEPLOYMENTS, ["deploy"], ["all"], ["scale"])]},
    "events.k8s.io": {"v1": [(Resource("events.k8s.io", "v1", "events", "Event"), ["ev"], [], [])]},
    "batch.paddlepaddle.org": {
        "v1": [(PADDLEJOBS, ["pdj"], [], ["status", "scale"])],
        "v1alpha1": [(PADDLEJOBS._replace(version="v1alpha1"), ["pdj"], [], [])],
    },
    "serving.knative.dev": {"v1": [(KNATIVE_SERVICES, ["ksvc"], [], [])]},
}


class Server:
    """Discovery documents in both forms, as bytes."""

    def __init__(self, *, aggregated: bool, broken: str = "") -> None:
        self.aggregated = aggregated
        self.broken = broken
        self.paths: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response:
        self.paths.append(path)
        if self.broken and path.startswith(self.broken):
            error = ServiceUnavailable("the server is currently unable to handle the request")
            return Response(503, json.dumps(error.status()).encode())
        return Response(200, json.dumps(self._document(path, accept)).encode())

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON) -> AsyncIterator[bytes]:
        raise AssertionError("discovery does not stream")

    async def close(self) -> None:
        """Nothing is open."""

    def _document(self, path: str, accept: str) -> dict[str, Any]:
        groups = {g: v for g, v in SERVED.items() if (g == "") == path.startswith("/api/") or path in ("/api", "/apis")}
        if path in ("/api", "/apis"):
            groups = {g: v for g, v in SERVED.items() if (g == "") == (path == "/api")}
            if self.aggregated and "as=APIGroupDiscoveryList" in accept:
                return {"kind": "APIGroupDiscoveryList", "items": [_aggregated(g, v) for g, v in groups.items()]}
            if path == "/api":
                return {"kind": "APIVersions", "versions": ["v1"]}
            return {"kind": "APIGroupList", "groups": [_group(g, v) for g, v in groups.items()]}
        parts = path.strip("/").split("/")
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        return {"kind": "APIResourceList", "resources": list(_flat(SERVED[group][version]))}


def _aggregated(group: str, versions: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": group} if group else {},
        "versions": [
            {
                "version": version,
                "resources": [
                    {
                        "resource": r.plural,
                        "responseKind": {"group": group, "version": version, "kind": r.kind},
                        "scope": "Namespaced" if r.namespaced else "Cluster",
                        "singularResource": r.kind.lower(),
                        "shortNames": short,
                        "categories": categories,
                        "verbs": ["get", "list"],
                        "subresources": [{"subresource": s} for s in subresources],
                    }
                    for r, short, categories, subresources in items
                ],
            }
            for version, items in versions.items()
        ],
    }


def _group(group: str, versions: Any) -> dict[str, Any]:
    known = [{"groupVersion": f"{group}/{v}", "version": v} for v in reversed(list(versions))]
    return {"name": group, "versions": known, "preferredVersion": known[-1]}


def _flat(items: Any) -> Any:
    for r, short, categories, subresources in items:
        yield {
            "name": r.plural,
            "singularName": r.kind.lower(),
            "namespaced": r.namespaced,
            "kind": r.kind,
            "verbs": ["get", "list"],
            "shortNames": short,
            "categories": categories,
        }
        for subresource in subresources:
            yield {"name": f"{r.plural}/{subresource}", "kind": r.kind, "namespaced": r.namespaced, "verbs": ["get"]}


@pytest.fixture(params=[True, False], ids=["aggregated", "legacy"])
async def discovery(request: pytest.FixtureRequest) -> Discovery:
    return await Client(Server(aggregated=request.param)).discover()


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("pdj", PADDLEJOBS),
        ("paddlejobs", PADDLEJOBS),
        ("paddlejob", PADDLEJOBS),
        ("PaddleJob", PADDLEJOBS),
        ("paddlejobs.batch.paddlepaddle.org", PADDLEJOBS),
        ("pdj.v1alpha1.batch.paddlepaddle.org", PADDLEJOBS._replace(version="v1alpha1")),
        ("deploy", DEPLOYMENTS),
        ("po", PODS),
        ("no", NODES),
        ("services", SERVICES),
        ("service.serving.knative.dev", KNATIVE_SERVICES),
        ("ksvc", KNATIVE_SERVICES),
        ("ev", Resource("", "v1", "events", "Event")),
    ],
)
async def test_a_name_finds_its_kind(discovery: Discovery, name: str, resource: Resource) -> None:
    assert discovery.find(name) == resource


async def test_what_else_discovery_knows(discovery: Discovery) -> None:
    entry = discovery.entry("pods")
    assert entry.subresources == ("status", "log")
    assert entry.verbs == ("get", "list")
    assert [entry.resource for entry in discovery.entries if "all" in entry.categories] == [PODS, SERVICES, DEPLOYMENTS]
    assert discovery.for_kind("apps/v1", "Deployment") == DEPLOYMENTS
    with pytest.raises(UnknownKind, match=r'kind "Deployment" in version "apps/v2"; did you mean apiVersion "apps/v1"'):
        discovery.for_kind("apps/v2", "Deployment")


async def test_an_unknown_name_is_refused_with_the_nearest_known(discovery: Discovery) -> None:
    with pytest.raises(UnknownKind, match='no resource type "paddlejbos"; did you mean "paddlejobs"'):
        discovery.find("paddlejbos")
    with pytest.raises(UnknownKind, match="api-resources"):
        discovery.find("zzzzzz")


async def test_aggregated_discovery_costs_two_requests_and_a_broken_group_hides_nothing() -> None:
    server = Server(aggregated=True)
    await Client(server).discover()
    assert server.paths == ["/api", "/apis"]
    partly = await Client(Server(aggregated=False, broken="/apis/apps/")).discover()
    assert partly.find("pdj") == PADDLEJOBS
    with pytest.raises(UnknownKind):
        partly.find("deploy")
