"""Field validation: unknown and doubled fields are errors, warnings or nothing, as the client asked."""

from __future__ import annotations

import json

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.client import FieldValidation, PatchKind
from paddlecloud.kube.resource import CONFIGMAPS, PODS, Object, Resource

from .world import DEPLOYMENTS, ScratchNamespace, a, sleeping_pod


def misspelt(name: str) -> Object:
    pod = sleeping_pod(name)
    pod["spec"]["restartPolizy"] = "Never"
    pod["spec"]["containers"][0]["imag"] = "x"
    return pod


def test_strict_refuses_unknown_fields_and_names_them_all(here: ScratchNamespace) -> None:
    with pytest.raises(errors.BadRequest, match="strict decoding error") as refused:
        here.create(PODS, misspelt("p"), field_validation="Strict")
    assert 'unknown field "spec.restartPolizy"' in refused.value.message
    assert 'unknown field "spec.containers[0].imag"' in refused.value.message
    assert not here.exists(PODS, "p")


def test_warn_is_the_default_and_says_so_in_headers(here: ScratchNamespace) -> None:
    here.create(PODS, misspelt("p"))
    assert 'unknown field "spec.restartPolizy"' in here.api.warnings
    assert 'unknown field "spec.containers[0].imag"' in here.api.warnings
    assert here.exists(PODS, "p")


def test_ignore_says_nothing(here: ScratchNamespace) -> None:
    here.create(PODS, misspelt("p"), field_validation="Ignore")
    assert here.api.warnings == []
    assert here.exists(PODS, "p")


@pytest.mark.parametrize("mode", ["Ignore", "Warn"])
def test_built_in_kinds_lose_unknown_fields_with_every_write(here: ScratchNamespace, mode: FieldValidation) -> None:
    more = {"roleRef": {"kind": "Role", "name": "x"}, "extra": "x"}
    made = here.create(PODS, {**misspelt("p"), **more}, field_validation=mode)
    updated = here.update(CONFIGMAPS, {**here.make(CONFIGMAPS, "c"), **more}, field_validation=mode)
    patched = [
        here.patch(CONFIGMAPS, "c", {**more, "data": {"a": kind}}, kind=kind, field_validation=mode)
        for kind in ("merge", "strategic")
    ]
    for obj in (made, updated, *patched, here.get(PODS, "p"), here.get(CONFIGMAPS, "c")):
        assert not more.keys() & obj.keys()
        assert "f:extra" not in str(obj["metadata"])
    assert "restartPolizy" not in made["spec"]
    assert "imag" not in made["spec"]["containers"][0]


def test_known_fields_raise_no_warning(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("p"), field_validation="Strict")
    assert here.api.warnings == []


def test_custom_kinds_are_checked_against_their_schema(here: ScratchNamespace, widgets: Resource) -> None:
    with pytest.raises(errors.BadRequest, match='unknown field "spec.sise"'):
        here.create(widgets, a(widgets, "w", spec={"sise": 1}), field_validation="Strict")
    made = here.create(widgets, a(widgets, "w", spec={"sise": 1, "size": 2}))
    assert here.api.warnings == ['unknown field "spec.sise"']
    assert made["spec"] == {"size": 2}


