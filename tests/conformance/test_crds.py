"""CustomResourceDefinitions: which are accepted, what they bring, how they leave."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object, Resource

from .widgets import COLUMNS, STRING, definition, install
from .world import CRDS, Api, ScratchNamespace, eventually

_numbers = itertools.count(1)

Define = Callable[..., Resource]


@pytest.fixture
def define(api: Api, group: str) -> Iterator[Define]:
    """Install a kind for one test: `define(schema=..., scope=...)`."""
    made: list[str] = []

    def run(**options: Any) -> Resource:
        number = next(_numbers)
        crd = definition(group, f"gadget{number}s", f"Gadget{number}", **options)
        made.append(crd["metadata"]["name"])
        return install(api, crd)

    yield run
    for name in made:
        api.send("DELETE", CRDS.path(None, name))


def crd_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}"


def spec_schema(**properties: Any) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def test_a_definition_is_accepted_and_established(clusterwide: ScratchNamespace, define: Define) -> None:
    resource = define()

    def conditions() -> dict[str, str]:
        found = clusterwide.get(CRDS, crd_name(resource)).get("status", {}).get("conditions", [])
        return {condition["type"]: condition["status"] for condition in found}

    eventually(conditions, {"NamesAccepted": "True", "Established": "True"})
    status = clusterwide.get(CRDS, crd_name(resource))["status"]
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"]["listKind"] == f"{resource.kind}List"
    assert status["acceptedNames"]["singular"] == resource.kind.lower()


def test_a_cluster_wide_kind_has_no_namespace(clusterwide: ScratchNamespace, define: Define) -> None:
    resource = define(scope="Cluster")
    made = clusterwide.make(resource, "g")
    assert "namespace" not in made["metadata"]
    assert clusterwide.names(resource) == ["g"]


def test_a_changed_schema_holds_from_then_on(here: ScratchNamespace, define: Define) -> None:
    resource = define(schema=spec_schema(old=STRING))
    here.make(resource, "g", spec={"old": "1", "new": "lost"})
    assert here.get(resource, "g")["spec"] == {"old": "1"}
    crd = here.get(CRDS, crd_name(resource))
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = spec_schema(old=STRING, new=STRING)
    here.update(CRDS, crd)
    patch = {"spec": {"new": "kept"}}
    eventually(lambda: here.patch(resource, "g", patch)["spec"], {"old": "1", "new": "kept"})


def test_stored_objects_are_read_as_the_schema_of_today_has_them(here: ScratchNamespace, define: Define) -> None:
    resource = define(schema=spec_schema(old=STRING))
    here.make(resource, "g", spec={"old": "1"}, finalizers=["example.org/hold"])
    here.make(resource, "h", spec={"old": "1"})
    crd = here.get(CRDS, crd_name(resource))
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = spec_schema(new={**STRING, "default": "A"})
    here.update(CRDS, crd)
    eventually(lambda: here.get(resource, "g")["spec"], {"new": "A"})
    eventually(lambda: [item["spec"] for item in here.list(resource).items], [{"new": "A"}, {"new": "A"}])
    first = next(here.watch(resource))
    assert (first.type, first.object["spec"]) == ("ADDED", {"new": "A"})
    here.delete(resource, "g")
    assert here.get(resource, "g")["spec"] == {"new": "A"}
    here.patch(resource, "g", {"metadata": {"finalizers": None}})
    here.patch(CRDS, crd_name(resource), {"metadata": {"labels": {"a": "b"}}})
    assert here.get(resource, "h")["spec"] == {"new": "A"}


def test_a_definition_takes_its_objects_along(here: ScratchNamespace, define: Define) -> None:
    resource = define()
    here.make(resource, "g")
    here.delete(CRDS, crd_name(resource))
    eventually(lambda: here.exists(CRDS, crd_name(resource)), False)
    eventually(lambda: here.api.send("GET", here.path(resource)).status, 404)


def test_objects_with_finalizers_hold_their_definition(here: ScratchNamespace, define: Define) -> None:
    resource = define()
    here.make(resource, "g", finalizers=["example.org/hold"])
    here.delete(CRDS, crd_name(resource))
    eventually(lambda: "deletionTimestamp" in here.get(resource, "g")["metadata"], True)
    assert here.exists(CRDS, crd_name(resource))
    here.patch(resource, "g", {"metadata": {"finalizers": None}})
    eventually(lambda: here.exists(CRDS, crd_name(resource)), False)


def test_several_versions_show_the_same_objects(here: ScratchNamespace, api: Api, group: str) -> None:
    crd = definition(group, "doubles", "Double")
    second = copy.deepcopy(crd["spec"]["versions"][0]) | {"name": "v2", "storage": False}
    crd["spec"]["versions"].append(second)
    first = install(api, crd)
    other = first._replace(version="v2")
    try:
        here.make(first, "d", spec={"size": 5})
        found = here.get(other, "d")
        assert (found["apiVersion"], found["spec"]["size"]) == (f"{group}/v2", 5)
        here.patch(other, "d", {"spec": {"size": 6}})
        assert here.get(first, "d")["spec"]["size"] == 6
        assert here.get(first, "d")["apiVersion"] == f"{group}/v1"
        assert [item["apiVersion"] for item in here.list(other).items] == [f"{group}/v2"]
    finally:
        here.delete(CRDS, f"doubles.{group}")


def test_a_version_not_served_is_not_found(here: ScratchNamespace, api: Api, group: str) -> None:
    crd = definition(group, "hiddens", "Hidden")
    hidden = copy.deepcopy(crd["spec"]["versions"][0]) | {"name": "v2", "storage": False, "served": False}
    crd["spec"]["versions"].append(hidden)
    first = install(api, crd)
    try:
        assert api.send("GET", here.path(first._replace(version="v2"))).status == 404
    finally:
        here.delete(CRDS, f"hiddens.{group}")


def test_a_kind_without_columns_shows_its_age(here: ScratchNamespace, api: Api, group: str) -> None:
    from .world import TABLE

    crd = definition(group, "plains", "Plain")
    del crd["spec"]["versions"][0]["additionalPrinterColumns"]
    resource = install(api, crd)
    try:
        found = here.api.fetch(here.path(resource), accept=TABLE)
        assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Age"]
    finally:
        here.delete(CRDS, f"plains.{group}")


# What is refused -----------------------------------------------------------------------------------------------------


def bad(change: Callable[[Object], Any]) -> Callable[[str], Object]:
    def make(group: str) -> Object:
        crd = definition(group, "bads", "Bad")
        change(crd)
        return crd

    return make


def schema_of(crd: Object) -> Any:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (bad(lambda crd: crd["metadata"].update(name="wrong.example.org")), "spec.names.plural"),
        (bad(lambda crd: crd["spec"].update(scope="Galaxy")), "spec.scope"),
        (bad(lambda crd: crd["spec"]["versions"][0].update(storage=False)), "must have exactly one version marked as"),
        (bad(lambda crd: crd["spec"].update(versions=[])), "spec.versions"),
        (bad(lambda crd: crd["spec"]["versions"][0].pop("schema")), "schema"),
        (bad(lambda crd: schema_of(crd).update(type="array")), "type"),
        (bad(lambda crd: schema_of(crd)["properties"]["spec"].pop("type")), "type: Required value"),
        (bad(lambda crd: schema_of(crd)["properties"]["spec"].update({"$ref": "#/x"})), r"\$ref"),
        (
            bad(lambda crd: schema_of(crd)["properties"]["spec"]["properties"]["size"].update(default="x")),
            "default: Invalid value",
        ),
        (
            bad(lambda crd: schema_of(crd)["properties"]["spec"]["properties"]["code"].update(pattern="[")),
            "pattern",
        ),
        (bad(lambda crd: crd["spec"]["names"].update(kind="no spaces")), "spec.names.kind"),
        (bad(lambda crd: crd["spec"]["versions"][0].update(name="Version1")), "spec.versions"),
        (
            bad(lambda crd: crd["spec"]["versions"][0].update(additionalPrinterColumns=[{**COLUMNS[0], "type": "x"}])),
            "additionalPrinterColumns",
        ),
    ],
)
def test_an_unsound_definition_is_refused_with_the_place(
    clusterwide: ScratchNamespace, group: str, make: Callable[[str], Object], why: str
) -> None:
    with pytest.raises(errors.Invalid, match=why):
        clusterwide.create(CRDS, make(group))


def test_group_scope_and_kind_cannot_change(clusterwide: ScratchNamespace, define: Define) -> None:
    name = crd_name(define())
    with pytest.raises(errors.Invalid, match="spec.scope"):
        clusterwide.patch(CRDS, name, {"spec": {"scope": "Cluster"}})
    with pytest.raises(errors.Invalid, match="spec.names.kind"):
        clusterwide.patch(CRDS, name, {"spec": {"names": {"kind": "Other", "listKind": "OtherList"}}})
