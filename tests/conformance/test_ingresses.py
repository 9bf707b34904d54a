"""Ingresses and IngressClasses as an API: defaults, what is refused, columns, status. Nobody carries them out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import INGRESSCLASSES, INGRESSES, Object

from .world import TABLE, Api, ScratchNamespace, a, eventually

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
WEB = {"service": {"name": "web", "port": {"number": 80}}}
CONTROLLER = "conformance.example.org/nobody"
PATH = "spec.rules[0].http.paths[0]"

MakeClass = Callable[..., Object]


@pytest.fixture
def make_class(clusterwide: ScratchNamespace, namespace: str) -> Iterator[MakeClass]:
    """Classes of this test's own: `make_class("a", spec={...})`; the name gets the namespace's before it."""
    made: list[str] = []

    def make(name: str, **fields: Any) -> Object:
        obj = clusterwide.make(INGRESSCLASSES, f"{namespace}-{name}", **{"spec": {"controller": CONTROLLER}, **fields})
        made.append(obj["metadata"]["name"])
        return obj

    yield make
    for name in made:
        clusterwide.delete(INGRESSCLASSES, name)


def to(path: str = "/", **fields: Any) -> Object:
    return {"rules": [{"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": WEB, **fields}]}}]}


def test_an_ingress_is_kept_as_it_was_written(here: ScratchNamespace) -> None:
    spec = {"ingressClassName": "none", "tls": [{"hosts": ["a.example.org"], "secretName": "keys"}], **to("/shop")}
    made = here.make(INGRESSES, "i", spec=spec)
    assert made["spec"] == spec
    assert made["status"] == {"loadBalancer": {}}
    assert made["metadata"]["generation"] == 1
    changed = here.patch(INGRESSES, "i", {"spec": {"tls": None}})
    assert changed["metadata"]["generation"] == 2
    assert here.names(INGRESSES) == ["i"]
    here.delete(INGRESSES, "i")
    assert not here.exists(INGRESSES, "i")


def test_what_a_creator_says_of_the_status_is_not_kept_and_a_controller_writes_it(here: ScratchNamespace) -> None:
    reported = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    assert here.make(INGRESSES, "i", spec=to(), status=reported)["status"] == {"loadBalancer": {}}
    assert here.patch(INGRESSES, "i", {"status": reported}, subresource="status")["status"] == reported
    assert here.patch(INGRESSES, "i", {"status": None, "metadata": {"labels": {"a": "b"}}})["status"] == reported
    assert here.get(INGRESSES, "i")["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("entry", "field"),
    [({"ip": "here"}, "ip"), ({"hostname": "A_b"}, "hostname"), ({"hostname": "192.0.2.1"}, "hostname")],
)
def test_a_status_without_a_usable_address_is_refused(here: ScratchNamespace, entry: Object, field: str) -> None:
    here.make(INGRESSES, "i", spec=to())
    status = here.api.refuse(
        "PATCH", here.path(INGRESSES, "i", "status"), {"status": {"loadBalancer": {"ingress": [entry]}}},
        content_type="application/merge-patch+json",
    )  # fmt: skip
    assert status["details"]["causes"][0]["field"] == f"status.loadBalancer.ingress[0].{field}"


BAD: list[tuple[Object, str, str]] = [
    ({}, "spec", "FieldValueInvalid"),
    ({"defaultBackend": {}}, "spec.defaultBackend", "FieldValueInvalid"),
    ({"defaultBackend": {"service": {"name": "web"}}}, "spec.defaultBackend", "FieldValueRequired"),
    (
        {"defaultBackend": {"service": {"name": "Web", "port": {"number": 80}}}},
        "spec.defaultBackend.service.name",
        "FieldValueInvalid",
    ),
    (
        {"defaultBackend": {**WEB, "resource": {"kind": "A", "name": "a"}}},
        "spec.defaultBackend",
        "FieldValueInvalid",
    ),
    (to(pathType=None), f"{PATH}.pathType", "FieldValueRequired"),
    (to(pathType="Regex"), f"{PATH}.pathType", "FieldValueNotSupported"),
    (to("shop"), f"{PATH}.path", "FieldValueInvalid"),
    (to("/a/../b"), f"{PATH}.path", "FieldValueInvalid"),
    ({"rules": [{"host": "192.0.2.1"}]}, "spec.rules[0].host", "FieldValueInvalid"),
    ({"rules": [{"host": "*.*.example.org"}]}, "spec.rules[0].host", "FieldValueInvalid"),
    ({"rules": [{"http": {"paths": []}}]}, "spec.rules[0].http.paths", "FieldValueRequired"),
    ({**to(), "ingressClassName": "A"}, "spec.ingressClassName", "FieldValueInvalid"),
    ({**to(), "tls": [{"secretName": "A"}]}, "spec.tls[0].secretName", "FieldValueInvalid"),
]


@pytest.mark.parametrize(("spec", "field", "reason"), BAD)
def test_an_ingress_that_leads_nowhere_is_refused(
    here: ScratchNamespace, spec: Object, field: str, reason: str
) -> None:
    status = here.api.refuse("POST", here.path(INGRESSES), a(INGRESSES, "i", spec=spec))
    assert status["code"] == 422
    assert (field, reason) in {(cause["field"], cause["reason"]) for cause in status["details"]["causes"]}


def test_an_ingress_without_a_class_gets_the_default_one(here: ScratchNamespace, make_class: MakeClass) -> None:
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"}
    name = make_class("default", annotations=mark)["metadata"]["name"]

    def chosen(**fields: Any) -> Any:
        obj = {**a(INGRESSES, "i", **fields)}
        return here.create(INGRESSES, obj, dry_run=True)["spec"].get("ingressClassName")

    eventually(lambda: chosen(spec=to()), name)
    assert chosen(spec={**to(), "ingressClassName": "other"}) == "other"
    assert chosen(spec=to(), annotations={CLASS_ANNOTATION: "older"}) is None


def test_the_annotation_that_named_classes_before_is_warned_of(here: ScratchNamespace, api: Api) -> None:
    here.make(INGRESSES, "i", spec=to(), annotations={CLASS_ANNOTATION: "older"})
    assert any(CLASS_ANNOTATION in warning and "spec.ingressClassName" in warning for warning in api.warnings)
    with pytest.raises(errors.Invalid, match="must match `ingressClassName` when both are specified"):
        here.make(INGRESSES, "j", spec={**to(), "ingressClassName": "a"}, annotations={CLASS_ANNOTATION: "b"})


def test_parameters_of_a_class_are_of_the_cluster_unless_they_say_otherwise(make_class: MakeClass) -> None:
    reference = {"apiGroup": "example.org", "kind": "Gate", "name": "g"}
    made = make_class("a", spec={"controller": CONTROLLER, "parameters": reference})
    assert made["spec"]["parameters"] == {**reference, "scope": "Cluster"}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.controller"),
        ({"controller": "nobody"}, "spec.controller"),
        ({"controller": CONTROLLER, "parameters": {"kind": "Gate"}}, "spec.parameters.name"),
        (
            {"controller": CONTROLLER, "parameters": {"kind": "G", "name": "g", "scope": "Namespace"}},
            "spec.parameters.namespace",
        ),
        (
            {"controller": CONTROLLER, "parameters": {"kind": "G", "name": "g", "namespace": "n"}},
            "spec.parameters.namespace",
        ),
    ],
)
def test_a_class_that_no_controller_could_read_is_refused(
    clusterwide: ScratchNamespace, spec: Object, field: str
) -> None:
    obj = a(INGRESSCLASSES, "conformance-refused", spec=spec)
    status = clusterwide.api.refuse("POST", clusterwide.path(INGRESSCLASSES), obj)
    assert field in {cause["field"] for cause in status["details"]["causes"]}


def test_the_controller_of_a_class_is_fixed(clusterwide: ScratchNamespace, make_class: MakeClass) -> None:
    name = make_class("a")["metadata"]["name"]
    with pytest.raises(errors.Invalid, match="spec.controller: Invalid value.*field is immutable"):
        clusterwide.patch(INGRESSCLASSES, name, {"spec": {"controller": f"{CONTROLLER}-2"}})


def test_columns(here: ScratchNamespace, make_class: MakeClass) -> None:
    spec = {"rules": [{"host": "a.example.org"}, {"host": "b.example.org"}], "tls": [{"hosts": ["a.example.org"]}]}
    here.make(INGRESSES, "i", spec={**spec, "ingressClassName": "none"})
    table = here.api.fetch(here.path(INGRESSES), accept=TABLE)
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Class", "Hosts", "Address", "Ports", "Age"]
    assert table["rows"][0]["cells"][:5] == ["i", "none", "a.example.org,b.example.org", "", "80, 443"]
    name = make_class("a")["metadata"]["name"]
    table = here.api.fetch(INGRESSCLASSES.path("", name), accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Controller", "Parameters", "Age"]
    assert table["rows"][0]["cells"][:3] == [name, CONTROLLER, "<none>"]
