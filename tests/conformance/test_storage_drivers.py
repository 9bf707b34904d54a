"""The kinds of storage drivers as an API: what drivers and nodes tell each other through it. No driver acts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import (
    CSIDRIVERS,
    CSINODES,
    CSISTORAGECAPACITIES,
    VOLUMEATTACHMENTS,
    Object,
    Resource,
)

from .world import TABLE, ScratchNamespace, a

DRIVER = "conformance.example.org"
ATTACHED = {"attacher": DRIVER, "nodeName": "conformance-none", "source": {"persistentVolumeName": "none"}}

MakeClusterwide = Callable[..., Object]


@pytest.fixture
def make(clusterwide: ScratchNamespace, namespace: str) -> Iterator[MakeClusterwide]:
    """Objects without a namespace, of this test's own: `make(CSINODES, spec={...})`."""
    made: list[tuple[Resource, str]] = []

    def make_one(resource: Resource, **fields: Any) -> Object:
        obj = clusterwide.make(resource, f"{namespace}-{len(made)}", **fields)
        made.append((resource, obj["metadata"]["name"]))
        return obj

    yield make_one
    for resource, name in made:
        clusterwide.delete(resource, name)


def test_an_attachment_begins_unattached_and_its_driver_reports(
    clusterwide: ScratchNamespace, make: MakeClusterwide
) -> None:
    made = make(VOLUMEATTACHMENTS, spec=ATTACHED, status={"attached": True})
    assert (made["spec"], made["status"]) == (ATTACHED, {"attached": False})
    reported = {"attached": True, "attachmentMetadata": {"device": "/dev/none"}}
    labelled = {"status": reported, "metadata": {"labels": {"a": "b"}}}
    changed = clusterwide.patch(VOLUMEATTACHMENTS, made["metadata"]["name"], labelled, subresource="status")
    assert changed["status"] == reported
    assert "labels" not in changed["metadata"], "who writes a status writes nothing else"


def test_what_is_attached_where_is_fixed(clusterwide: ScratchNamespace, make: MakeClusterwide) -> None:
    name = make(VOLUMEATTACHMENTS, spec=ATTACHED)["metadata"]["name"]
    with pytest.raises(errors.Invalid, match="spec: Invalid value.*field is immutable"):
        clusterwide.patch(VOLUMEATTACHMENTS, name, {"spec": {"nodeName": "another"}})


BAD: list[tuple[Resource, Object, str, str]] = [
    (VOLUMEATTACHMENTS, {"spec": {**ATTACHED, "attacher": ""}}, "spec.attacher", "FieldValueRequired"),
    (VOLUMEATTACHMENTS, {"spec": {**ATTACHED, "source": {}}}, "spec.source", "FieldValueRequired"),
    (VOLUMEATTACHMENTS, {"spec": {**ATTACHED, "nodeName": ""}}, "spec.nodeName", "FieldValueInvalid"),
    (
        VOLUMEATTACHMENTS,
        {"spec": {**ATTACHED, "source": {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"]}}}},
        "spec.source.inlineVolumeSpec.csi",
        "FieldValueRequired",
    ),
    (CSINODES, {"spec": {"drivers": [{"name": DRIVER}]}}, "spec.drivers[0].nodeID", "FieldValueRequired"),
    (
        CSINODES,
        {"spec": {"drivers": [{"name": DRIVER, "nodeID": "n", "topologyKeys": ["z", "z"]}]}},
        "spec.drivers[0]",
        "FieldValueDuplicate",
    ),
    (
        CSINODES,
        {"spec": {"drivers": [{"name": DRIVER, "nodeID": "n", "allocatable": {"count": -1}}]}},
        "spec.drivers[0].allocatable.count",
        "FieldValueInvalid",
    ),
    (
        CSIDRIVERS,
        {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "a"}]}},
        "spec.tokenRequests[1].audience",
        "FieldValueDuplicate",
    ),
    (
        CSIDRIVERS,
        {"spec": {"volumeLifecycleModes": ["Forever"]}},
        "spec.volumeLifecycleModes",
        "FieldValueNotSupported",
    ),
]


@pytest.mark.parametrize(("resource", "fields", "field", "reason"), BAD)
def test_what_no_driver_could_use_is_refused(
    clusterwide: ScratchNamespace, resource: Resource, fields: Object, field: str, reason: str
) -> None:
    obj = a(resource, "conformance-refused", **fields)
    status = clusterwide.api.refuse("POST", clusterwide.path(resource), obj)
    assert status["code"] == 422
    assert (field, reason) in {(cause["field"], cause["reason"]) for cause in status["details"]["causes"]}


