"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SERVICES, Resource

from .world import DEPLOYMENTS, ScratchNamespace, sleeping_pod


def deployment_spec(*containers: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    return {"replicas": 0, "paused": True, "selector": {"matchLabels": labels}, "template": template}


# JSON patch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/new", "value": "n"}], {"a": "1", "b": "2", "new": "n"}),
        ([{"op": "remove", "path": "/data/a"}], {"b": "2"}),
        ([{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}),
        (
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "3"}],
            {"a": "3", "b": "2"},
        ),
        ([{"op": "add", "path": "/data/x~1y.z", "value": "v"}], None),
    ],
)
def test_json_patch_operations(here: ScratchNamespace, operations: list[Any], data: dict[str, str] | None) -> None:
    here.make(CONFIGMAPS, "c", data={"a": "1", "b": "2"})
    if data is None:  # the pointer is understood, the key it names is not allowed
        with pytest.raises(errors.Invalid, match="x/y.z"):
            here.patch(CONFIGMAPS, "c", operations, kind="json")
        return
    assert here.patch(CONFIGMAPS, "c", operations, kind="json")["data"] == data


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/data/a", "value": "2"}, {"op": "remove", "path": "/data/a"}], 422),
        ([{"op": "remove", "path": "/data/missing"}], 422),
        ([{"op": "replace", "path": "/data/missing/deeper", "value": 1}], 422),
        ([{"op": "dance", "path": "/data/a"}], None),
        ({"op": "add"}, 400),
    ],
)
def test_a_json_patch_that_does_not_fit_changes_nothing(
    here: ScratchNamespace, operations: Any, code: int | None
) -> None:
    here.make(CONFIGMAPS, "c", data={"a": "1"})
    with pytest.raises(errors.ApiError) as refused:
        here.patch(CONFIGMAPS, "c", operations, kind="json")
    assert refused.value.code in ((code,) if code else (400, 422))
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1"}


def test_json_patch_counts_list_positions(here: ScratchNamespace) -> None:
    here.make(DEPLOYMENTS, "d", spec=deployment_spec({"name": "a", "image": "i"}, {"name": "b", "image": "i"}))
    path = "/spec/template/spec/containers"
    patched = here.patch(
        DEPLOYMENTS,
        "d",
        [
            {"op": "replace", "path": f"{path}/1/image", "value": "j"},
            {"op": "add", "path": f"{path}/-", "value": {"name": "c", "image": "k"}},
        ],
        kind="json",
    )
    assert [c["image"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["i", "j", "k"]


# Merge patch ---------------------------------------------------------------------------------------------------------


def test_merge_patch_merges_maps_and_deletes_by_null(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", data={"a": "1", "b": "2"}, labels={"x": "y"})
    patched = here.patch(CONFIGMAPS, "c", {"data": {"a": None, "c": "3"}, "metadata": {"labels": None}})
    assert patched["data"] == {"b": "2", "c": "3"}
    assert "labels" not in patched["metadata"]


def test_merge_patch_replaces_lists(here: ScratchNamespace) -> None:
    here.make(DEPLOYMENTS, "d", spec=deployment_spec({"name": "a", "image": "i"}, {"name": "b", "image": "i"}))
    patched = here.patch(
        DEPLOYMENTS, "d", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "k"}]}}}}
    )
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["c"]


def test_a_patch_may_carry_a_version_to_be_sure(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    version = made["metadata"]["resourceVersion"]
    here.patch(CONFIGMAPS, "c", {"metadata": {"resourceVersion": version}, "data": {"a": "2"}})
    with pytest.raises(errors.Conflict):
        here.patch(CONFIGMAPS, "c", {"metadata": {"resourceVersion": version}, "data": {"a": "3"}})


def test_an_empty_patch_changes_nothing(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    assert here.patch(CONFIGMAPS, "c", {}) == made


# Strategic merge patch -----------------------------------------------------------------------------------------------


def test_strategic_patch_merges_lists_by_their_key(here: ScratchNamespace) -> None:
    here.make(DEPLOYMENTS, "d", spec=deployment_spec({"name": "a", "image": "i"}, {"name": "b", "image": "i"}))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "j"}]}}}}
    patched = here.patch(DEPLOYMENTS, "d", patch, kind="strategic")
    assert {c["name"]: c["image"] for c in patched["spec"]["template"]["spec"]["containers"]} == {"a": "i", "b": "j"}


def test_strategic_patch_deletes_from_lists_by_directive(here: ScratchNamespace) -> None:
    here.make(DEPLOYMENTS, "d", spec=deployment_spec({"name": "a", "image": "i"}, {"name": "b", "image": "i"}))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}}
    patched = here.patch(DEPLOYMENTS, "d", patch, kind="strategic")
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["b"]


def test_strategic_patch_replaces_by_directive(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", data={"a": "1", "b": "2"})
    patched = here.patch(CONFIGMAPS, "c", {"data": {"$patch": "replace", "c": "3"}}, kind="strategic")
    assert patched["data"] == {"c": "3"}


def test_strategic_patch_orders_and_deletes_primitives(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", finalizers=["example.org/a", "example.org/b"])
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.org/a"]}}
    patched = here.patch(CONFIGMAPS, "c", patch, kind="strategic")
    assert patched["metadata"]["finalizers"] == ["example.org/b"]
    here.patch(CONFIGMAPS, "c", {"metadata": {"finalizers": None}})


def test_strategic_patch_merges_ports_of_services(here: ScratchNamespace) -> None:
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
    here.make(SERVICES, "s", spec={"ports": ports})
    patched = here.patch(SERVICES, "s", {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, kind="strategic")
    assert {p["name"]: p["targetPort"] for p in patched["spec"]["ports"]} == {"http": 8080, "https": 443}


def test_custom_kinds_know_no_strategic_patch(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w")
    with pytest.raises(errors.UnsupportedMediaType):
        here.patch(widgets, "w", {"spec": {"size": 2}}, kind="strategic")


# All of them ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["merge", "json", "strategic"])
def test_what_is_missing_cannot_be_patched(here: ScratchNamespace, kind: Any) -> None:
    with pytest.raises(errors.NotFound, match='configmaps "nobody" not found'):
        here.patch(CONFIGMAPS, "nobody", [] if kind == "json" else {}, kind=kind)


def test_a_patch_is_validated_like_an_update(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("p"))
    with pytest.raises(errors.Invalid, match="metadata.labels"):
        here.patch(PODS, "p", {"metadata": {"labels": {"a": "not a label value!"}}})


def test_names_and_kinds_cannot_be_patched(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    for patch in ({"metadata": {"name": "d"}}, {"kind": "Secret"}):
        with pytest.raises(errors.ApiError) as refused:
            here.patch(CONFIGMAPS, "c", patch)
        assert refused.value.code in (400, 422)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/xml"])
def test_an_unknown_patch_type_is_refused(here: ScratchNamespace, content_type: str) -> None:
    here.make(CONFIGMAPS, "c")
    status = here.api.refuse("PATCH", here.path(CONFIGMAPS, "c"), {}, content_type=content_type)
    assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", "application/json-patch+json"])
def test_a_broken_patch_is_refused(here: ScratchNamespace, content_type: str) -> None:
    here.make(CONFIGMAPS, "c")
    status = here.api.refuse("PATCH", here.path(CONFIGMAPS, "c"), b"{nonsense", content_type=content_type)
    assert (status["code"], status["reason"]) == (400, "BadRequest")
