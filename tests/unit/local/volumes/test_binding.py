"""Claims and volumes: who gets which, and what is left afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlecloud.local.volumes.binding import LOCAL_CLASS, decide_claim, decide_volume, local_class

FOLDER = Path("/data/volumes")
CLASSES = {LOCAL_CLASS: local_class()}


def claim(size: str = "1Gi", *, uid: str = "c-1", storage_class: str | None = "manual", **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "metadata": {"name": "claim", "namespace": "d", "uid": uid},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }
    if storage_class is not None:
        body["spec"]["storageClassName"] = storage_class
    return body


def volume(name: str, size: str = "1Gi", *, storage_class: str = "manual", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"u-{name}",
            "resourceVersion": "5",
            "labels": spec.pop("labels", {}),
            "annotations": spec.pop("annotations", {}),
        },
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            **spec,
        },
    }


def given(claim: dict[str, Any], *volumes: dict[str, Any]) -> str | None:
    """The name of the volume that is given to the claim."""
    plan = decide_claim(claim, volumes, CLASSES, folder=FOLDER)
    return plan.patch[0].name if plan.patch else None


def test_the_smallest_volume_that_fits_is_taken() -> None:
    assert given(claim("2Gi"), volume("a", "1Gi"), volume("b", "8Gi"), volume("c", "3Gi")) == "c"


@pytest.mark.parametrize(
    "other",
    [
        volume("v", "512Mi"),
        volume("v", storage_class="other"),
        volume("v", accessModes=["ReadOnlyMany"]),
        volume("v", volumeMode="Block"),
        volume("v", claimRef={"namespace": "d", "name": "claim", "uid": "somebody"}),
        volume("v", claimRef={"namespace": "d", "name": "other"}),
        {**volume("v"), "status": {"phase": "Released"}},
    ],
    ids=["small", "class", "modes", "block", "taken", "reserved", "released"],
)
def test_a_volume_that_does_not_fit_is_not_taken(other: dict[str, Any]) -> None:
    assert given(claim(), other) is None


def test_labels_are_matched_by_the_claims_selector() -> None:
    wanted = claim(selector={"matchLabels": {"sampleset": "x"}})
    assert given(wanted, volume("a"), volume("b", labels={"sampleset": "x"})) == "b"


def test_a_volume_reserved_for_the_claim_comes_before_a_better_fit() -> None:
    reserved = volume("reserved", "9Gi", claimRef={"namespace": "d", "name": "claim"})
    assert given(claim(), volume("a"), reserved) == "reserved"


def test_a_claim_may_name_its_volume() -> None:
    assert given(claim(volumeName="b", storage_class=""), volume("a"), volume("b", storage_class="")) == "b"


def test_a_named_volume_is_given_only_if_it_fits_or_is_reserved_for_the_claim() -> None:
    """As Kubernetes: a name alone gets no volume of a class, or of a size, that the claim does not ask for."""
    wanted = claim(volumeName="v")
    assert given(wanted, volume("v", storage_class="vault")) is None
    assert given(wanted, volume("v", storage_class="vault", claimRef={"namespace": "d", "name": "claim"})) == "v"


def test_giving_a_volume_fails_if_it_changed_meanwhile() -> None:
    patch = decide_claim(claim(), [volume("a")], CLASSES, folder=FOLDER).patch[0]
    assert patch.patch["metadata"]["resourceVersion"] == "5"
    assert patch.patch["spec"]["claimRef"]["uid"] == "c-1"


def test_a_claim_is_bound_to_the_volume_it_was_given() -> None:
    own = volume("a", claimRef={"namespace": "d", "name": "claim", "uid": "c-1"})
    plan = decide_claim(claim(), [volume("better"), own], CLASSES, folder=FOLDER)
    assert plan.patch[0].patch["spec"] == {"volumeName": "a"}
    assert plan.status is not None
    assert (plan.status["phase"], plan.status["capacity"]) == ("Bound", {"storage": "1Gi"})


def test_a_claim_without_a_class_gets_a_local_folder() -> None:
    plan = decide_claim(claim("5Gi", storage_class=None), [], CLASSES, folder=FOLDER)
    made = plan.create[0]
    assert made["metadata"]["name"] == "pvc-c-1"
    assert made["spec"]["hostPath"]["path"] == "/data/volumes/pvc-c-1"
    assert made["spec"]["capacity"] == {"storage": "5Gi"}
    assert made["spec"]["claimRef"]["uid"] == "c-1"


@pytest.mark.parametrize(
    ("storage_class", "text"),
    [("manual", 'storageclass "manual" does not exist'), ("", "no storage class is set")],
)
def test_a_claim_nobody_can_serve_gets_a_reason(storage_class: str, text: str) -> None:
    plan = decide_claim(claim(storage_class=storage_class), [], CLASSES, folder=FOLDER)
    assert text in plan.events[0].message
    assert not plan.create


def test_a_bound_claim_whose_volume_is_gone_is_lost() -> None:
    bound = {**claim(volumeName="a"), "status": {"phase": "Bound"}}
    plan = decide_claim(bound, [], CLASSES, folder=FOLDER)
    assert plan.status == {"phase": "Lost"}
    assert decide_claim(bound, [volume("a")], CLASSES, folder=FOLDER).status is None


OURS = {"pv.kubernetes.io/provisioned-by": "paddlecloud.org/local"}
REF = {"namespace": "d", "name": "claim", "uid": "c-1"}


@pytest.mark.parametrize(
    ("volume", "claim", "phase", "deleted"),
    [
        (volume("v"), None, "Available", False),
        (volume("v", claimRef={"namespace": "d", "name": "claim"}), None, "Available", False),
        (volume("v", claimRef=REF), claim(), "Bound", False),
        (volume("v", claimRef=REF), None, "Released", False),
        (volume("v", claimRef=REF), claim(uid="successor"), "Released", False),
        (volume("v", claimRef=REF, persistentVolumeReclaimPolicy="Delete"), None, "Released", False),
        (volume("v", claimRef=REF, persistentVolumeReclaimPolicy="Delete", annotations=OURS), None, None, True),
        (volume("v", claimRef=REF, annotations=OURS), None, "Released", False),
    ],
)
def test_what_becomes_of_a_volume(
    volume: dict[str, Any], claim: dict[str, Any] | None, phase: str | None, deleted: bool
) -> None:
    plan = decide_volume(volume, claim)
    assert (plan.status or {}).get("phase") == phase
    assert bool(plan.delete) is deleted