def test_a_node_may_be_without_drivers_and_one_that_is_registered_stays_as_it_is(
    clusterwide: ScratchNamespace, make: MakeClusterwide
) -> None:
    name = make(CSINODES)["metadata"]["name"]
    entry = {"name": DRIVER, "nodeID": "n"}
    added = clusterwide.patch(CSINODES, name, {"spec": {"drivers": [entry]}}, kind="strategic")
    assert [driver["name"] for driver in added["spec"]["drivers"]] == [DRIVER]
    with pytest.raises(errors.Invalid, match="spec.drivers: Invalid value.*field is immutable"):
        clusterwide.patch(CSINODES, name, {"spec": {"drivers": [{**entry, "nodeID": "m"}]}})


def test_what_a_driver_needs_is_fixed(clusterwide: ScratchNamespace, make: MakeClusterwide) -> None:
    name = make(CSIDRIVERS, spec={})["metadata"]["name"]
    with pytest.raises(errors.Invalid, match="spec.attachedRequired: Invalid value.*field is immutable"):
        clusterwide.patch(CSIDRIVERS, name, {"spec": {"attachRequired": False}})


def test_capacity_changes_and_what_it_is_about_does_not(here: ScratchNamespace) -> None:
    about = {"storageClassName": "fast", "nodeTopology": {"matchLabels": {"zone": "a"}}}
    here.make(CSISTORAGECAPACITIES, "c", capacity="1024Mi", **about)
    assert here.get(CSISTORAGECAPACITIES, "c")["capacity"] == "1Gi"
    assert here.patch(CSISTORAGECAPACITIES, "c", {"capacity": "2Gi"})["capacity"] == "2Gi"
    for change in ({"storageClassName": "slow"}, {"nodeTopology": None}):
        with pytest.raises(errors.Invalid, match="field is immutable"):
            here.patch(CSISTORAGECAPACITIES, "c", change)
    with pytest.raises(errors.Invalid, match="storageClassName"):
        here.make(CSISTORAGECAPACITIES, "d")


@pytest.mark.parametrize("resource", [CSIDRIVERS, CSINODES, VOLUMEATTACHMENTS, CSISTORAGECAPACITIES])
def test_an_update_says_which_version_it_has_seen(
    here: ScratchNamespace, make: MakeClusterwide, clusterwide: ScratchNamespace, resource: Resource
) -> None:
    fields: Object = {VOLUMEATTACHMENTS: {"spec": ATTACHED}, CSIDRIVERS: {"spec": {}}}.get(resource, {})
    if resource.namespaced:
        made, where = here.make(resource, "c", storageClassName="fast"), here
    else:
        made, where = make(resource, **fields), clusterwide
    del made["metadata"]["resourceVersion"]
    with pytest.raises(errors.Invalid, match="must be specified for an update"):
        where.update(resource, made)


@pytest.mark.parametrize(
    ("resource", "names", "cells"),
    [
        (CSINODES, ["Name", "Drivers", "Age"], [0]),
        (
            VOLUMEATTACHMENTS,
            ["Name", "Attacher", "PV", "Node", "Attached", "Age"],
            [DRIVER, "none", "conformance-none", False],
        ),
        (
            CSIDRIVERS,
            ["Name", "AttachRequired", "PodInfoOnMount", "StorageCapacity", "TokenRequests", "RequiresRepublish",
             "Modes", "Age"],
            [True, False, False, "<unset>", False, "Persistent"],
        ),
    ],
)  # fmt: skip
def test_columns(
    make: MakeClusterwide, clusterwide: ScratchNamespace, resource: Resource, names: list[str], cells: list[Any]
) -> None:
    fields: Object = {VOLUMEATTACHMENTS: {"spec": ATTACHED}, CSIDRIVERS: {"spec": {}}}.get(resource, {})
    name = make(resource, **fields)["metadata"]["name"]
    table = clusterwide.api.fetch(resource.path("", name), accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == names
    assert table["rows"][0]["cells"][: len(cells) + 1] == [name, *cells]


def test_columns_of_capacities(here: ScratchNamespace) -> None:
    made = here.make(CSISTORAGECAPACITIES, "c", storageClassName="fast")
    table = here.api.fetch(here.path(CSISTORAGECAPACITIES), accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Created At"]
    assert table["rows"][0]["cells"] == ["c", made["metadata"]["creationTimestamp"]]
