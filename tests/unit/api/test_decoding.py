"""Decoding, declared constraints and their agreement with an independent validator."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.api import EMBEDDED_KINDS, KINDS, paddlejob
from paddlecloud.api.kind import KindDeclaration
from paddlecloud.api.problems import DecodeError, check_declared, decode_as, encode
from paddlecloud.api.schema import UnsupportedType, root_schema, struct_schema

from . import structural
from .examples import OURS


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Objects that use any of the declared fields, with values that may or may not satisfy their limits."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(-5, 500) | st.sampled_from(["1", "100m", "2Gi", "lots", "70%", ""])
    kind = schema["type"]
    if kind == "object" and "properties" in schema:
        fields = {name: values(child) for name, child in schema["properties"].items() if name != "metadata"}
        return st.fixed_dictionaries({}, optional=fields)
    if kind == "object":
        inner = schema.get("additionalProperties")
        return st.dictionaries(st.sampled_from(["a", "b"]), values(inner) if inner else st.integers(), max_size=2)
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=2)
    words = st.sampled_from([*schema.get("enum", ()), "", "other"]) if "enum" in schema else st.text(max_size=12)
    return {
        "string": words,
        "integer": st.integers(-3, 70000),
        "number": st.floats(-2, 200, allow_nan=False),
        "boolean": st.booleans(),
    }[kind]


def agree(kind: KindDeclaration, value: Any) -> None:
    schema = root_schema(kind)
    judge = jsonschema.Draft202012Validator(structural.as_json_schema(schema))
    assert bool(list(check_declared(value, schema))) == (not judge.is_valid(value))


@pytest.mark.parametrize("kind", KINDS[:4], ids=lambda kind: kind.kind)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_declared_limits_are_judged_as_json_schema_judges_them(kind: KindDeclaration, data: st.DataObject) -> None:
    spec = data.draw(values(root_schema(kind)["properties"]["spec"]))
    agree(kind, {"spec": spec})


@pytest.mark.parametrize("kind", KINDS[:4], ids=lambda kind: kind.kind)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_has_the_right_types_is_read_and_written_back_without_loss(
    kind: KindDeclaration, data: st.DataObject
) -> None:
    schema = root_schema(kind)
    obj = {"spec": data.draw(values(schema["properties"]["spec"]))}
    try:
        read = decode_as(kind.type, obj)
    except DecodeError:
        return  # a required member of a list item is missing: the server refuses it before we see it
    assert encode(read) == {"metadata": {}, **obj} or encode(read) == obj


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_reading_a_job_never_fails_whatever_its_values(data: st.DataObject) -> None:
    spec = data.draw(values(root_schema(KINDS[0])["properties"]["spec"]))
    job = paddlejob.decode({"metadata": {"name": "x"}, "spec": spec})
    paddlejob.normalise(job)
    paddlejob.validate(job)


def mutations(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        inner = [found for key, child in value.items() for found in mutations(child, (*path, key))]
    elif isinstance(value, list):
        inner = [found for i, child in enumerate(value) for found in mutations(child, (*path, i))]
    return [path, *inner] if path and path[0] == "spec" else inner


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_an_example_with_one_value_replaced_never_crashes(data: st.DataObject) -> None:
    example = data.draw(st.sampled_from([e for e in OURS if hasattr(e.module, "normalise")]))
    obj = copy.deepcopy(example.object)
    *head, last = data.draw(st.sampled_from(mutations(obj)))
    target = obj
    for step in head:
        target = target[step]
    target[last] = data.draw(st.sampled_from([None, -1, 0, "", "x", [], {}, [None], {"a": None}, True, 1.5]))
    module: Any = example.module
    try:
        read = module.decode(obj)
    except DecodeError:
        return
    module.validate(read)
    module.normalise(read)


def test_the_wrong_type_is_named_by_its_field() -> None:
    with pytest.raises(DecodeError, match=r"spec\.worker\.replicas"):
        paddlejob.decode({"spec": {"worker": {"replicas": "two"}}})


def test_unknown_fields_are_ignored_when_reading() -> None:
    assert paddlejob.decode({"spec": {"newField": 1, "withGloo": 1}}).spec == paddlejob.PaddleJobSpec(with_gloo=1)


def test_values_written_explicitly_survive_even_if_they_are_defaults() -> None:
    spec = {"withGloo": 0, "suspend": False, "cleanPodPolicy": "", "worker": {"replicas": 1}}
    assert encode(paddlejob.decode({"spec": spec}))["spec"] == spec


def test_a_type_without_a_structural_schema_is_refused_at_declaration() -> None:
    class Bad(msgspec.Struct):
        either: int | float

    class Worse(msgspec.Struct):
        raw: bytes

    for struct in (Bad, Worse):
        with pytest.raises(UnsupportedType):
            struct_schema(struct)


def test_every_optional_field_of_every_kind_defaults_to_nothing() -> None:
    """Otherwise what is written back would hold fields that nobody wrote."""
    for kind in EMBEDDED_KINDS:
        assert encode(kind.type()) in ({}, {"metadata": {}})
