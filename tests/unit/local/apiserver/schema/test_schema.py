"""Pruning, defaulting and what strategic merge and apply ask of a schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.schema import structural as sch

Json = Any
INT, STR = {"type": "integer"}, {"type": "string"}


def obj(**properties: Json) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def arr(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def mapping(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


KEEP = {"x-kubernetes-preserve-unknown-fields": True}
INT1 = {"type": "integer", "default": 1}


def root(spec: dict[str, Any]) -> dict[str, Any]:
    return obj(spec=spec)


PRUNED: list[tuple[str, dict[str, Any], Json, Json, list[str]]] = [
    ("a stranger goes", obj(a=INT), {"a": 1, "b": 2}, {"a": 1}, ["spec.b"]),
    ("and is named by its place", arr(obj(a=INT)), [{"a": 1}, {"b": {"c": 1}}], [{"a": 1}, {}], ["spec[1].b"]),
    ("also in lists of lists", arr(arr(obj())), [[{"x": 1}]], [[{}]], ["spec[0][0].x"]),
    ("also without a name", obj(a=obj()), {"a": {"": 1}}, {"a": {}}, ["spec.a."]),
    ("keys of a map are all known", mapping(obj(a=INT)), {"k": {"a": 1, "b": 2}}, {"k": {"a": 1}}, ["spec.k.b"]),
    ("preserve keeps strangers", {**obj(), **KEEP}, {"b": {"c": 1}}, {"b": {"c": 1}}, []),
    ("not in what is specified", {**obj(a=obj(x=INT)), **KEEP}, {"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, ["spec.a.y"]),
    ("any value, preserved", KEEP, {"any": [{"thing": 1}]}, {"any": [{"thing": 1}]}, []),
    ("an object without properties is empty", {"type": "object"}, {"a": 1}, {}, ["spec.a"]),
    ("scalars in the wrong place are for validation", obj(a=STR), {"a": 5}, {"a": 5}, []),
    (
        "an embedded resource keeps its type and has checked metadata",
        {**obj(spec=obj(a=INT)), "x-kubernetes-embedded-resource": True},
        {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "bogus": 1}, "spec": {"a": 1, "b": 1}, "other": 1},
        {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1}},
        ["spec.metadata.bogus", "spec.other", "spec.spec.b"],
    ),
]


@pytest.mark.parametrize(("schema", "value", "left", "dropped"), [r[1:] for r in PRUNED], ids=[r[0] for r in PRUNED])
def test_pruning(schema: dict[str, Any], value: Json, left: Json, dropped: list[str]) -> None:
    given_object = {"spec": value}
    before = copy.deepcopy(given_object)
    assert sch.unknown_fields(given_object, root(schema), DEFINITIONS) == dropped
    assert given_object == before
    assert sch.prune(given_object, root(schema), DEFINITIONS) == dropped
    assert given_object == {"spec": left}


def test_the_roots_type_and_metadata_stay_even_if_the_schema_is_silent_about_them() -> None:
    value = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "other": 1}
    assert sch.prune(value, obj(), {}) == ["other"]
    assert set(value) == {"apiVersion", "kind", "metadata"}


def test_a_huge_key_is_not_repeated_for_every_field_below_it() -> None:
    value = {"k" * 100_000: {f"x{i}": 1 for i in range(1000)}}
    paths = sch.unknown_fields({"spec": value}, root(mapping(obj())), {})
    assert len(paths) == 1000
    assert sum(map(len, paths)) < 1_000_000
    causes = sch.validate({"spec": value}, root(mapping(mapping(STR))), {})
    assert sum(len(message) for _, _, message in causes) < 1_000_000


TCP = obj(p={"type": "string", "default": "TCP"})
DEFAULTED: list[tuple[str, dict[str, Any], Json, Json]] = [
    ("a missing field", obj(a=INT1), {}, {"a": 1}),
    ("not one that is there", obj(a=INT1), {"a": 0}, {"a": 0}),
    ("not inside an object that is not there", obj(a=obj(b=INT1)), {}, {}),
    ("inside a default", obj(a={**obj(b=INT1), "default": {}}), {}, {"a": {"b": 1}}),
    ("in every element", arr(TCP), [{}, {"p": "UDP"}], [{"p": "TCP"}, {"p": "UDP"}]),
    ("in every value of a map", mapping(TCP), {"k": {}}, {"k": {"p": "TCP"}}),
    ("in place of a null that may not be", obj(a=INT1), {"a": None}, {"a": 1}),
    ("not of one that may", obj(a={**INT1, "nullable": True}), {"a": None}, {"a": None}),
    ("a null without default goes", obj(a=INT), {"a": None}, {}),
    ("unless it may be null", obj(a={**INT, "nullable": True}), {"a": None}, {"a": None}),
    ("a null value of a map goes", mapping(STR), {"a": None, "b": "x"}, {"b": "x"}),
    ("a null nobody knows stays", {**obj(), **KEEP}, {"a": None}, {"a": None}),
    ("a null default is none", obj(a={**INT, "default": None, "nullable": True}), {}, {}),
]


@pytest.mark.parametrize(("schema", "value", "filled"), [r[1:] for r in DEFAULTED], ids=[r[0] for r in DEFAULTED])
def test_defaulting(schema: dict[str, Any], value: Json, filled: Json) -> None:
    given_object = {"spec": value}
    sch.apply_defaults(given_object, root(schema), {})
    assert given_object == {"spec": filled}


def test_two_objects_never_share_a_default() -> None:
    schema = obj(a={**obj(), "x-kubernetes-preserve-unknown-fields": True, "default": {"k": []}})
    one: dict[str, Any] = {}
    two: dict[str, Any] = {}
    sch.apply_defaults(one, schema, {})
    sch.apply_defaults(two, schema, {})
    one["a"]["k"].append(1)
    assert two == {"a": {"k": []}}


def test_nodes_answer_what_merging_asks() -> None:
    schema = obj(
        items={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge,retainKeys",
            "x-kubernetes-patch-merge-key": "name",
            "items": obj(name=STR, proto={"type": "string", "default": "TCP"}),
        },
        tags={"type": "array", "items": STR, "x-kubernetes-list-type": "set"},
        plain={"type": "array", "items": STR},
        whole={**obj(), "x-kubernetes-map-type": "atomic"},
        map={"type": "object", "additionalProperties": INT},
    )
    node = sch.Node(schema, {})
    items = sch.child(node, "items")
    assert items is not None
    assert (sch.list_type(items), sch.map_keys(items)) == ("map", ("name",))
    assert (sch.patch_strategy(items), sch.patch_merge_key(items)) == ({"merge", "retainKeys"}, "name")
    element = sch.item(items)
    assert element is not None
    assert (sch.default(element, "proto"), sch.default(element, "name")) == ("TCP", None)
    kinds = [sch.list_type(found) for name in ("tags", "plain") if (found := sch.child(node, name))]
    assert kinds == ["set", "atomic"]
    whole, mapping = sch.child(node, "whole"), sch.child(node, "map")
    assert whole is not None
    assert mapping is not None
    assert (sch.map_type(whole), sch.map_type(mapping)) == ("atomic", "granular")
    value = sch.child(mapping, "anything")
    assert value is not None
    assert value.type == "integer"
    assert sch.child(node, "no-such-field") is None
    assert sch.item(whole) is None


def test_the_same_schema_is_compiled_once() -> None:
    schema = obj(a=INT)
    definitions: dict[str, Any] = {}
    assert sch.Node(schema, definitions) is sch.Node(schema, definitions)


def test_a_reference_to_nothing_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="NoSuchType"):
        sch.Node({"$ref": "#/components/schemas/NoSuchType"}, {})


@pytest.mark.parametrize("walk", [sch.prune, sch.unknown_fields, sch.apply_defaults])
def test_an_object_too_deep_is_refused_not_crashed_on(walk: Any) -> None:
    definitions = {"T": obj(k={"$ref": "#/components/schemas/T"})}
    deep: dict[str, Any] = {}
    for _ in range(800):
        deep = {"k": deep}
    with pytest.raises(BadRequest, match="flatten"):
        walk(deep, {"$ref": "#/components/schemas/T"}, definitions)


# --- properties over random structural schemas and random objects ---

NAMES = st.sampled_from("abcd")
LEAVES = st.sampled_from(
    [
        {"type": "integer", "minimum": 0},
        {"type": "integer", "default": 3},
        {"type": "string", "enum": ["x", "y"]},
        {"type": "string", "nullable": True},
        {"x-kubernetes-int-or-string": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-preserve-unknown-fields": True},
    ]
)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    fields = st.builds(
        lambda props, req, keep: {
            "type": "object",
            "properties": props,
            **({"required": [name for name in req if name in props]} if req else {}),
            **({"x-kubernetes-preserve-unknown-fields": True} if keep else {}),
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.lists(NAMES, max_size=1),
        st.booleans(),
    )
    maps = inner.map(lambda sub: {"type": "object", "additionalProperties": sub})
    lists = inner.map(lambda sub: {"type": "array", "items": sub})
    return fields | maps | lists


structural = st.recursive(LEAVES, objects, max_leaves=6)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from(["x", "y", "z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(schema=structural, value=anything)
def test_pruning_twice_is_pruning_once(schema: dict[str, Any], value: Json) -> None:
    holder = {"spec": value}
    sch.prune(holder, root(schema), DEFINITIONS)
    once = copy.deepcopy(holder)
    assert sch.prune(holder, root(schema), DEFINITIONS) == []
    assert holder == once


@settings(max_examples=300, deadline=None)
@given(schema=structural, value=anything)
def test_defaulting_twice_is_defaulting_once(schema: dict[str, Any], value: Json) -> None:
    holder = {"spec": value}
    sch.apply_defaults(holder, root(schema), DEFINITIONS)
    once = copy.deepcopy(holder)
    sch.apply_defaults(holder, root(schema), DEFINITIONS)
    assert holder == once


@settings(max_examples=300, deadline=None)
@given(schema=structural, value=anything)
def test_what_is_valid_stays_valid_when_pruned(schema: dict[str, Any], value: Json) -> None:
    holder = {"spec": value}
    if sch.validate(holder, root(schema), DEFINITIONS) == []:
        sch.prune(holder, root(schema), DEFINITIONS)
        assert sch.validate(holder, root(schema), DEFINITIONS) == []
