"""Server-side apply: who owns which field, and what follows from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SERVICES, Object, Resource

from .world import DEPLOYMENTS, ScratchNamespace, a, sleeping_pod


def managers(obj: Object) -> dict[tuple[str, str], Object]:
    return {(entry["manager"], entry["operation"]): entry for entry in obj["metadata"]["managedFields"]}


def owned(obj: Object, manager: str, operation: str = "Apply") -> Any:
    return managers(obj)[manager, operation]["fieldsV1"]


def test_an_object_of_another_namespace_is_refused(here: ScratchNamespace) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    path = f"{here.path(CONFIGMAPS)}/c"
    media, query = "application/apply-patch+yaml", {"fieldManager": "t"}
    refused = here.api.refuse("PATCH", path, json.dumps(obj).encode(), content_type=media, query=query)
    assert refused["code"] == 400
    assert "does not match the namespace" in refused["message"]
    assert not here.exists(CONFIGMAPS, "c")


def test_applying_what_is_not_there_creates_it(here: ScratchNamespace) -> None:
    body = a(CONFIGMAPS, "c", data={"a": "1"})
    query = {"fieldManager": "one"}
    response = here.api.send(
        "PATCH", here.path(CONFIGMAPS, "c"), body, query=query, content_type="application/apply-patch+yaml"
    )
    assert response.status == 201
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1"}


def test_the_applied_fields_are_recorded(here: ScratchNamespace) -> None:
    obj = here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"}, labels={"x": "y"})
    (entry,) = obj["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("one", "Apply", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["time"]
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}


def test_other_writes_are_recorded_as_updates(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", data={"a": "1"})
    obj = here.patch(CONFIGMAPS, "c", {"data": {"b": "2"}}, field_manager="other")
    assert owned(obj, "conformance", "Update") == {"f:data": {".": {}, "f:a": {}}}
    assert owned(obj, "other", "Update") == {"f:data": {"f:b": {}}}


def test_the_user_agent_names_the_manager_when_nobody_else_does(here: ScratchNamespace) -> None:
    response = here.api.send("POST", here.path(CONFIGMAPS), a(CONFIGMAPS, "c", data={"a": "1"}))
    assert response.status == 201
    assert managers(here.get(CONFIGMAPS, "c")).keys() == {("conformance", "Update")}


def test_applying_again_changes_nothing(here: ScratchNamespace) -> None:
    first = here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    assert here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"}) == first


def test_a_field_no_longer_applied_is_removed(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1", "b": "2"})
    assert here.apply(CONFIGMAPS, "c", by="one", data={"b": "2"})["data"] == {"b": "2"}


def test_a_field_that_others_also_own_stays(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1", "b": "2"})
    here.apply(CONFIGMAPS, "c", by="two", data={"a": "1"})
    obj = here.apply(CONFIGMAPS, "c", by="one", data={"b": "2"})
    assert obj["data"] == {"a": "1", "b": "2"}
    assert owned(obj, "two") == {"f:data": {"f:a": {}}}


def test_another_value_for_a_field_of_another_is_a_conflict(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    with pytest.raises(errors.Conflict, match='Apply failed with 1 conflict: conflict with "one": .data.a') as refused:
        here.apply(CONFIGMAPS, "c", by="two", data={"a": "2"})
    assert refused.value.details is not None
    (cause,) = refused.value.details["causes"]
    assert cause == {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1"}


def test_several_conflicts_are_all_named(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1", "b": "1"})
    with pytest.raises(errors.Conflict, match="Apply failed with 2 conflicts") as refused:
        here.apply(CONFIGMAPS, "c", by="two", data={"a": "2", "b": "2"})
    assert refused.value.details is not None
    assert [cause["field"] for cause in refused.value.details["causes"]] == [".data.a", ".data.b"]


def test_updates_are_defended_against_apply_too(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    here.patch(CONFIGMAPS, "c", {"data": {"a": "2"}}, field_manager="hand")
    with pytest.raises(errors.Conflict, match='conflict with "hand" using v1'):
        here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})


def test_force_takes_the_field_over(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1", "b": "1"})
    obj = here.apply(CONFIGMAPS, "c", by="two", force=True, data={"a": "2"})
    assert obj["data"] == {"a": "2", "b": "1"}
    assert owned(obj, "one") == {"f:data": {"f:b": {}}}
    assert owned(obj, "two") == {"f:data": {"f:a": {}}}


def test_ownership_passes_on_without_conflict_when_the_first_owner_lets_go(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1", "b": "1"})
    here.apply(CONFIGMAPS, "c", by="two", data={"a": "1"})
    here.apply(CONFIGMAPS, "c", by="one", data={"b": "1"})
    assert here.apply(CONFIGMAPS, "c", by="two", data={"a": "2"})["data"] == {"a": "2", "b": "1"}


def test_an_owner_of_nothing_is_forgotten(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    here.apply(CONFIGMAPS, "c", by="two", data={"b": "1"})
    obj = here.apply(CONFIGMAPS, "c", by="two")
    assert obj["data"] == {"a": "1"}
    assert ("one", "Apply") in managers(obj)


def test_items_of_keyed_lists_are_owned_one_by_one(here: ScratchNamespace, widgets: Resource) -> None:
    here.apply(widgets, "w", by="one", spec={"parts": [{"name": "a", "weight": 1}]})
    obj = here.apply(widgets, "w", by="two", spec={"parts": [{"name": "b", "weight": 2}]})
    assert [part["name"] for part in obj["spec"]["parts"]] == ["a", "b"]
    assert owned(obj, "two") == {"f:spec": {"f:parts": {'k:{"name":"b"}': {".": {}, "f:name": {}, "f:weight": {}}}}}
    obj = here.apply(widgets, "w", by="one", spec={"parts": []})
    assert [part["name"] for part in obj["spec"]["parts"]] == ["b"]


def test_fields_inside_an_item_may_have_different_owners(here: ScratchNamespace, widgets: Resource) -> None:
    here.apply(widgets, "w", by="one", spec={"parts": [{"name": "a", "weight": 1}]})
    obj = here.apply(widgets, "w", by="two", spec={"parts": [{"name": "a", "maker": "m"}]})
    assert obj["spec"]["parts"] == [{"name": "a", "weight": 1, "maker": "m"}]
    with pytest.raises(errors.Conflict, match=r'\.spec\.parts\[name="a"\]\.weight'):
        here.apply(widgets, "w", by="two", spec={"parts": [{"name": "a", "maker": "m", "weight": 5}]})


def test_sets_are_owned_by_value(here: ScratchNamespace, widgets: Resource) -> None:
    here.apply(widgets, "w", by="one", spec={"flags": ["x", "y"]})
    obj = here.apply(widgets, "w", by="two", spec={"flags": ["y", "z"]})
    assert sorted(obj["spec"]["flags"]) == ["x", "y", "z"]
    assert owned(obj, "two") == {"f:spec": {"f:flags": {'v:"y"': {}, 'v:"z"': {}}}}
    obj = here.apply(widgets, "w", by="one", spec={"flags": ["x"]})
    assert sorted(obj["spec"]["flags"]) == ["x", "y", "z"]


def test_plain_lists_are_owned_whole(here: ScratchNamespace, widgets: Resource) -> None:
    here.apply(widgets, "w", by="one", spec={"tags": ["a"]})
    with pytest.raises(errors.Conflict, match=r"\.spec\.tags"):
        here.apply(widgets, "w", by="two", spec={"tags": ["a", "b"]})


def test_containers_and_ports_of_built_in_kinds_are_keyed(here: ScratchNamespace) -> None:
    labels = {"app": "x"}

    def spec(container: Object) -> Object:
        return {"template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}

    whole = {**spec({"name": "a", "image": "i", "ports": [{"containerPort": 80}]}), "replicas": 0}
    here.apply(DEPLOYMENTS, "d", by="one", spec={**whole, "selector": {"matchLabels": labels}})
    obj = here.apply(
        DEPLOYMENTS, "d", by="two", spec=spec({"name": "a", "env": [{"name": "E", "value": "1"}]}), force=True
    )
    container = owned(obj, "two")["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert container["f:env"] == {'k:{"name":"E"}': {".": {}, "f:name": {}, "f:value": {}}}
    mine = owned(obj, "one")["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert list(mine["f:ports"]) == ['k:{"containerPort":80,"protocol":"TCP"}']
    (found,) = obj["spec"]["template"]["spec"]["containers"]
    assert (found["image"], found["env"]) == ("i", [{"name": "E", "value": "1"}])


def test_defaults_belong_to_nobody(here: ScratchNamespace) -> None:
    obj = here.apply(SERVICES, "s", by="one", spec={"ports": [{"port": 80, "protocol": "TCP"}]})
    assert owned(obj, "one") == {
        "f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}}}}
    }


def test_status_is_applied_through_its_subresource_and_owned_apart(here: ScratchNamespace, widgets: Resource) -> None:
    here.apply(widgets, "w", by="one", spec={"size": 1})
    obj = here.apply(widgets, "w", by="ctl", subresource="status", status={"phase": "Up"})
    entry = managers(obj)["ctl", "Apply"]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:phase": {}}})
    assert (obj["spec"]["size"], obj["status"]["phase"]) == (1, "Up")


def test_status_in_a_plain_apply_is_ignored(here: ScratchNamespace, widgets: Resource) -> None:
    obj = here.apply(widgets, "w", by="one", spec={"size": 1}, status={"phase": "Lies"})
    assert "status" not in obj
    assert "f:status" not in owned(obj, "one")


def test_apply_needs_a_manager(here: ScratchNamespace) -> None:
    status = here.api.refuse(
        "PATCH", here.path(CONFIGMAPS, "c"), a(CONFIGMAPS, "c"), content_type="application/apply-patch+yaml"
    )
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert "fieldManager" in status["message"]


def test_force_is_for_apply_only(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    status = here.api.refuse(
        "PATCH", here.path(CONFIGMAPS, "c"), {}, query={"force": "true"}, content_type="application/merge-patch+json"
    )
    assert status["code"] == 422
    assert "force" in status["message"]


def test_apply_takes_yaml(here: ScratchNamespace) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: '1'\n"
    response = here.api.send(
        "PATCH", here.path(CONFIGMAPS, "c"), body, query={"fieldManager": "one"},
        content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert response.status == 201
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "c"}}, 400),
        ({"apiVersion": "v1", "metadata": {"name": "c"}}, 400),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}, 400),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}, 400),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "managedFields": [{"manager": "x"}]}},
            400,
        ),
    ],
)
def test_what_cannot_be_applied_is_refused(here: ScratchNamespace, body: Object, code: int) -> None:
    status = here.api.refuse(
        "PATCH", here.path(CONFIGMAPS, "c"), body, query={"fieldManager": "one"},
        content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert status["code"] == code
    assert not here.exists(CONFIGMAPS, "c")


def test_a_field_twice_in_a_keyed_list_is_refused(here: ScratchNamespace, widgets: Resource) -> None:
    with pytest.raises(errors.ApiError) as refused:
        here.apply(widgets, "w", by="one", spec={"parts": [{"name": "a"}, {"name": "a"}]})
    assert refused.value.code in (400, 422, 500)
    assert not here.exists(widgets, "w")


def test_managed_fields_can_be_reset(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    obj = here.patch(CONFIGMAPS, "c", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in obj["metadata"]
    with pytest.raises(errors.Conflict, match='conflict with "before-first-apply" using v1: .data.a'):
        here.apply(CONFIGMAPS, "c", by="two", data={"a": "2"})


def test_applied_pods_are_validated(here: ScratchNamespace) -> None:
    pod = sleeping_pod("p", labels={"bad label!": "x"})
    with pytest.raises(errors.Invalid, match=r"metadata\.labels"):
        here.patch(PODS, "p", pod, kind="apply", field_manager="one")
