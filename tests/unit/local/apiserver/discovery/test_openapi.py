"""OpenAPI v3: what kubectl looks for before it applies, patches and explains."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import Resource
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.crd import install
from paddlecloud.local.apiserver.discovery import openapi
from paddlecloud.local.apiserver.registry import KindInfo, Registry

JOB_SCHEMA = {
    "type": "object",
    "description": "Trains a model.",
    "properties": {
        "spec": {"type": "object", "description": "What to train.", "properties": {"n": {"type": "integer"}}}
    },
}


def crd(schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "jobs.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "jobs", "kind": "Job"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema or JOB_SCHEMA},
                }
            ],
        },
    }


@pytest.fixture
def registry() -> Registry:
    return Registry([*builtin_kinds(), *install.kinds_of(crd())])


def documents(registry: Registry) -> dict[str, dict[str, Any]]:
    found = {}
    for group, versions in registry.group_versions().items():
        for version in versions:
            found[f"{group}/{version}"] = openapi.document(registry, group, version)
    return found


def test_the_index_names_a_document_for_every_group_and_version(registry: Registry) -> None:
    paths = openapi.index(registry)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/example.org/v1"} <= set(paths)
    for place, entry in paths.items():
        address, _, mark = entry["serverRelativeURL"].partition("?hash=")
        assert address == f"/openapi/v3/{place}"
        assert mark


def test_every_reference_in_every_document_leads_somewhere(registry: Registry) -> None:
    for place, document in documents(registry).items():
        text = json.dumps(document)
        names = {part.split('"', 1)[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}
        assert names <= set(document["components"]["schemas"]), place
        assert "x-paddlecloud" not in text


def test_each_patch_of_a_kind_takes_field_validation(registry: Registry) -> None:
    # kubectl takes the first PATCH with the kind, in no particular order: every one of them must do.
    for info in registry:
        if "patch" not in info.verbs:
            continue
        document = openapi.document(registry, info.resource.group, info.resource.version)
        gvk = {"group": info.resource.group, "version": info.resource.version, "kind": info.kind}
        patches = [
            item["patch"]
            for item in document["paths"].values()
            if "patch" in item and item["patch"]["x-kubernetes-group-version-kind"] == gvk
        ]
        assert patches, info.kind
        for patch in patches:
            assert {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}} in patch["parameters"]
            strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
            assert strategic == (not info.custom), info.kind


def test_explain_finds_kind_and_field_of_built_in_and_custom_kinds(registry: Registry) -> None:
    def explain(group: str, version: str, resource: str) -> dict[str, Any]:
        # the way of kubectl's template: a path gives the kind, the kind gives the schema
        document = openapi.document(registry, group, version)
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        gvk = document["paths"][f"{prefix}/namespaces/{{namespace}}/{resource}"]["get"][
            "x-kubernetes-group-version-kind"
        ]
        for schema in document["components"]["schemas"].values():
            if gvk in schema.get("x-kubernetes-group-version-kind", []):
                found: dict[str, Any] = schema
                return found
        raise AssertionError(f"{gvk} has no schema")

    pod = explain("", "v1", "pods")
    assert "Containers" in pod["description"]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    job = explain("example.org", "v1", "jobs")
    assert job["description"] == "Trains a model."
    assert job["properties"]["spec"]["description"] == "What to train."
    assert job["properties"]["metadata"]["allOf"][0]["$ref"].endswith("meta.v1.ObjectMeta")


def test_a_kind_that_is_only_answered_is_documented_by_its_name(registry: Registry) -> None:
    metrics = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
    registry.add(KindInfo(metrics, singular="", verbs=("get", "list")))
    schemas = openapi.document(registry, "metrics.k8s.io", "v1beta1")["components"]["schemas"]
    assert {name.rpartition(".")[2] for name in schemas} >= {"PodMetrics", "PodMetricsList"}


def test_only_what_is_served_is_documented(registry: Registry) -> None:
    core = openapi.document(registry, "", "v1")["paths"]
    assert set(core["/api/v1/namespaces/{namespace}/bindings"]) == {"parameters", "post"}
    assert "/api/v1/namespaces/{namespace}/bindings/{name}" not in core
    assert "delete" not in core["/api/v1/namespaces"]
    assert "get" in core["/api/v1/pods"]
    apps = openapi.document(registry, "apps", "v1")["paths"]
    scale = apps["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["patch"]
    assert scale["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_documents_are_kept_until_their_kinds_change(registry: Registry) -> None:
    published = openapi.OpenApi(registry)
    before = published.body("/openapi/v3")
    core, custom = published.body("/openapi/v3/api/v1"), published.body("/openapi/v3/apis/example.org/v1")
    assert published.body("/openapi/v3/api/v1") is core
    changed = crd({"type": "object", "properties": {"spec": {"type": "object"}}})
    registry.add(install.kinds_of(changed)[0])
    assert published.body("/openapi/v3") != before
    assert published.body("/openapi/v3/apis/example.org/v1") != custom
    assert published.body("/openapi/v3/api/v1") is core
    marks = [json.loads(body)["paths"] for body in (before, published.body("/openapi/v3"))]
    assert marks[0]["api/v1"] == marks[1]["api/v1"]
    assert marks[0]["apis/example.org/v1"] != marks[1]["apis/example.org/v1"]


def test_a_removed_kind_has_no_document(registry: Registry) -> None:
    published = openapi.OpenApi(registry)
    published.body("/openapi/v3/apis/example.org/v1")
    registry.remove("example.org", "v1", "jobs")
    assert "apis/example.org/v1" not in json.loads(published.body("/openapi/v3"))["paths"]
    with pytest.raises(NotFound):
        published.body("/openapi/v3/apis/example.org/v1")


@pytest.mark.parametrize(
    "path", ["/openapi/v3/nonsense", "/openapi/v3/api/v2", "/openapi/v3/apis/apps", "/openapi/v3/a/b/c/d"]
)
def test_an_unknown_document_is_not_found(registry: Registry, path: str) -> None:
    with pytest.raises(NotFound):
        openapi.OpenApi(registry).body(path)
