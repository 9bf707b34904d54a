"""Objects of custom kinds: pruned, defaulted and validated by their structural schema."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Resource

from .world import CRDS, ScratchNamespace, eventually


def test_unknown_fields_are_pruned(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={"size": 1, "unknown": 1}, extra={"a": 1})
    assert made["spec"] == {"size": 1}
    assert "extra" not in made


def test_unknown_fields_are_kept_where_the_schema_says_so(here: ScratchNamespace, widgets: Resource) -> None:
    free = {"deep": {"er": [1, {"x": None}]}, "b": True}
    assert here.make(widgets, "w", spec={"free": free})["spec"]["free"] == free


def test_defaults_are_filled_in_on_creation_and_update(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={})
    assert made["spec"] == {"size": 3}
    assert here.patch(widgets, "w", {"spec": {"size": None}})["spec"] == {"size": 3}


def test_defaults_do_not_make_their_parents(here: ScratchNamespace, widgets: Resource) -> None:
    assert "spec" not in here.make(widgets, "w")


def test_null_is_dropped_where_it_is_not_allowed(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={"size": None, "note": None})
    assert made["spec"] == {"size": 3, "note": None}


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"size": 0}, "spec.size", "should be greater than or equal to 1"),
        ({"size": 11}, "spec.size", "should be less than or equal to 10"),
        ({"size": "big"}, "spec.size", 'must be of type integer: "string"'),
        ({"size": 1.5}, "spec.size", "must be of type integer"),
        ({"colour": "mauve"}, "spec.colour", 'supported values: "red", "green", "blue"'),
        ({"code": "nope"}, "spec.code", "should match"),
        ({"code": "ab-123456789"}, "spec.code", "Too long: may not be more than 8"),
        ({"tags": ["a", "b", "c", "d"]}, "spec.tags", "Too many: 4: must have at most 3 items"),
        ({"tags": "a"}, "spec.tags", "must be of type array"),
        ({"tags": [1]}, r"spec.tags[0]", "must be of type string"),
        ({"flags": ["a", "a"]}, "spec.flags[1]", "Duplicate value"),
        ({"parts": [{"weight": 1}]}, "spec.parts[0].name", "Required value"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, "spec.parts[1]", "Duplicate value"),
        ({"settings": {"a": 1}}, "spec.settings.a", "must be of type string"),
        ({"port": True}, "spec.port", "must be of type integer,string"),
    ],
)
def test_a_value_outside_the_schema_is_refused_with_its_place(
    here: ScratchNamespace, widgets: Resource, spec: dict[str, Any], field: str, why: str
) -> None:
    with pytest.raises(errors.Invalid) as refused:
        here.make(widgets, "w", spec=spec)
    assert refused.value.details is not None
    causes = refused.value.details["causes"]
    assert field in [cause["field"] for cause in causes]
    assert any(why in cause["message"] for cause in causes), causes


def test_all_mistakes_are_reported_at_once(here: ScratchNamespace, widgets: Resource) -> None:
    with pytest.raises(errors.Invalid) as refused:
        here.make(widgets, "w", spec={"size": 0, "colour": "mauve", "code": "x"})
    assert refused.value.details is not None
    assert {cause["field"] for cause in refused.value.details["causes"]} == {"spec.size", "spec.colour", "spec.code"}


def test_true_is_not_one(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"free": {"a": 1, "b": [0]}})
    here.patch(widgets, "w", {"spec": {"free": {"a": True, "b": [False]}}})
    assert [type(value) for value in here.get(widgets, "w")["spec"]["free"].values()] == [bool, list]


@pytest.mark.parametrize("port", [80, "http"])
def test_int_or_string_takes_both(here: ScratchNamespace, widgets: Resource, port: object) -> None:
    assert here.make(widgets, "w", spec={"port": port})["spec"]["port"] == port


def test_status_is_validated_too(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w")
    with pytest.raises(errors.Invalid, match="status.replicas"):
        here.patch(widgets, "w", {"status": {"replicas": "many"}}, subresource="status")


def test_mistakes_that_were_there_before_do_not_block_other_changes(here: ScratchNamespace, widgets: Resource) -> None:
    """Validation ratchets: an unchanged value is not judged again, so a tightened schema does not freeze objects."""
    name = f"widgets.{widgets.group}"
    here.make(widgets, "w", spec={"settings": {"kept": "as it was"}})
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/settings/additionalProperties"
    here.patch(CRDS, name, [{"op": "add", "path": f"{path}/maxLength", "value": 2}], kind="json")
    try:

        def refused() -> bool:
            try:
                here.patch(widgets, "w", {"spec": {"settings": {"new": "too long"}}}, dry_run=True)
            except errors.Invalid:
                return True
            return False

        eventually(refused, True)
        assert here.patch(widgets, "w", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
        assert here.patch(widgets, "w", {"spec": {"size": 7}})["spec"]["size"] == 7
    finally:
        here.patch(CRDS, name, [{"op": "remove", "path": f"{path}/maxLength"}], kind="json")
