"""Rules between the fields of a custom kind (CEL): every way to write an object is judged by them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlecloud.kube.resource import Object, Resource

from . import widgets as kinds
from .world import CRDS, Api, ScratchNamespace, a, eventually

NUMBER = {"type": "integer"}
RULES = {
    "bounds": "!has(self.low) || self.low <= self.replicas",
    "inner": "!has(self.inner) || (has(self.inner.count) ? self.inner.count : 0) + self.replicas < 10",
    "word": "!has(self.word) || self.word in ['one', 'two'] && size(self.word) == 3",
    "fixed": "!has(oldSelf.word) || has(self.word) && self.word == oldSelf.word",
    "path": "!has(self.path) || self.path.startsWith('/') && !self.path.endsWith('/') && !self.path.contains('//')",
}
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {**NUMBER, "default": 1},
                "low": NUMBER,
                "inner": {"type": "object", "properties": {"count": NUMBER}},
                "word": {"type": "string", "maxLength": 20},
                "path": {"type": "string"},
            },
            "x-kubernetes-validations": [{"rule": rule, "message": f"breaks {name}"} for name, rule in RULES.items()],
        },
        "status": {"type": "object", "properties": {"replicas": NUMBER, "selector": {"type": "string"}}},
    },
}


def definition(group: str, plural: str) -> Object:
    crd = kinds.definition(group, plural, "Ruled", schema=SCHEMA)
    del crd["spec"]["versions"][0]["additionalPrinterColumns"]
    return crd


@pytest.fixture(scope="module")
def ruled(api: Api, group: str) -> Iterator[Resource]:
    crd = definition(f"rules.{group}", "ruleds")
    yield kinds.install(api, crd)
    ScratchNamespace(api, "").delete(CRDS, crd["metadata"]["name"])


def refusal(status: Object) -> str:
    assert (status["code"], status["reason"], status["details"]["kind"]) == (422, "Invalid", "Ruled")
    (cause,) = status["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("spec", "FieldValueInvalid")
    return str(cause["message"])


@pytest.mark.parametrize(
    ("spec", "broken"),
    [
        ({}, ""),
        ({"low": 1}, ""),
        ({"low": 2}, "bounds"),
        ({"low": 2, "replicas": 2}, ""),
        ({"inner": {}}, ""),
        ({"inner": {"count": 9}}, "inner"),
        ({"inner": {"count": 8}}, ""),
        ({"word": "one"}, ""),
        ({"word": "three"}, "word"),
        ({"path": "/a/b"}, ""),
        ({"path": "a"}, "path"),
        ({"path": "/a/"}, "path"),
        ({"path": "/a//b"}, "path"),
    ],
)
def test_an_object_that_breaks_a_rule_is_not_created(
    here: ScratchNamespace, ruled: Resource, spec: Object, broken: str
) -> None:
    body = a(ruled, "r", spec=spec)
    if not broken:
        here.create(ruled, body)
    else:
        assert f"breaks {broken}" in refusal(here.api.refuse("POST", here.path(ruled), body))


def test_a_rule_holds_for_updates_patches_and_the_scale(here: ScratchNamespace, ruled: Resource) -> None:
    here.make(ruled, "r", spec={"low": 2, "replicas": 3})
    scale = here.api.fetch(here.path(ruled, "r", "scale"))
    scale["spec"]["replicas"] = 1
    assert "breaks bounds" in refusal(here.api.refuse("PUT", here.path(ruled, "r", "scale"), scale))
    whole = here.get(ruled, "r")
    whole["spec"]["replicas"] = 1
    assert "breaks bounds" in refusal(here.api.refuse("PUT", here.path(ruled, "r"), whole))
    assert here.get(ruled, "r")["spec"] == {"low": 2, "replicas": 3}
    here.patch(ruled, "r", {"spec": {"replicas": 2}}, subresource="scale")


def test_a_rule_may_compare_a_change_with_what_it_replaces(here: ScratchNamespace, ruled: Resource) -> None:
    here.make(ruled, "r", spec={"replicas": 1})
    here.patch(ruled, "r", {"spec": {"word": "one"}})
    merge = "application/merge-patch+json"
    for word in ("two", None):
        change = {"spec": {"word": word}}
        said = here.api.refuse("PATCH", here.path(ruled, "r"), change, content_type=merge)
        assert "breaks fixed" in refusal(said)
    here.patch(ruled, "r", {"spec": {"replicas": 2}})
    here.patch(ruled, "r", {"status": {"replicas": 2}}, subresource="status")


def test_a_rule_of_the_whole_object_sees_its_name_and_its_status(here: ScratchNamespace, group: str) -> None:
    crd = definition(f"named.{group}", "nameds")
    whole = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    short = "has(self.status) || size(self.metadata.name) <= 4 && self.metadata.name >= 'a'"
    kept = (
        "!has(oldSelf.status) || !has(oldSelf.status.selector) || "
        "(has(self.spec.word) ? self.spec.word : '') in [oldSelf.status.selector]"
    )
    whole["x-kubernetes-validations"] = [
        {"rule": short, "message": "breaks short"},
        {"rule": kept, "message": "breaks kept"},
    ]
    resource = kinds.install(here.api, crd)
    try:
        for name in ("fives", "1one"):
            said = here.api.refuse("POST", here.path(resource), a(resource, name, status={"replicas": 1}))
            assert "breaks short" in said["message"], "a status does not come with a new object"
        here.make(resource, "four", spec={"word": "one"})
        here.patch(resource, "four", {"status": {"selector": "one"}}, subresource="status")
        merge = "application/merge-patch+json"
        change = {"spec": {"word": None}}
        assert (
            "breaks kept"
            in here.api.refuse("PATCH", here.path(resource, "four"), change, content_type=merge)["message"]
        )
        here.patch(resource, "four", {"spec": {"replicas": 2}})
        here.patch(resource, "four", {"metadata": {"labels": {"a": "b"}}})
    finally:
        ScratchNamespace(here.api, "").delete(CRDS, crd["metadata"]["name"])


def test_an_object_stored_before_its_rule_may_be_labelled_reported_on_and_mended(
    here: ScratchNamespace, group: str
) -> None:
    crd = definition(f"older.{group}", "olders")
    versions = crd["spec"]["versions"]
    spec = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = spec.pop("x-kubernetes-validations")
    resource = kinds.install(here.api, crd)
    everywhere = ScratchNamespace(here.api, "")
    try:
        here.make(resource, "r", spec={"low": 5})
        spec["x-kubernetes-validations"] = rules
        everywhere.patch(CRDS, crd["metadata"]["name"], {"spec": {"versions": versions}})
        broken = a(resource, "s", spec={"low": 5})
        query = {"dryRun": "All"}
        eventually(lambda: here.api.send("POST", here.path(resource), broken, query=query).status, 422)

        here.patch(resource, "r", {"metadata": {"labels": {"a": "b"}}})
        here.patch(resource, "r", {"status": {"replicas": 1}}, subresource="status")
        change = {"spec": {"word": "one"}}
        merge = "application/merge-patch+json"
        said = here.api.refuse("PATCH", here.path(resource, "r"), change, content_type=merge)
        assert "breaks bounds" in refusal(said)
        here.patch(resource, "r", {"spec": {"replicas": 5}}, subresource="scale")
    finally:
        everywhere.delete(CRDS, crd["metadata"]["name"])
