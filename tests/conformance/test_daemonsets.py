"""DaemonSets as an API: defaults, what is refused, columns, patches, status. No node has the label they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import CONTROLLERREVISIONS, DAEMONSETS, Object

from .world import TABLE, ScratchNamespace, a, eventually

LABELS = {"app": "agent"}
NOWHERE = {"conformance.example/none": "there"}
POD = {"nodeSelector": NOWHERE, "containers": [{"name": "main", "image": "registry.example/none:1"}]}
TEMPLATE: Object = {"metadata": {"labels": LABELS}, "spec": POD}


def spec(**fields: Any) -> Object:
    return {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, **fields}


def test_a_daemon_set_gets_its_defaults(here: ScratchNamespace) -> None:
    made = here.make(DAEMONSETS, "d", spec=spec())
    assert made["spec"]["revisionHistoryLimit"] == 10
    assert made["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "1"
    owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:annotations"]
    assert "f:deprecated.daemonset.template.generation" in owned, "its creator owns it"
    required = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    assert {name: made["status"][name] for name in required} == dict.fromkeys(required, 0)


def on_the_network_of_the_host(**port: int) -> Object:
    container = {"name": "main", "image": "registry.example/none:1", "ports": [{"containerPort": 80, **port}]}
    return {**TEMPLATE, "spec": {**POD, "hostNetwork": True, "containers": [container]}}


def test_a_template_may_leave_the_port_of_the_host_to_its_pods(here: ScratchNamespace) -> None:
    made = here.make(DAEMONSETS, "d", spec=spec(template=on_the_network_of_the_host()))
    assert "hostPort" not in made["spec"]["template"]["spec"]["containers"][0]["ports"][0]


ROLLING = "spec.updateStrategy.rollingUpdate"
BAD: list[tuple[Object, str, str]] = [
    (
        {"template": on_the_network_of_the_host(hostPort=81)},
        "spec.template.spec.containers[0].ports[0].hostPort",
        "FieldValueInvalid",
    ),
    ({"selector": {}}, "spec.selector", "FieldValueInvalid"),
    ({"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels", "FieldValueInvalid"),
    ({"minReadySeconds": -1}, "spec.minReadySeconds", "FieldValueInvalid"),
    (
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        f"{ROLLING}.maxUnavailable",
        "FieldValueRequired",
    ),
    ({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}, f"{ROLLING}.maxSurge", "FieldValueInvalid"),
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
    status = here.api.refuse("POST", here.path(DAEMONSETS), a(DAEMONSETS, "d", spec=spec(**fields)))
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert (field, reason) in {(cause["field"], cause["reason"]) for cause in status["details"]["causes"]}


def test_the_selector_may_not_change(here: ScratchNamespace) -> None:
    made = here.make(DAEMONSETS, "d", spec=spec())
    made["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    del made["metadata"]["resourceVersion"]  # its controller may have written the status meanwhile
    status = here.api.refuse("PUT", here.path(DAEMONSETS, "d"), made)
    assert "field is immutable" in status["message"]


def test_a_change_of_the_template_is_counted(here: ScratchNamespace) -> None:
    here.make(DAEMONSETS, "d", spec=spec())
    labelled = here.patch(DAEMONSETS, "d", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "1"
    containers = [{"name": "main", "image": "registry.example/none:2"}]
    patched = here.patch(
        DAEMONSETS, "d", {"spec": {"template": {"spec": {"containers": containers}}}}, kind="strategic"
    )
    assert patched["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "2"
    assert patched["metadata"]["generation"] == 2


def test_the_template_is_kept_as_a_revision_of_the_set(here: ScratchNamespace) -> None:
    made = here.make(DAEMONSETS, "d", spec=spec())
    listed = eventually(lambda: here.list(CONTROLLERREVISIONS, label_selector="app=agent").items, bool)
    (revision,) = listed
    mark = revision["metadata"]["labels"]["controller-revision-hash"]
    assert revision["metadata"]["name"] == f"d-{mark}"
    (owner,) = revision["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("DaemonSet", made["metadata"]["uid"], True)
    assert revision["revision"] == 1
    assert revision["data"]["spec"]["template"]["$patch"] == "replace"


def test_its_controller_reports_what_generation_it_has_seen(here: ScratchNamespace) -> None:
    here.make(DAEMONSETS, "d", spec=spec())
    eventually(lambda: here.get(DAEMONSETS, "d")["status"].get("observedGeneration"), 1)
    here.patch(DAEMONSETS, "d", {"spec": {"minReadySeconds": 5}})
    eventually(lambda: here.get(DAEMONSETS, "d")["status"].get("observedGeneration"), 2)


def test_columns(here: ScratchNamespace) -> None:
    here.make(DAEMONSETS, "d", spec=spec())
    found = here.api.fetch(here.path(DAEMONSETS), accept=TABLE)
    assert [column["name"] for column in found["columnDefinitions"]] == [
        "Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age",
        "Containers", "Images", "Selector",
    ]  # fmt: skip
    (row,) = found["rows"]
    assert row["cells"][:7] == ["d", 0, 0, 0, 0, 0, "conformance.example/none=there"]
    assert row["cells"][8:] == ["main", "registry.example/none:1", "app=agent"]