def test_where_unknown_fields_are_kept_they_are_welcome(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.create(widgets, a(widgets, "w", spec={"free": {"any": {"thing": 1}}}), field_validation="Strict")
    assert made["spec"]["free"] == {"any": {"thing": 1}}


def test_unknown_metadata_is_noticed_too(here: ScratchNamespace, widgets: Resource) -> None:
    for resource in (CONFIGMAPS, widgets):
        obj = a(resource, "x")
        obj["metadata"]["lables"] = {"a": "b"}
        with pytest.raises(errors.BadRequest, match='unknown field "metadata.lables"'):
            here.create(resource, obj, field_validation="Strict")


@pytest.mark.parametrize("kind", ["merge", "strategic"])
def test_patches_are_checked_too(here: ScratchNamespace, kind: PatchKind) -> None:
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    here.make(DEPLOYMENTS, "d", spec=spec)
    with pytest.raises(errors.ApiError, match='strict decoding error: unknown field "spec.replica"') as refused:
        here.patch(DEPLOYMENTS, "d", {"spec": {"replica": 3}}, kind=kind, field_validation="Strict")
    assert refused.value.code in (400, 422)


def test_updates_are_checked_too(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c")
    with pytest.raises(errors.BadRequest, match='unknown field "dta"'):
        here.update(CONFIGMAPS, {**made, "dta": {}}, field_validation="Strict")


@pytest.mark.parametrize("resource", ["configmaps", "widgets"])
def test_a_field_given_twice_is_noticed(here: ScratchNamespace, widgets: Resource, resource: str) -> None:
    kind = {"configmaps": CONFIGMAPS, "widgets": widgets}[resource]
    body = b'{"apiVersion":"%s","kind":"%s","metadata":{"name":"x","name":"y"}}' % (
        kind.api_version.encode(),
        kind.kind.encode(),
    )
    status = here.api.refuse("POST", here.path(kind), body, query={"fieldValidation": "Strict"})
    assert status["code"] == 400
    assert 'duplicate field "metadata.name"' in status["message"]


def test_unknown_and_doubled_fields_are_named_together(here: ScratchNamespace) -> None:
    body = b'{"metadata":{"name":"x"},"unknown":1,"data":{"k":"1","k":"2"}}'
    status = here.api.refuse("POST", here.path(CONFIGMAPS), body, query={"fieldValidation": "Strict"})
    assert 'strict decoding error: unknown field "unknown", duplicate field "data.k"' in status["message"]


def test_a_doubled_field_of_applied_yaml_is_named_with_its_line(here: ScratchNamespace, widgets: Resource) -> None:
    for kind in (CONFIGMAPS, widgets):
        body = f"apiVersion: {kind.api_version}\nkind: {kind.kind}\nmetadata:\n  name: x\n  name: x\n"
        status = here.api.refuse(
            "PATCH", here.path(kind, "x"), body.encode(), content_type="application/apply-patch+yaml",
            query={"fieldManager": "t", "fieldValidation": "Strict"},
        )  # fmt: skip
        assert status["code"] == 400
        assert 'line 5: key "name" already set in map' in status["message"]


@pytest.mark.parametrize("mode", ["Ignore", "Warn", "Strict"])
@pytest.mark.parametrize("place", ["spec", "metadata"])
def test_a_field_that_a_custom_kind_does_not_have_is_never_applied(
    here: ScratchNamespace, widgets: Resource, mode: str, place: str
) -> None:
    obj = a(widgets, "w", spec={"size": 1, "free": {"any": 1}})
    obj[place]["sise"] = 1
    refused = here.api.refuse(
        "PATCH", here.path(widgets, "w"), json.dumps(obj).encode(), content_type="application/apply-patch+yaml",
        query={"fieldManager": "t", "fieldValidation": mode},
    )  # fmt: skip
    assert refused["code"] in (400, 500)
    assert f".{place}.sise: field not declared in schema" in refused["message"]
    assert not here.exists(widgets, "w")


def test_an_unknown_mode_is_refused(here: ScratchNamespace) -> None:
    status = here.api.refuse("POST", here.path(CONFIGMAPS), a(CONFIGMAPS, "c"), query={"fieldValidation": "Maybe"})
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert "fieldValidation" in status["message"]


@pytest.mark.parametrize("mode", ["Ignore", "Warn", "Strict"])
@pytest.mark.parametrize("there", [False, True], ids=["to create", "to change"])
def test_a_field_that_a_built_in_kind_does_not_have_is_never_applied(
    here: ScratchNamespace, mode: str, there: bool
) -> None:
    if there:
        here.create(PODS, sleeping_pod("p"))
    refused = here.api.refuse(
        "PATCH", f"{here.path(PODS)}/p", json.dumps({**misspelt("p"), "extra": 1}).encode(),
        content_type="application/apply-patch+yaml", query={"fieldManager": "t", "fieldValidation": mode},
    )  # fmt: skip
    assert refused["code"] in (400, 500)
    assert "failed to create typed patch object" in refused["message"]
    named = [f for f in (".spec.restartPolizy", ".imag", ".extra") if f"{f}: field not declared" in refused["message"]]
    assert named, "kube-apiserver names those that it comes upon before it stops, in any order"
    assert here.exists(PODS, "p") is there
