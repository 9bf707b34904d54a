"""The scale subresource of built-in and custom kinds."""

from __future__ import annotations

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, Object, Resource

from .world import DEPLOYMENTS, ScratchNamespace


def scale_of(here: ScratchNamespace, resource: Resource, name: str) -> Object:
    found: Object = here.api.fetch(here.path(resource, name, "scale"))
    assert (found["kind"], found["apiVersion"]) == ("Scale", "autoscaling/v1")
    return found


@pytest.fixture
def deployment(here: ScratchNamespace) -> str:
    labels = {"app": "x", "tier": "y"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "paused": True, "selector": {"matchLabels": labels}, "template": template}
    here.make(DEPLOYMENTS, "d", spec=spec)
    return "d"


def test_a_deployment_has_a_scale(here: ScratchNamespace, deployment: str) -> None:
    found = scale_of(here, DEPLOYMENTS, deployment)
    assert found["metadata"]["name"] == "d"
    assert found["spec"].get("replicas", 0) == 0
    assert found["status"]["selector"] == "app=x,tier=y"


def test_a_custom_kind_has_the_scale_its_definition_names(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"replicas": 2})
    here.patch(widgets, "w", {"status": {"replicas": 1, "selector": "a=b"}}, subresource="status")
    found = scale_of(here, widgets, "w")
    assert found["spec"]["replicas"] == 2
    assert found["status"] == {"replicas": 1, "selector": "a=b"}


def test_scaling_changes_the_object_and_its_generation(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"replicas": 2, "size": 4})
    here.patch(widgets, "w", {"spec": {"replicas": 7}}, subresource="scale")
    obj = here.get(widgets, "w")
    assert obj["spec"] == {"replicas": 7, "size": 4}
    assert obj["metadata"]["generation"] == 2


def test_a_whole_scale_may_be_put_back(here: ScratchNamespace, deployment: str) -> None:
    found = scale_of(here, DEPLOYMENTS, deployment)
    found["spec"] = {"replicas": 0}
    del found["metadata"]["resourceVersion"]  # its controller may have written meanwhile
    assert here.api.send("PUT", here.path(DEPLOYMENTS, "d", "scale"), found).status == 200


def test_a_stale_scale_is_a_conflict(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"replicas": 1})
    stale = scale_of(here, widgets, "w")
    here.patch(widgets, "w", {"spec": {"size": 5}})
    stale["spec"]["replicas"] = 3
    status = here.api.refuse("PUT", here.path(widgets, "w", "scale"), stale)
    assert (status["code"], status["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("replicas", [-1, "many", 1.5])
def test_a_scale_must_be_a_whole_number_from_zero(here: ScratchNamespace, widgets: Resource, replicas: object) -> None:
    here.make(widgets, "w", spec={"replicas": 1})
    with pytest.raises(errors.ApiError) as refused:
        here.patch(widgets, "w", {"spec": {"replicas": replicas}}, subresource="scale")
    assert refused.value.code in (400, 422)
    assert here.get(widgets, "w")["spec"]["replicas"] == 1


def test_what_has_no_scale_answers_not_found(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    assert here.api.refuse("GET", here.path(CONFIGMAPS, "c", "scale"))["code"] == 404


def test_the_scale_of_nothing_is_not_found(here: ScratchNamespace, widgets: Resource) -> None:
    for resource in (DEPLOYMENTS, widgets):
        assert here.api.refuse("GET", here.path(resource, "nobody", "scale"))["reason"] == "NotFound"
