"""Deletion: at once, held by finalizers, with grace, with dependents, in bulk."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, Object, Resource

from .world import ScratchNamespace, eventually, sleeping_pod

HOLD = "example.org/hold"


def release(here: ScratchNamespace, resource: Resource, name: str) -> None:
    here.patch(resource, name, {"metadata": {"finalizers": None}})


def test_the_answer_shows_what_was_deleted(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c")
    answer = here.delete(CONFIGMAPS, "c")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert not here.exists(CONFIGMAPS, "c")


def test_what_is_gone_is_not_found(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    here.delete(CONFIGMAPS, "c")
    with pytest.raises(errors.NotFound, match='configmaps "c" not found'):
        here.delete(CONFIGMAPS, "c")


def test_only_the_incarnation_that_was_meant_is_deleted(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c")
    with pytest.raises(errors.Conflict, match="UID"):
        here.delete(CONFIGMAPS, "c", uid="11111111-1111-1111-1111-111111111111")
    with pytest.raises(errors.Conflict, match="ResourceVersion"):
        here.delete(CONFIGMAPS, "c", resource_version="1")
    here.delete(CONFIGMAPS, "c", uid=made["metadata"]["uid"], resource_version=made["metadata"]["resourceVersion"])
    assert not here.exists(CONFIGMAPS, "c")


# Finalizers ----------------------------------------------------------------------------------------------------------


def test_finalizers_hold_an_object_until_the_last_one_goes(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", finalizers=["example.org/a", "example.org/b"])
    held = here.delete(CONFIGMAPS, "c")
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    here.patch(CONFIGMAPS, "c", {"metadata": {"finalizers": ["example.org/b"]}})
    assert here.exists(CONFIGMAPS, "c")
    release(here, CONFIGMAPS, "c")
    assert not here.exists(CONFIGMAPS, "c")


def test_a_second_deletion_changes_nothing(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", finalizers=[HOLD])
    first = here.delete(CONFIGMAPS, "c")
    assert here.delete(CONFIGMAPS, "c") == first
    release(here, CONFIGMAPS, "c")


def test_a_dying_object_accepts_no_new_finalizer(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", finalizers=[HOLD])
    here.delete(CONFIGMAPS, "c")
    with pytest.raises(errors.ApiError, match="no new finalizers can be added if the object is being deleted"):
        here.patch(CONFIGMAPS, "c", {"metadata": {"finalizers": [HOLD, "example.org/new"]}})
    assert here.patch(CONFIGMAPS, "c", {"data": {"still": "writable"}})["data"] == {"still": "writable"}
    release(here, CONFIGMAPS, "c")


def test_the_time_of_deletion_cannot_be_undone(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", finalizers=[HOLD])
    held = here.delete(CONFIGMAPS, "c")
    stays = here.patch(CONFIGMAPS, "c", {"metadata": {"deletionTimestamp": None}, "data": {"a": "b"}})
    assert stays["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]
    release(here, CONFIGMAPS, "c")


@pytest.mark.parametrize("finalizer", ["unqualified", "has space/x", "example.org/" + "x" * 64])
def test_a_finalizer_is_a_qualified_name(here: ScratchNamespace, finalizer: str) -> None:
    with pytest.raises(errors.Invalid, match="finalizers"):
        here.make(CONFIGMAPS, "c", finalizers=[finalizer])


# Grace ---------------------------------------------------------------------------------------------------------------


def bound(name: str, **spec: Any) -> Object:
    """A pod on a node that does not exist: nobody confirms that it has stopped."""
    return sleeping_pod(name, spec={"nodeName": "no-such-node", **spec})


def test_a_bound_pod_leaves_gracefully(here: ScratchNamespace) -> None:
    here.create(PODS, bound("p", terminationGracePeriodSeconds=600))
    leaving = here.delete(PODS, "p")
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 600
    assert leaving["metadata"]["deletionTimestamp"] > leaving["metadata"]["creationTimestamp"]
    assert here.exists(PODS, "p")
    here.delete(PODS, "p", grace_period=0)
    assert not here.exists(PODS, "p")


def test_the_grace_period_may_be_shortened_but_not_extended(here: ScratchNamespace) -> None:
    here.create(PODS, bound("p"))
    assert here.delete(PODS, "p", grace_period=100)["metadata"]["deletionGracePeriodSeconds"] == 100
    assert here.delete(PODS, "p", grace_period=200)["metadata"]["deletionGracePeriodSeconds"] == 100
    assert here.delete(PODS, "p", grace_period=20)["metadata"]["deletionGracePeriodSeconds"] == 20
    here.delete(PODS, "p", grace_period=0)


def test_a_pod_that_never_ran_goes_at_once(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("p"))
    gone = here.delete(PODS, "p")
    assert gone["kind"] == "Pod"
    assert not here.exists(PODS, "p")


# Dependents ----------------------------------------------------------------------------------------------------------


def owner_reference(owner: Object, *, block: bool = True) -> Object:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "blockOwnerDeletion": block,
    }  # fmt: skip


def test_background_deletion_takes_dependents_along(here: ScratchNamespace) -> None:
    owner = here.make(CONFIGMAPS, "owner")
    child = here.make(SECRETS, "child", ownerReferences=[owner_reference(owner)])
    here.make(CONFIGMAPS, "grandchild", ownerReferences=[owner_reference(child)])
    here.make(CONFIGMAPS, "stranger")
    here.delete(CONFIGMAPS, "owner", propagation="Background")
    eventually(lambda: here.names(CONFIGMAPS) + here.names(SECRETS), ["stranger"])


def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone(here: ScratchNamespace) -> None:
    owner = here.make(CONFIGMAPS, "owner")
    here.make(SECRETS, "child", ownerReferences=[owner_reference(owner)], finalizers=[HOLD])
    held = here.delete(CONFIGMAPS, "owner", propagation="Foreground")
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: "deletionTimestamp" in here.get(SECRETS, "child")["metadata"], True)
    assert here.exists(CONFIGMAPS, "owner")
    release(here, SECRETS, "child")
    eventually(lambda: here.names(CONFIGMAPS) + here.names(SECRETS), [])


def test_orphaned_dependents_stay_without_their_owner(here: ScratchNamespace) -> None:
    owner = here.make(CONFIGMAPS, "owner")
    here.make(SECRETS, "child", ownerReferences=[owner_reference(owner)])
    here.delete(CONFIGMAPS, "owner", propagation="Orphan")
    eventually(lambda: here.exists(CONFIGMAPS, "owner"), False)
    assert "ownerReferences" not in here.get(SECRETS, "child")["metadata"]


def test_one_living_owner_is_enough(here: ScratchNamespace) -> None:
    first, second = here.make(CONFIGMAPS, "first"), here.make(CONFIGMAPS, "second")
    here.make(SECRETS, "shared", ownerReferences=[owner_reference(first), owner_reference(second)])
    here.delete(CONFIGMAPS, "first")

    def owners() -> list[str]:
        return [ref["name"] for ref in here.get(SECRETS, "shared")["metadata"]["ownerReferences"]]

    eventually(owners, ["second"])
    here.delete(CONFIGMAPS, "second")
    eventually(lambda: here.exists(SECRETS, "shared"), False)


def test_a_dependent_with_another_owner_does_not_hold_up_a_foreground_deletion(here: ScratchNamespace) -> None:
    """Kubernetes' spec: should not delete dependents that have both valid owner and owner that's waiting…"""
    leaving, staying = here.make(CONFIGMAPS, "leaving"), here.make(CONFIGMAPS, "staying")
    here.make(SECRETS, "shared", ownerReferences=[owner_reference(leaving), owner_reference(staying)])
    here.delete(CONFIGMAPS, "leaving", propagation="Foreground")
    eventually(lambda: here.names(CONFIGMAPS) + here.names(SECRETS), ["staying", "shared"])
    assert [ref["name"] for ref in here.get(SECRETS, "shared")["metadata"]["ownerReferences"]] == ["staying"]


def test_a_circle_of_owners_does_not_hold_up_a_foreground_deletion(here: ScratchNamespace) -> None:
    """Kubernetes' spec: should not be blocked by dependency circle."""
    pods = [here.create(PODS, sleeping_pod(f"pod{number}")) for number in (1, 2, 3)]
    for position, pod in enumerate(pods):
        owner = owner_reference(pods[position - 1])
        here.patch(PODS, pod["metadata"]["name"], {"metadata": {"ownerReferences": [owner]}})
    here.delete(PODS, "pod1", propagation="Foreground")
    eventually(lambda: here.names(PODS), [])


