"""The table of types against the official Python client's models, which are generated from Kubernetes itself."""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.local.apiserver.builtin import types
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.registry import Schema

GROUPS = ("core", "events", "discovery", "storage", "authentication", "rbac", "apiextensions")
JSON_TYPES = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}


@pytest.fixture(scope="module")
def modelled() -> dict[str, Any]:
    """The client's model of each type that it has: `V1Pod`, or `CoreV1Event` where several groups have the name."""
    models = dict(inspect.getmembers(importlib.import_module("kubernetes.client.models"), inspect.isclass))
    found = {}
    for name in DEFINITIONS:
        *_, group, version, kind = name.split(".")
        model = models.get(f"{version.capitalize()}{kind}")
        if model is None and group in GROUPS:
            model = models.get(f"{group.capitalize()}{version.capitalize()}{kind}")
        if model is not None:
            found[name] = model
    return found


def test_nearly_every_type_can_be_compared(modelled: dict[str, Any]) -> None:
    assert len(modelled) > 330


def test_every_field_exists_in_kubernetes_with_the_same_type(modelled: dict[str, Any]) -> None:
    # The other way round does not hold: a newer client knows newer fields.
    assert [problem for name, model in modelled.items() for problem in differences(name, model)] == []


def differences(name: str, model: Any) -> Iterator[str]:
    theirs = {json_name: model.openapi_types[attr] for attr, json_name in model.attribute_map.items()}
    for field, schema in DEFINITIONS[name].get("properties", {}).items():
        if field not in theirs:
            yield f"{name}.{field} does not exist"
        elif shape_of(schema) not in (expected := shapes_of(theirs[field])):
            yield f"{name}.{field} is {shape_of(schema)}, not one of {expected}"


def shape_of(schema: Schema) -> str:
    if "additionalProperties" in schema:
        return "map"
    return str(schema.get("type", "reference"))


def shapes_of(kind: str) -> tuple[str, ...]:
    """What a field of the client's type may look like in the table. The client calls anything special `object`."""
    if kind.lower().startswith("list["):
        return ("array",)
    if kind.lower().startswith(("dict(", "dict[")):
        return ("map",)
    if kind in ("object", "bytes", "bytearray"):
        return ("object", "reference", "string")
    return (JSON_TYPES.get(kind, "reference"), "reference")


def test_the_table_is_read_once_and_quickly() -> None:
    types._load.cache_clear()
    started = time.process_time()
    assert "io.k8s.api.core.v1.Pod" in DEFINITIONS
    assert time.process_time() - started < 0.5  # a tenth of it is usual: 5 ms; the margin is for busy machines
    assert types._load() is types._load()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("package a.v1\n\nT\n  f  NoSuchType\n", "x.txt:4: type 'NoSuchType' is not one of"),
        ("package a.v1\n\nT\n  f  string  shiny\n", "x.txt:4: unknown attribute 'shiny'"),
        ("package a.v1\n\nT\n  f  U\n\npackage b.v1\n\nU\n\npackage c.v1\n\nU\n", "'b.v1.U', 'c.v1.U'"),
    ],
)
def test_a_mistake_in_the_table_is_reported_with_its_line(text: str, complaint: str) -> None:
    reader = types._Reader()
    reader.read(text, "x.txt")
    with pytest.raises(ValueError, match=complaint.replace(".", r"\.")):
        reader.finish()
