"""Events are one collection under two API groups; custom kinds are one under all their versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness import PATIENCE
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import CRDS, EVENTS, Resource

NEW = Resource("events.k8s.io", "v1", "events", "Event")
NOW = "2024-05-06T07:08:09.123456Z"

OLD_STYLE: dict[str, Any] = {
    "metadata": {"name": "old"},
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default", "uid": "u1"},
    "type": "Warning",
    "reason": "Failed",
    "message": "it broke",
    "source": {"component": "kubelet", "host": "n1"},
    "reportingComponent": "kubelet",
    "reportingInstance": "n1",
    "firstTimestamp": "2024-05-06T07:08:09Z",
    "lastTimestamp": "2024-05-06T07:09:09Z",
    "count": 3,
}
NEW_STYLE: dict[str, Any] = {
    "metadata": {"name": "new"},
    "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default", "uid": "u1"},
    "related": {"kind": "Node", "name": "n1"},
    "type": "Normal",
    "reason": "Scheduled",
    "action": "Binding",
    "note": "found a place",
    "reportingController": "scheduler",
    "reportingInstance": "scheduler-1",
    "eventTime": NOW,
}


async def test_a_field_of_the_old_group_does_not_stand_in_for_the_namespace_of_a_new_event(client: Client) -> None:
    """Here the rule holds in both groups; a kube-apiserver asks for it in the old one."""
    about = {**NEW_STYLE["regarding"], "namespace": "kube-system"}
    forged = {**NEW_STYLE, "regarding": about, "involvedObject": OLD_STYLE["involvedObject"]}
    with pytest.raises(errors.Invalid, match="does not match event.namespace"):
        await client.create(NEW, forged, namespace="default")


async def test_an_old_event_is_shown_in_the_new_form(client: Client) -> None:
    made = await client.create(EVENTS, OLD_STYLE, namespace="default")
    seen = await client.get(NEW, "old", "default")
    assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
    assert seen["metadata"] == made["metadata"]
    assert {key: value for key, value in seen.items() if key not in ("apiVersion", "kind", "metadata")} == {
        "regarding": OLD_STYLE["involvedObject"],
        "type": "Warning",
        "reason": "Failed",
        "note": "it broke",
        "reportingController": "kubelet",
        "reportingInstance": "n1",
        "deprecatedSource": {"component": "kubelet", "host": "n1"},
        "deprecatedFirstTimestamp": "2024-05-06T07:08:09Z",
        "deprecatedLastTimestamp": "2024-05-06T07:09:09Z",
        "deprecatedCount": 3,
    }


async def test_a_new_event_is_shown_in_the_old_form_and_in_its_own(client: Client) -> None:
    made = await client.create(NEW, NEW_STYLE, namespace="default")
    assert made["apiVersion"] == "events.k8s.io/v1"
    assert made["note"] == "found a place"
    old = await client.get(EVENTS, "new", "default")
    assert old["apiVersion"] == "v1"
    assert old["involvedObject"] == NEW_STYLE["regarding"]
    assert old["message"] == "found a place"
    assert old["reportingComponent"] == "scheduler"
    assert not {"regarding", "note", "reportingController"} & old.keys()
    assert await client.get(NEW, "new", "default") == made


async def test_both_lists_hold_all_events_and_select_by_their_own_fields(client: Client) -> None:
    await client.create(EVENTS, OLD_STYLE, namespace="default")
    await client.create(NEW, NEW_STYLE, namespace="default")

    async def names(resource: Resource, selector: str) -> list[str]:
        found = await client.list(resource, "default", field_selector=selector)
        return [item["metadata"]["name"] for item in found.items]

    for resource, about in ((EVENTS, "involvedObject"), (NEW, "regarding")):
        assert await names(resource, f"{about}.name=p") == ["new", "old"]
        assert await names(resource, f"{about}.uid=u1,reason=Failed") == ["old"]
        assert await names(resource, "type!=Warning") == ["new"]
    assert await names(NEW, "reportingController=scheduler") == ["new"]
    with pytest.raises(errors.BadRequest, match="field label not supported: involvedObject"):
        await names(NEW, "involvedObject.name=p")


async def test_a_series_patched_through_one_group_is_watched_through_the_other(client: Client) -> None:
    made = await client.create(NEW, NEW_STYLE, namespace="default")
    version = made["metadata"]["resourceVersion"]
    series = {"series": {"count": 2, "lastObservedTime": NOW}}
    await client.patch(NEW, "new", series, namespace="default")
    await client.patch(EVENTS, "new", {"message": "again"}, namespace="default")
    await client.delete(NEW, "new", namespace="default")

    async def follow(resource: Resource) -> list[tuple[str, Any, Any]]:
        seen = []
        async for event in client.watch(resource, "default", resource_version=version):
            text = event.object.get("message") or event.object.get("note")
            assert event.object["apiVersion"] == resource.api_version
            seen.append((event.type, event.object["series"]["count"], text))
            if event.type == "DELETED":
                break
        return seen

    wanted = [("MODIFIED", 2, "found a place"), ("MODIFIED", 2, "again"), ("DELETED", 2, "again")]
    for resource in (EVENTS, NEW):
        assert await asyncio.wait_for(follow(resource), PATIENCE) == wanted


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"eventTime": None}, "eventTime: Required value"),
        ({"action": ""}, "action: Required value"),
        ({"reportingController": "not a name"}, "reportingController: Invalid value"),
        ({"type": "Odd"}, "type: Invalid value"),
        ({"note": "x" * 1025}, "note: Invalid value"),
        ({"deprecatedCount": 1}, "deprecatedCount: Forbidden: needs to be unset"),
        ({"series": {"count": 1, "lastObservedTime": NOW}}, "series.count: Invalid value: 1: should be at least 2"),
    ],
)
async def test_events_of_the_new_group_must_be_complete(client: Client, change: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        await client.create(NEW, {**NEW_STYLE, **change}, namespace="default")
    assert field in refused.value.message


def crd(*versions: str, storage: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [
                {"name": name, "served": True, "storage": name == storage, "schema": schema} for name in versions
            ],
        },
    }


async def test_an_object_of_one_version_is_read_and_written_in_every_other(client: Client) -> None:
    await client.create(CRDS, crd("v1beta1", "v1", storage="v1"))
    v1, beta = (Resource("example.org", version, "lamps", "Lamp") for version in ("v1", "v1beta1"))
    lamp = {"apiVersion": "example.org/v1beta1", "kind": "Lamp", "metadata": {"name": "l"}, "lit": True}
    made = await client.create(beta, lamp, namespace="default")
    assert made["apiVersion"] == "example.org/v1beta1"
    assert (await client.get(v1, "l", "default"))["apiVersion"] == "example.org/v1"
    assert [item["apiVersion"] for item in (await client.list(beta, "default")).items] == ["example.org/v1beta1"]
    changed = await client.patch(v1, "l", {"lit": False}, namespace="default")
    assert (changed["apiVersion"], changed["lit"]) == ("example.org/v1", False)
    assert (await client.get(beta, "l", "default"))["lit"] is False

    # a new version becomes the stored one: what is there already is shown in it too
    await client.patch(CRDS, "lamps.example.org", {"spec": crd("v1beta1", "v1", "v2", storage="v2")["spec"]})
    v2 = Resource("example.org", "v2", "lamps", "Lamp")
    assert (await client.get(v2, "l", "default"))["apiVersion"] == "example.org/v2"
