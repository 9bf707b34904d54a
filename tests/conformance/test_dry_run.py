"""Dry run: every verb answers as if it had happened, and nothing has."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, SERVICES, Resource

from .world import ScratchNamespace, a, sleeping_pod


def test_create(here: ScratchNamespace) -> None:
    shown = here.create(CONFIGMAPS, a(CONFIGMAPS, "c", data={"a": "1"}), dry_run=True)
    assert shown["data"] == {"a": "1"}
    assert shown["metadata"]["uid"]
    assert not here.exists(CONFIGMAPS, "c")


def test_create_of_what_is_there_is_refused(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    with pytest.raises(errors.AlreadyExists):
        here.create(CONFIGMAPS, a(CONFIGMAPS, "c"), dry_run=True)


def test_create_with_generated_name(here: ScratchNamespace) -> None:
    shown = here.create(CONFIGMAPS, a(CONFIGMAPS, "", generateName="x-"), dry_run=True)
    assert shown["metadata"]["name"].startswith("x-")
    assert here.names(CONFIGMAPS) == []


def test_update(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    shown = here.update(CONFIGMAPS, {**made, "data": {"a": "2"}}, dry_run=True)
    assert shown["data"] == {"a": "2"}
    assert here.get(CONFIGMAPS, "c") == made


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", {"data": {"a": "2"}}),
        ("strategic", {"data": {"a": "2"}}),
        ("json", [{"op": "replace", "path": "/data/a", "value": "2"}]),
    ],
)
def test_patch(here: ScratchNamespace, kind: Any, patch: Any) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    assert here.patch(CONFIGMAPS, "c", patch, kind=kind, dry_run=True)["data"] == {"a": "2"}
    assert here.get(CONFIGMAPS, "c") == made


def test_apply_of_something_new_and_of_something_old(here: ScratchNamespace) -> None:
    assert here.apply(CONFIGMAPS, "c", by="one", dry_run=True, data={"a": "1"})["data"] == {"a": "1"}
    assert not here.exists(CONFIGMAPS, "c")
    made = here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    assert here.apply(CONFIGMAPS, "c", by="one", dry_run=True, data={"a": "2"})["data"] == {"a": "2"}
    assert here.get(CONFIGMAPS, "c") == made


def test_status(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w")
    shown = here.patch(widgets, "w", {"status": {"phase": "Up"}}, subresource="status", dry_run=True)
    assert shown["status"] == {"phase": "Up"}
    assert here.get(widgets, "w") == made


def test_scale(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={"replicas": 1})
    shown = here.patch(widgets, "w", {"spec": {"replicas": 5}}, subresource="scale", dry_run=True)
    assert shown["spec"]["replicas"] == 5
    assert here.get(widgets, "w") == made


@pytest.mark.parametrize("resource", [PODS, SERVICES])
def test_a_request_to_a_pod_cannot_be_tried(here: ScratchNamespace, resource: Resource) -> None:
    answer = here.api.send("POST", f"{here.path(resource, 'absent')}/proxy", {}, query={"dryRun": "All"})
    assert answer.status == 400


def test_the_status_of_an_absent_service_is_refused_for_the_spec_that_it_would_be_made_of(
    here: ScratchNamespace,
) -> None:
    path = here.path(SERVICES, "s", "status")
    assert here.api.send("PUT", path, a(SERVICES, "s"), query={"dryRun": "All"}).status == 422
    assert not here.exists(SERVICES, "s")


def test_delete(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    here.delete(CONFIGMAPS, "c", dry_run=True)
    assert here.exists(CONFIGMAPS, "c")


def test_delete_of_what_lingers_leaves_it_untouched(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", finalizers=["example.org/hold"])
    here.delete(CONFIGMAPS, "c", dry_run=True)
    assert here.get(CONFIGMAPS, "c") == made
    here.patch(CONFIGMAPS, "c", {"metadata": {"finalizers": None}})


def test_delete_by_query_parameter(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    assert here.api.send("DELETE", here.path(CONFIGMAPS, "c"), query={"dryRun": "All"}).status == 200
    assert here.exists(CONFIGMAPS, "c")


def test_deletecollection(here: ScratchNamespace) -> None:
    for name in ("a", "b"):
        here.make(SECRETS, name)
    here.delete_collection(SECRETS, dry_run=True)
    assert here.names(SECRETS) == ["a", "b"]


@pytest.mark.parametrize("where", ["url", "body"])
def test_eviction(here: ScratchNamespace, where: str) -> None:
    made = here.create(PODS, sleeping_pod("p", spec={"nodeSelector": {"no": "such"}}))
    eviction: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": made["metadata"]["namespace"]},
    }
    if where == "body":
        eviction["deleteOptions"] = {"dryRun": ["All"]}
    query = {"dryRun": "All"} if where == "url" else {}
    answer = here.api.send("POST", f"{here.path(PODS, 'p')}/eviction", eviction, query=query)
    assert answer.status == 201
    found = here.get(PODS, "p")["metadata"]
    assert (found["uid"], found.get("deletionTimestamp")) == (made["metadata"]["uid"], None)


def test_what_would_be_refused_is_refused(here: ScratchNamespace) -> None:
    with pytest.raises(errors.Invalid):
        here.create(CONFIGMAPS, a(CONFIGMAPS, "Not A Name"), dry_run=True)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_all_can_be_asked_for(here: ScratchNamespace, method: str) -> None:
    here.make(CONFIGMAPS, "c")
    path = here.path(CONFIGMAPS) if method == "POST" else here.path(CONFIGMAPS, "c")
    body = None if method == "DELETE" else a(CONFIGMAPS, "d" if method == "POST" else "c")
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    status = here.api.refuse(method, path, body, query={"dryRun": "Some"}, content_type=media)
    assert status["code"] == 422
    assert "dryRun" in status["message"]
    assert here.names(CONFIGMAPS) == ["c"]
