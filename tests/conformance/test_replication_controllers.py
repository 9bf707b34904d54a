"""ReplicationControllers as an API: defaults, refusals, scale, columns, quota, adoption and what deletion leaves.

Pods that none of the schedulers takes stand for the real ones, so that all of it holds without a node.
"""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import PODS, REPLICATIONCONTROLLERS, Object, Resource

from .world import TABLE, ScratchNamespace, a, eventually, sleeping_pod

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LABELS = {"app": "old", "tier": "front"}
POD = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "registry.example/none:1"}]}
TEMPLATE: Object = {"metadata": {"labels": LABELS}, "spec": POD}


def spec(**fields: Any) -> Object:
    return {"replicas": 0, "selector": LABELS, "template": TEMPLATE, **fields}


def pods_of(here: ScratchNamespace, name: str) -> list[str]:
    uid = here.get(REPLICATIONCONTROLLERS, name)["metadata"]["uid"]
    owned = [pod["metadata"] for pod in here.list(PODS).items]
    return [meta["name"] for meta in owned if any(ref["uid"] == uid for ref in meta.get("ownerReferences", ()))]


def test_labels_and_selector_are_those_of_the_template(here: ScratchNamespace) -> None:
    made = here.make(REPLICATIONCONTROLLERS, "r", spec={"replicas": 0, "template": TEMPLATE})
    assert made["spec"]["selector"] == made["metadata"]["labels"] == LABELS
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert "minReadySeconds" not in made["spec"]
    assert made["metadata"]["generation"] == 1
    assert made["status"]["replicas"] == 0
    defaulted = here.create(
        REPLICATIONCONTROLLERS, a(REPLICATIONCONTROLLERS, "s", spec={"template": TEMPLATE}), dry_run=True
    )
    assert defaulted["spec"]["replicas"] == 1


BAD: list[tuple[Object, str, str]] = [
    ({"selector": {"app": "other"}}, "spec.template.metadata.labels", "FieldValueInvalid"),
    ({"selector": {}, "template": {"spec": POD}}, "spec.selector", "FieldValueRequired"),
    ({"template": None}, "spec.template", "FieldValueRequired"),
    ({"replicas": -1}, "spec.replicas", "FieldValueInvalid"),
    ({"minReadySeconds": -1}, "spec.minReadySeconds", "FieldValueInvalid"),
    (
        {"template": {**TEMPLATE, "spec": {**POD, "restartPolicy": "Never"}}},
        "spec.template.spec.restartPolicy",
        "FieldValueNotSupported",
    ),
    (
        {"template": {**TEMPLATE, "spec": {**POD, "activeDeadlineSeconds": 5}}},
        "spec.template.spec.activeDeadlineSeconds",
        "FieldValueForbidden",
    ),
]


@pytest.mark.parametrize(("fields", "field", "reason"), BAD)
def test_what_is_refused_names_its_field(here: ScratchNamespace, fields: Object, field: str, reason: str) -> None:
    body = a(REPLICATIONCONTROLLERS, "r", spec=spec(**fields))
    status = here.api.refuse("POST", here.path(REPLICATIONCONTROLLERS), body)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert (field, reason) in {(cause["field"], cause["reason"]) for cause in status["details"]["causes"]}


def test_scale_shows_the_selector_as_text_and_changes_the_number(here: ScratchNamespace) -> None:
    here.make(REPLICATIONCONTROLLERS, "r", spec=spec())
    found = here.api.fetch(here.path(REPLICATIONCONTROLLERS, "r", "scale"))
    assert (found["kind"], found["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert found["status"]["selector"] == "app=old,tier=front"
    here.patch(REPLICATIONCONTROLLERS, "r", {"spec": {"replicas": 2}}, subresource="scale")
    status = eventually(
        lambda: here.get(REPLICATIONCONTROLLERS, "r")["status"], lambda status: status.get("replicas") == 2
    )
    assert status["observedGeneration"] == 2
    assert len(pods_of(here, "r")) == 2
    here.patch(REPLICATIONCONTROLLERS, "r", {"spec": {"replicas": 0}}, subresource="scale")
    eventually(lambda: pods_of(here, "r"), [])


def test_columns(here: ScratchNamespace) -> None:
    here.make(REPLICATIONCONTROLLERS, "r", spec=spec())
    found = here.api.fetch(here.path(REPLICATIONCONTROLLERS), accept=TABLE)
    assert [column["name"] for column in found["columnDefinitions"]] == [
        "Name", "Desired", "Current", "Ready", "Age", "Containers", "Images", "Selector",
    ]  # fmt: skip
    (row,) = found["rows"]
    assert row["cells"][:4] == ["r", 0, 0, 0]
    assert row["cells"][5:] == ["main", "registry.example/none:1", "app=old,tier=front"]


def test_a_free_pod_is_adopted_and_one_that_is_relabelled_is_replaced(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("stray", labels=LABELS))
    here.make(REPLICATIONCONTROLLERS, "r", spec=spec(replicas=1))
    eventually(lambda: pods_of(here, "r"), ["stray"])
    here.patch(PODS, "stray", {"metadata": {"labels": {"app": "debug"}}})
    eventually(lambda: pods_of(here, "r"), lambda names: len(names) == 1 and names != ["stray"])
    assert not here.get(PODS, "stray")["metadata"].get("ownerReferences")


def test_a_plain_delete_leaves_the_pods_and_one_in_the_background_takes_them(here: ScratchNamespace) -> None:
    here.make(REPLICATIONCONTROLLERS, "r", spec=spec(replicas=1))
    (name,) = eventually(lambda: pods_of(here, "r"), lambda names: len(names) == 1)
    here.api.send("DELETE", here.path(REPLICATIONCONTROLLERS, "r"))
    eventually(lambda: here.list(REPLICATIONCONTROLLERS).items, [])
    assert not here.get(PODS, name)["metadata"].get("ownerReferences")
    here.make(REPLICATIONCONTROLLERS, "again", spec=spec(replicas=1))
    eventually(lambda: pods_of(here, "again"), [name])
    here.delete(REPLICATIONCONTROLLERS, "again", propagation="Background")
    eventually(lambda: here.list(PODS).items, [])


def test_pods_that_a_quota_refuses_are_reported(here: ScratchNamespace) -> None:
    here.make(QUOTAS, "q", spec={"hard": {"pods": "1", "replicationcontrollers": "1"}})
    eventually(lambda: here.get(QUOTAS, "q").get("status", {}).get("used"), lambda used: bool(used))
    here.make(REPLICATIONCONTROLLERS, "r", spec=spec(replicas=2))

    def refusal() -> list[tuple[str, str]]:
        found = here.get(REPLICATIONCONTROLLERS, "r")["status"].get("conditions") or []
        return [(condition["type"], condition["reason"]) for condition in found]

    eventually(refusal, [("ReplicaFailure", "FailedCreate")])
    eventually(lambda: here.get(QUOTAS, "q")["status"]["used"], {"pods": "1", "replicationcontrollers": "1"})
    status = here.api.refuse("POST", here.path(REPLICATIONCONTROLLERS), a(REPLICATIONCONTROLLERS, "more", spec=spec()))
    assert "exceeded quota: q, requested: replicationcontrollers=1" in status["message"]
    here.patch(REPLICATIONCONTROLLERS, "r", {"spec": {"replicas": 1}}, subresource="scale")
    eventually(refusal, [])
