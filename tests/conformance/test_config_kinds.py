"""ConfigMaps, Secrets and PodTemplates: what they take, and what stays fixed when they are immutable."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, SECRETS, Object, Resource

from .world import TABLE, ScratchNamespace

HELLO = "aGVsbG8="


def test_text_and_bytes_live_beside_each_other(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"text": "hello\n世界"}, binaryData={"bytes": HELLO})
    assert (made["data"], made["binaryData"]) == ({"text": "hello\n世界"}, {"bytes": HELLO})


@pytest.mark.parametrize(
    ("resource", "fields", "code", "why"),
    [
        (CONFIGMAPS, {"data": {"bad key": "x"}}, 422, "bad key"),
        (CONFIGMAPS, {"data": {"..": "x"}}, 422, r"\.\."),
        (CONFIGMAPS, {"data": {"k": "x"}, "binaryData": {"k": HELLO}}, 422, "k"),
        (CONFIGMAPS, {"binaryData": {"k": "not base64!"}}, 400, "base64"),
        (CONFIGMAPS, {"data": {"k": 1}}, 400, "number"),
        (CONFIGMAPS, {"data": {"k": "x" * ((1 << 20) + 1)}}, 422, "1048576"),
        (SECRETS, {"data": {"k": "not base64!"}}, 400, "base64"),
        (SECRETS, {"stringData": {"bad key": "x"}}, 422, "bad key"),
        (SECRETS, {"type": "kubernetes.io/dockerconfigjson"}, 422, r"data\[.dockerconfigjson\]"),
        (SECRETS, {"type": "kubernetes.io/tls", "stringData": {"tls.crt": "x"}}, 422, r"data\[tls.key\]"),
        (SECRETS, {"type": "kubernetes.io/basic-auth"}, 422, "username|password"),
    ],
)
def test_what_they_cannot_hold_is_refused(
    here: ScratchNamespace, resource: Resource, fields: Any, code: int, why: str
) -> None:
    with pytest.raises(errors.ApiError, match=why) as refused:
        here.make(resource, "x", **fields)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("resource", "fields", "change"),
    [
        (CONFIGMAPS, {"data": {"k": "v"}}, {"data": {"k": "w"}}),
        (CONFIGMAPS, {"binaryData": {"k": HELLO}}, {"binaryData": None}),
        (SECRETS, {"data": {"k": HELLO}}, {"data": {"l": HELLO}}),
    ],
)
def test_an_immutable_one_keeps_its_data(
    here: ScratchNamespace, resource: Resource, fields: Object, change: Object
) -> None:
    here.make(resource, "x", immutable=True, **fields)
    with pytest.raises(errors.Invalid, match="field is immutable when `immutable` is set"):
        here.patch(resource, "x", change)
    with pytest.raises(errors.Invalid, match="field is immutable when `immutable` is set"):
        here.patch(resource, "x", {"immutable": False})
    assert here.patch(resource, "x", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
    here.delete(resource, "x")


def test_a_mutable_one_can_be_frozen(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", data={"k": "v"})
    assert here.patch(CONFIGMAPS, "c", {"immutable": True})["immutable"] is True


def test_the_type_of_a_secret_is_fixed(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s", type="example.org/one")
    with pytest.raises(errors.Invalid, match="type: Invalid value.*field is immutable"):
        here.patch(SECRETS, "s", {"type": "example.org/two"})


def test_secrets_are_found_by_type(here: ScratchNamespace) -> None:
    here.make(SECRETS, "a", type="example.org/one")
    here.make(SECRETS, "b")
    assert here.names(SECRETS, fields="type=Opaque") == ["b"]


def test_string_data_wins_and_leaves_no_trace(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s", data={"k": HELLO})
    patched = here.patch(SECRETS, "s", {"stringData": {"k": "other"}})
    assert patched["data"] == {"k": "b3RoZXI="}
    assert "stringData" not in patched


# PodTemplates ---------------------------------------------------------------------------------------------------------

PODTEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate")
POD = {"containers": [{"name": "main", "image": "registry.example/none:1"}]}


def test_a_pod_template_is_kept_with_the_defaults_of_its_pods(here: ScratchNamespace) -> None:
    made = here.make(PODTEMPLATES, "t", template={"metadata": {"labels": {"a": "b"}}, "spec": POD})
    assert made["template"]["spec"]["restartPolicy"] == "Always"
    assert made["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert made["metadata"]["generation"] == 1
    patched = here.patch(PODTEMPLATES, "t", {"template": {"spec": {"hostname": "x"}}}, kind="strategic")
    assert (patched["metadata"]["generation"], patched["template"]["spec"]["hostname"]) == (2, "x")
    assert here.delete(PODTEMPLATES, "t")["kind"] == "PodTemplate"


def test_a_pod_template_describes_a_pod(here: ScratchNamespace) -> None:
    with pytest.raises(errors.Invalid, match="template.spec.containers: Required value"):
        here.make(PODTEMPLATES, "t", template={"spec": {}})


def test_columns_of_pod_templates(here: ScratchNamespace) -> None:
    here.make(PODTEMPLATES, "t", template={"metadata": {"labels": {"a": "b"}}, "spec": POD})
    found = here.api.fetch(here.path(PODTEMPLATES), accept=TABLE)
    assert [(column["name"], column["priority"]) for column in found["columnDefinitions"]] == [
        ("Name", 0), ("Containers", 0), ("Images", 0), ("Pod Labels", 0),
    ]  # fmt: skip
    assert found["rows"][0]["cells"] == ["t", "main", "registry.example/none:1", "a=b"]