def test_custom_objects_own_and_are_owned(here: ScratchNamespace, widgets: Resource) -> None:
    owner = here.make(widgets, "w")
    here.make(SECRETS, "child", ownerReferences=[owner_reference(owner)])
    here.delete(widgets, "w")
    eventually(lambda: here.exists(SECRETS, "child"), False)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}, "uid"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "u"}, "name"),
        ({"apiVersion": "", "kind": "ConfigMap", "name": "x", "uid": "u"}, "apiVersion"),
        ({"apiVersion": "v1", "kind": "", "name": "x", "uid": "u"}, "kind"),
    ],
)
def test_an_owner_reference_must_be_complete(here: ScratchNamespace, reference: Object, why: str) -> None:
    with pytest.raises(errors.Invalid, match=rf"metadata.ownerReferences\[0\].*{why}|ownerReferences.{why}"):
        here.make(SECRETS, "s", ownerReferences=[reference])


def test_there_is_one_controller_at_most(here: ScratchNamespace) -> None:
    refs = [{"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True} for n in ("a", "b")]
    with pytest.raises(errors.Invalid, match="Only one reference can have Controller set to true"):
        here.make(SECRETS, "s", ownerReferences=refs)


@pytest.mark.parametrize("policy", ["Sometimes", "background"])
def test_an_unknown_policy_is_refused(here: ScratchNamespace, policy: str) -> None:
    here.make(CONFIGMAPS, "c")
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
    assert here.api.refuse("DELETE", here.path(CONFIGMAPS, "c"), body)["code"] == 422
    assert here.exists(CONFIGMAPS, "c")


# In bulk -------------------------------------------------------------------------------------------------------------


def test_a_collection_is_deleted_by_selector(here: ScratchNamespace) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        here.make(SECRETS, name, labels={"colour": colour})
    here.delete_collection(SECRETS, label_selector="colour=red")
    assert here.names(SECRETS) == ["b"]
    here.delete_collection(SECRETS, field_selector="metadata.name=b")
    assert here.names(SECRETS) == []


def test_a_collection_of_one_namespace_leaves_others_alone(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w")
    here.delete_collection(widgets)
    assert here.names(widgets) == []


def test_finalizers_hold_in_bulk_too(here: ScratchNamespace) -> None:
    here.make(SECRETS, "free")
    here.make(SECRETS, "held", finalizers=[HOLD])
    here.delete_collection(SECRETS)
    assert here.names(SECRETS) == ["held"]
    release(here, SECRETS, "held")
