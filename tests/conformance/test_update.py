"""Update: whole objects, guarded by their version, split into spec and status."""

from __future__ import annotations

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SERVICES, Object, Resource

from .world import DEPLOYMENTS, ScratchNamespace, sleeping_pod


def test_an_update_replaces_everything_a_user_may_set(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1", "b": "2"}, labels={"x": "y"})
    made["data"] = {"b": "3"}
    made["metadata"].pop("labels")
    updated = here.update(CONFIGMAPS, made)
    assert updated["data"] == {"b": "3"}
    assert "labels" not in updated["metadata"]
    assert updated["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(updated["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_a_stale_version_is_a_conflict_and_changes_nothing(here: ScratchNamespace) -> None:
    stale = here.make(CONFIGMAPS, "c", data={"a": "1"})
    here.patch(CONFIGMAPS, "c", {"data": {"a": "2"}})
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        here.update(CONFIGMAPS, {**stale, "data": {"a": "3"}})
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "2"}


def test_without_a_version_the_last_writer_wins(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    here.patch(CONFIGMAPS, "c", {"data": {"a": "2"}})
    del made["metadata"]["resourceVersion"]
    assert here.update(CONFIGMAPS, {**made, "data": {"a": "3"}})["data"] == {"a": "3"}


def test_custom_kinds_insist_on_a_version(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={"size": 1})
    del made["metadata"]["resourceVersion"]
    with pytest.raises(errors.Invalid, match="metadata.resourceVersion"):
        here.update(widgets, made)


def test_an_update_that_changes_nothing_keeps_the_version(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    assert here.update(CONFIGMAPS, made)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_another_incarnation_is_a_conflict(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c")
    made["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"
    del made["metadata"]["resourceVersion"]
    with pytest.raises(errors.Conflict, match="Precondition failed: UID"):
        here.update(CONFIGMAPS, made)


def test_what_is_gone_cannot_be_updated(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c")
    here.delete(CONFIGMAPS, "c")
    with pytest.raises(errors.ApiError) as refused:
        here.update(CONFIGMAPS, made)
    assert refused.value.code in (404, 409)


def test_the_name_in_the_url_must_be_that_of_the_object(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}
    status = here.api.refuse("PUT", here.path(CONFIGMAPS, "c"), other)
    assert status["code"] == 400
    assert "does not match" in status["message"]


def test_creation_time_and_generation_cannot_be_forged(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w")
    before = dict(made["metadata"])
    made["metadata"] |= {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77}
    made["metadata"]["labels"] = {"changed": "yes"}
    meta = here.update(widgets, made)["metadata"]
    assert meta["creationTimestamp"] == before["creationTimestamp"]
    assert meta["generation"] == 1


# Generation and status -----------------------------------------------------------------------------------------------


def test_generation_counts_changes_of_the_spec_only(here: ScratchNamespace, widgets: Resource) -> None:
    assert here.make(widgets, "w", spec={"size": 1})["metadata"]["generation"] == 1
    assert here.patch(widgets, "w", {"spec": {"size": 2}})["metadata"]["generation"] == 2
    assert here.patch(widgets, "w", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 2
    status = here.patch(widgets, "w", {"status": {"phase": "Up"}}, subresource="status")
    assert status["metadata"]["generation"] == 2


def test_generation_of_a_deployment_counts_too(here: ScratchNamespace) -> None:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "paused": True, "selector": {"matchLabels": labels}, "template": template}
    here.make(DEPLOYMENTS, "d", spec=spec)
    changed = here.patch(DEPLOYMENTS, "d", {"spec": {"minReadySeconds": 1}})
    assert changed["metadata"]["generation"] == 2


def test_a_write_to_the_object_leaves_status_alone(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"size": 1})
    here.patch(widgets, "w", {"status": {"phase": "Up"}}, subresource="status")
    found = here.get(widgets, "w")
    found["spec"]["size"], found["status"] = 2, {"phase": "Lies"}
    updated = here.update(widgets, found)
    assert (updated["spec"]["size"], updated["status"]) == (2, {"phase": "Up"})


def test_a_write_to_status_leaves_the_rest_alone(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={"size": 1}, labels={"a": "b"})
    made["spec"]["size"], made["status"] = 9, {"phase": "Up"}
    made["metadata"]["labels"] = {"c": "d"}
    updated = here.update(widgets, made, subresource="status")
    assert (updated["spec"]["size"], updated["status"]) == (1, {"phase": "Up"})
    assert updated["metadata"]["labels"] == {"a": "b"}


def test_pod_status_is_written_through_its_subresource(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("p"))
    ready = {"type": "Ready", "status": "True"}
    updated = here.patch(
        PODS, "p", {"status": {"phase": "Running", "conditions": [ready]}}, kind="strategic", subresource="status"
    )
    assert updated["status"]["phase"] == "Running"
    assert updated["status"]["qosClass"] == "BestEffort"
    assert here.patch(PODS, "p", {"status": {"phase": "Failed"}})["status"]["phase"] == "Running"


def test_a_write_to_the_status_of_a_built_in_kind_takes_labels_and_annotations_along(here: ScratchNamespace) -> None:
    pod = here.create(PODS, sleeping_pod("p"))
    pod["metadata"] |= {"labels": {"a": "1"}, "annotations": {"b": "2"}}
    pod["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}]
    pod["spec"]["activeDeadlineSeconds"] = 5
    updated = here.update(PODS, pod, subresource="status")
    assert (updated["metadata"]["labels"], updated["metadata"]["annotations"]) == ({"a": "1"}, {"b": "2"})
    assert "ownerReferences" not in updated["metadata"]
    assert "activeDeadlineSeconds" not in updated["spec"]
    pod["metadata"]["labels"] = {"a": "not a value"}
    pod["metadata"]["resourceVersion"] = updated["metadata"]["resourceVersion"]
    refused = here.api.refuse("PUT", here.path(PODS, "p", "status"), pod)
    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, "metadata.labels")


def test_status_can_be_read_alone(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w")
    assert here.api.fetch(here.path(widgets, "w", "status")) == made


# What must not change ------------------------------------------------------------------------------------------------


def test_the_containers_of_a_pod_cannot_be_exchanged(here: ScratchNamespace) -> None:
    pod = here.create(PODS, sleeping_pod("p"))
    pod["spec"]["containers"][0]["command"] = ["false"]
    with pytest.raises(errors.Invalid, match="pod updates may not change fields other than"):
        here.update(PODS, pod)


def test_containers_are_added_to_a_pod_through_a_subresource_and_stay_as_they_are(here: ScratchNamespace) -> None:
    pod = here.create(PODS, sleeping_pod("p"))
    added = {"name": "debug", "image": "registry.example/none:1", "command": ["sh"], "stdin": True}
    change: Object = {
        "spec": {"ephemeralContainers": [added], "activeDeadlineSeconds": 5},
        "metadata": {"labels": {"a": "b"}},
    }
    with pytest.raises(errors.Invalid, match="pod updates may not change fields other than"):
        here.patch(PODS, "p", {"spec": {"ephemeralContainers": [added]}})
    seen = here.patch(PODS, "p", change, kind="strategic", subresource="ephemeralcontainers")
    assert seen["spec"]["ephemeralContainers"][0].items() >= added.items()
    assert seen["metadata"]["generation"] == pod["metadata"]["generation"] + 1
    assert (seen["metadata"].get("labels"), seen["spec"].get("activeDeadlineSeconds")) == (None, None)
    assert here.api.fetch(here.path(PODS, "p", "ephemeralcontainers"))["spec"] == seen["spec"]
    for containers, why in (
        ([], '"debug" may not be removed'),
        ([{**added, "image": "other"}], '"debug" may not be changed'),
        ([added, {**added, "name": "c2", "ports": [{"containerPort": 1}]}], "cannot be set for an Ephemeral Container"),
        ([added, {**added, "name": seen["spec"]["containers"][0]["name"]}], "Duplicate value"),
        ([added, {**added, "name": "c2", "targetContainerName": "debug"}], 'targetContainerName: Not found: "debug"'),
    ):
        pod = here.get(PODS, "p")
        pod["spec"]["ephemeralContainers"] = containers
        refused = here.api.refuse("PUT", here.path(PODS, "p", "ephemeralcontainers"), pod)
        assert (refused["code"], why in refused["message"]) == (422, True), refused["message"]


def test_no_pod_or_template_is_made_with_containers_that_are_added_later(here: ScratchNamespace) -> None:
    pod = sleeping_pod("p")
    pod["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "registry.example/none:1"}]
    with pytest.raises(errors.Invalid, match="spec.ephemeralContainers: Forbidden: cannot be set on create"):
        here.create(PODS, pod)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    with pytest.raises(errors.Invalid, match="ephemeral containers not allowed in pod template"):
        here.make(DEPLOYMENTS, "d", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})


def test_the_image_of_a_container_may_change(here: ScratchNamespace) -> None:
    pod = here.create(PODS, sleeping_pod("p"))
    pod["spec"]["containers"][0]["image"] = "registry.example/none:2"
    assert here.update(PODS, pod)["spec"]["containers"][0]["image"].endswith(":2")


def test_the_selector_of_a_deployment_is_immutable(here: ScratchNamespace) -> None:
    labels = {"app": "x"}
    template = {"metadata": {"labels": {**labels, "y": "z"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    here.make(DEPLOYMENTS, "d", spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": template})
    with pytest.raises(errors.Invalid, match="field is immutable"):
        here.patch(DEPLOYMENTS, "d", {"spec": {"selector": {"matchLabels": {"app": None, "y": "z"}}}})


def test_an_update_of_a_service_keeps_its_address(here: ScratchNamespace) -> None:
    made = here.make(SERVICES, "s", spec={"ports": [{"port": 80}]})
    address = made["spec"].pop("clusterIP")
    made["spec"].pop("clusterIPs")
    made["spec"]["ports"] = [{"port": 81}]
    assert here.update(SERVICES, made)["spec"]["clusterIP"] == address
    with pytest.raises(errors.Invalid, match="spec.clusterIPs?\\[?0?\\]?: Invalid value"):
        here.patch(SERVICES, "s", {"spec": {"clusterIP": "127.40.1.1", "clusterIPs": ["127.40.1.1"]}})
