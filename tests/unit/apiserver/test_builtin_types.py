"""The table of types against the official Python client's models, which are generated from Kubernetes itself."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from typing import Any

import kubernetes.client.models as models
import pytest

from paddlecloud.local.apiserver import builtin_types
from paddlecloud.local.apiserver.builtin_types import DEFINITIONS
from paddlecloud.local.apiserver.registry import Schema

MODELS = dict(inspect.getmembers(models, inspect.isclass))
GROUPS = ("core", "events", "discovery", "storage", "authentication", "rbac", "apiextensions")
JSON_TYPES = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}


def model_of(name: str) -> type | None:
    """`V1Pod`, or `CoreV1Event` where several groups have the name."""
    *_, group, version, kind = name.split(".")
    found = MODELS.get(f"{version.capitalize()}{kind}")
    if found is None and group in GROUPS:
        found = MODELS.get(f"{group.capitalize()}{version.capitalize()}{kind}")
    return found


MODELLED = {name: model for name in DEFINITIONS if (model := model_of(name)) is not None}


def test_nearly_every_type_can_be_compared() -> None:
    assert len(MODELLED) > 330


def test_every_field_exists_in_kubernetes_with_the_same_type() -> None:
    # The other way round does not hold: a newer client knows newer fields.
    assert [problem for name in MODELLED for problem in differences(name)] == []


def differences(name: str) -> Iterator[str]:
    model: Any = MODELLED[name]
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
    builtin_types._load.cache_clear()
    started = time.process_time()
    assert "io.k8s.api.core.v1.Pod" in DEFINITIONS
    assert time.process_time() - started < 0.5  # a tenth of it is usual: 5 ms; the margin is for busy machines
    assert builtin_types._load() is builtin_types._load()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("package a.v1\n\nT\n  f  NoSuchType\n", "x.txt:4: type 'NoSuchType' is not one of"),
        ("package a.v1\n\nT\n  f  string  shiny\n", "x.txt:4: unknown attribute 'shiny'"),
        ("package a.v1\n\nT\n  f  U\n\npackage b.v1\n\nU\n\npackage c.v1\n\nU\n", "'b.v1.U', 'c.v1.U'"),
    ],
)
def test_a_mistake_in_the_table_is_reported_with_its_line(text: str, complaint: str) -> None:
    reader = builtin_types._Reader()
    reader.read(text, "x.txt")
    with pytest.raises(ValueError, match=complaint.replace(".", r"\.")):
        reader.finish()
