"""Validation: each constraint with the words of Kubernetes, and agreement with an independent validator."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.schema.structural import validate, validate_field
from paddlecloud.local.apiserver.schema.validate import MAX_CAUSES


def spec(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": schema}}


INT, STR = {"type": "integer"}, {"type": "string"}
INVALID, TYPE = "FieldValueInvalid", "FieldValueTypeInvalid"
CASES: list[tuple[dict[str, Any], Any, tuple[str, str, str]]] = [
    (INT, "x", ("spec", TYPE, 'Invalid value: "string": spec in body must be of type integer: "string"')),
    (STR, None, ("spec", TYPE, 'Invalid value: "null": spec in body must be of type string: "null"')),
    (INT, True, ("spec", TYPE, 'Invalid value: "boolean": spec in body must be of type integer: "boolean"')),
    (INT, 1.5, ("spec", TYPE, 'Invalid value: "number": spec in body must be of type integer: "number"')),
    (
        {"type": "object"},
        [],
        ("spec", TYPE, 'Invalid value: "array": spec in body must be of type object: "array"'),
    ),
    (
        {"x-kubernetes-int-or-string": True},
        [],
        ("spec", TYPE, 'Invalid value: "array": spec in body must be of type integer,string: "array"'),
    ),
    ({"type": "object", "required": ["a"]}, {}, ("spec.a", "FieldValueRequired", "Required value")),
    (
        {"type": "string", "enum": ["A", "B"]},
        "C",
        ("spec", "FieldValueNotSupported", 'Unsupported value: "C": supported values: "A", "B"'),
    ),
    (
        {"type": "integer", "enum": [1, 2]},
        3,
        ("spec", "FieldValueNotSupported", 'Unsupported value: 3: supported values: "1", "2"'),
    ),
    (
        {"type": "integer", "minimum": 1},
        0,
        ("spec", INVALID, "Invalid value: 0: spec in body should be greater than or equal to 1"),
    ),
    (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        1,
        ("spec", INVALID, "Invalid value: 1: spec in body should be greater than 1"),
    ),
    (
        {"type": "number", "maximum": 1.5},
        2,
        ("spec", INVALID, "Invalid value: 2: spec in body should be less than or equal to 1.5"),
    ),
    (
        {"type": "number", "maximum": 1, "exclusiveMaximum": True},
        1.0,
        ("spec", INVALID, "Invalid value: 1.0: spec in body should be less than 1"),
    ),
    (
        {"type": "integer", "multipleOf": 5},
        12,
        ("spec", INVALID, "Invalid value: 12: spec in body should be a multiple of 5"),
    ),
    (
        {"type": "string", "maxLength": 2},
        "abc",
        ("spec", "FieldValueTooLong", "Too long: may not be more than 2 bytes"),
    ),
    (
        {"type": "string", "minLength": 2},
        "a",
        ("spec", INVALID, 'Invalid value: "a": spec in body should be at least 2 chars long'),
    ),
    (
        {"type": "string", "pattern": "^a+$"},
        "b",
        ("spec", INVALID, "Invalid value: \"b\": spec in body should match '^a+$'"),
    ),
    (
        {"type": "string", "format": "date-time"},
        "today",
        ("spec", INVALID, 'Invalid value: "today": spec in body must be of type date-time: "today"'),
    ),
    (
        {"type": "array", "maxItems": 1, "items": INT},
        [1, 2],
        ("spec", "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
    ),
    (
        {"type": "array", "minItems": 1, "items": INT},
        [],
        ("spec", INVALID, "Invalid value: 0: spec in body should have at least 1 items"),
    ),
    (
        {"type": "array", "uniqueItems": True, "items": INT},
        [1, 1],
        ("spec", INVALID, 'Invalid value: "": spec in body shouldn\'t contain duplicates'),
    ),
    (
        {"type": "object", "maxProperties": 1, "additionalProperties": INT},
        {"a": 1, "b": 2},
        ("spec", "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
    ),
    (
        {"type": "array", "items": {"type": "object", "properties": {"p": INT}}},
        [{"p": 1}, {"p": "x"}],
        (
            "spec[1].p",
            TYPE,
            'Invalid value: "string": spec[1].p in body must be of type integer: "string"',
        ),
    ),
    (
        {"type": "object", "additionalProperties": INT},
        {"key": "x"},
        ("spec.key", TYPE, 'Invalid value: "string": spec.key in body must be of type integer: "string"'),
    ),
    (
        {"type": "array", "items": STR, "x-kubernetes-list-type": "set"},
        ["a", "b", "a", "a"],
        ("spec[2]", "FieldValueDuplicate", 'Duplicate value: "a"'),
    ),
    (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": INT, "protocol": STR}},
        },
        [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}],
        ("spec[2]", "FieldValueDuplicate", 'Duplicate value: {"port": 1, "protocol": "TCP"}'),
    ),
    (
        {"type": "string", "not": {"enum": ["bad"]}},
        "bad",
        ("spec", INVALID, 'Invalid value: "": "spec" must not validate the schema (not)'),
    ),
    (
        {"type": "string", "oneOf": [{"minLength": 1}, {"maxLength": 3}]},
        "ab",
        (
            "spec",
            INVALID,
            'Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
    ),
]


@pytest.mark.parametrize(("schema", "value", "cause"), CASES)
def test_one_wrong_value_gives_one_cause_in_the_words_of_kubernetes(
    schema: dict[str, Any], value: Any, cause: tuple[str, str, str]
) -> None:
    assert validate({"spec": value}, spec(schema), {}) == [cause]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "nullable": True}, None),
        (INT, 3.0),
        ({"type": "number"}, 3),
        ({"x-kubernetes-int-or-string": True}, "80%"),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, 80),
        ({"type": "string", "format": "no-such-format"}, "anything"),
        ({"type": "integer", "format": "int32"}, 2**40),  # Kubernetes does not check it in custom resources
        ({"type": "object", "properties": {"a": INT}}, {"b": "pruning is another matter"}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, {"b": 1}),
    ],
)
def test_what_fits_gives_no_cause(schema: dict[str, Any], value: Any) -> None:
    assert validate({"spec": value}, spec(schema), {}) == []


def test_none_of_several_alternatives_is_explained_by_the_nearest() -> None:
    schema = {"type": "object", "anyOf": [{"required": ["a", "b"]}, {"required": ["c"]}]}
    assert [cause[0] for cause in validate({"spec": {}}, spec(schema), {})] == ["spec", "spec.c"]


def test_all_of_reports_every_schema_that_failed() -> None:
    schema = {"type": "integer", "allOf": [{"minimum": 5}, {"multipleOf": 2}]}
    causes = validate({"spec": 3}, spec(schema), {})
    assert [cause[2].split(": ", 2)[2] for cause in causes] == [
        "spec in body should be greater than or equal to 5",
        "spec in body should be a multiple of 2",
        '"spec" must validate all the schemas (allOf). None validated',
    ]


def test_causes_are_bounded_and_so_is_what_each_shows() -> None:
    schema = {"type": "array", "items": {"type": "string", "maxLength": 5, "enum": ["a"]}}
    causes = validate({"spec": ["x" * 10_000] * 10_000}, spec(schema), {})
    assert len(causes) <= MAX_CAUSES + 2
    assert all(len(message) < 1000 for _, _, message in causes)
    many = {f"k{i}": 1 for i in range(10_000)}
    assert len(validate({"spec": many}, spec({"type": "object", "additionalProperties": STR}), {})) <= MAX_CAUSES + 2


def test_a_recursive_type_is_followed_as_far_as_the_object_goes_and_no_further_than_the_limit() -> None:
    definitions = {"Tree": {"type": "object", "properties": {"kid": {"$ref": "#/components/schemas/Tree"}, "n": INT}}}
    schema = {"$ref": "#/components/schemas/Tree"}
    assert validate({"kid": {"kid": {"n": "x"}}}, schema, definitions)[0][0] == "kid.kid.n"
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"kid": deep}
    with pytest.raises(BadRequest, match="nests deeper"):
        validate(deep, schema, definitions)


# --- against an independent implementation ---

numbers = st.integers(-5, 5) | st.sampled_from([0.5, 2.0, -1.5])
scalars = st.none() | st.booleans() | numbers | st.text("ab", max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def schemas(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    inner = schemas(depth - 1) if depth else st.just({"type": "integer"})
    constraints = st.fixed_dictionaries(
        {},
        optional={
            "minimum": st.integers(-3, 3),
            "maximum": st.integers(-3, 3),
            "multipleOf": st.integers(1, 3),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b$", "^(ab)*$"]),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
            "required": st.lists(st.sampled_from("abc"), min_size=1, unique=True),
            "enum": st.lists(scalars.filter(lambda v: v is not None), min_size=1, max_size=3, unique_by=repr),
            "items": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean"]),
        },
    )
    return constraints


def may_be_null(value: Any) -> bool:
    if value is None:
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(may_be_null(part) for part in parts)


@settings(max_examples=120, deadline=None)
@given(schema=schemas(), value=values.filter(lambda v: not may_be_null(v)))
def test_value_validation_agrees_with_json_schema(schema: dict[str, Any], value: Any) -> None:
    # Nulls are left out: JSON Schema judges them by each keyword, Kubernetes by type and enum alone.
    expected = jsonschema.Draft7Validator(schema).is_valid(value)
    assert (validate(value, schema, {}) == []) == expected


# One field of the root


@pytest.mark.parametrize(("schema", "value", "cause"), CASES)
def test_one_field_is_judged_in_the_same_words_and_the_others_not_again(
    schema: dict[str, Any], value: Any, cause: tuple[str, str, str]
) -> None:
    whole = {"type": "object", "properties": {"spec": schema, "other": INT}, "required": ["missing"]}
    obj = {"spec": value, "other": "wrong since long ago"}
    found = validate_field(obj, "spec", whole, {})
    assert cause in found
    assert found == [each for each in validate(obj, whole, {}) if each[0] not in ("other", "missing")]


def test_rules_on_the_whole_object_are_asked_whatever_field_changed() -> None:
    whole = {"type": "object", "properties": {"status": {"type": "object"}, "other": INT}, "maxProperties": 1}
    assert validate_field({"status": {}, "other": 1}, "status", whole, {})
