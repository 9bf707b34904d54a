"""OpenAPI: v3, what kubectl needs to validate, patch and explain; v2 for older clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.kube.resource import Object, Resource

from .world import Api, eventually


def document(api: Api, group_version: str) -> Object:
    """The document of one group version, by the address that the index gives."""
    paths = eventually(lambda: api.fetch("/openapi/v3")["paths"], lambda seen: group_version in seen)
    path, _, query = paths[group_version]["serverRelativeURL"].partition("?")
    found: Object = api.fetch(path, **dict(part.split("=", 1) for part in query.split("&") if part))
    return found


def schema_of(doc: Object, kind: str) -> Object:
    for schema in doc["components"]["schemas"].values():
        if any(gvk["kind"] == kind for gvk in schema.get("x-kubernetes-group-version-kind", ())):
            return dict(schema)
    raise AssertionError(f"no schema for {kind}")


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def resolve(doc: Object, node: Object) -> Object:
    """A property's own schema; references may be wrapped in allOf to carry a description."""
    for part in (node, *node.get("allOf", ())):
        if "$ref" in part:
            return dict(doc["components"]["schemas"][part["$ref"].rpartition("/")[2]])
    return node


def test_the_index_addresses_each_document_by_its_content(api: Api) -> None:
    paths = api.fetch("/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/batch/v1"} <= paths.keys()
    assert "hash=" in paths["api/v1"]["serverRelativeURL"]


@pytest.mark.parametrize("group_version", ["api/v1", "apis/apps/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1"])
def test_a_document_is_complete_in_itself(api: Api, group_version: str) -> None:
    doc = document(api, group_version)
    assert doc["openapi"].startswith("3.")
    dangling = {ref for ref in references(doc) if ref.rpartition("/")[2] not in doc["components"]["schemas"]}
    assert not dangling


def test_patch_operations_show_that_fields_can_be_validated(api: Api) -> None:
    """kubectl apply refuses to work without it."""
    patch = document(api, "api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in {parameter.get("name") for parameter in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}


def test_merge_keys_of_lists_are_published(api: Api) -> None:
    """Strategic merge in kubectl is computed from these."""
    doc = document(api, "api/v1")
    spec = resolve(doc, schema_of(doc, "Pod")["properties"]["spec"])
    containers = spec["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_the_old_form_answers_too(api: Api) -> None:
    """kubectl looks there before it says that a kind is unknown, and wants protobuf."""
    assert api.fetch("/openapi/v2")["swagger"] == "2.0"
    answer = api.send("GET", "/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert answer.body.startswith(b"\x0a\x032.0")


def test_a_custom_kind_is_published_with_its_descriptions(api: Api, widgets: Resource) -> None:
    doc = document(api, f"apis/{widgets.group}/v1")
    widget = schema_of(doc, "Widget")["properties"]
    assert widget["apiVersion"]["description"].startswith("APIVersion defines")
    assert widget["metadata"]["description"].startswith("Standard object's metadata")
    spec = widget["spec"]
    assert spec["properties"]["size"]["description"] == "How large."
    assert spec["properties"]["size"]["default"] == 3
    assert spec["properties"]["parts"]["x-kubernetes-list-map-keys"] == ["name"]


def test_the_old_form_is_complete_in_itself(api: Api) -> None:
    doc = api.fetch("/openapi/v2")
    named = {*doc["definitions"], *doc.get("parameters", ())}
    dangling = {ref for ref in references(doc) if ref.rpartition("/")[2] not in named}
    assert not dangling
    patch = doc["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}
    assert doc["definitions"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["type"] == "string"
    pod = doc["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]
    assert pod["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"
    assert pod["spec"]["description"]


def test_the_old_form_has_custom_kinds_without_what_it_cannot_say(api: Api, widgets: Resource) -> None:
    name = ".".join([*reversed(widgets.group.split(".")), "v1", "Widget"])
    found = eventually(lambda: api.fetch("/openapi/v2")["definitions"], lambda kinds: name in kinds)[name]
    spec = found["properties"]["spec"]["properties"]
    assert (spec["size"]["description"], spec["size"]["type"]) == ("How large.", "integer")
    assert spec["free"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert f"/apis/{widgets.group}/v1/namespaces/{{namespace}}/widgets/{{name}}" in api.fetch("/openapi/v2")["paths"]
