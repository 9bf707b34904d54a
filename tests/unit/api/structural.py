"""What Kubernetes demands of a CRD schema, as a validator of our own.

A JSON-schema metaschema checks the vocabulary (only keywords a structural schema may use, with the right types); a walk
checks the rules between keywords that Kubernetes' structural-schema validation applies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

METASCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "node": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "type": {"enum": ["object", "array", "string", "integer", "number", "boolean"]},
                "description": {"type": "string", "minLength": 1},
                "format": {"enum": ["int32", "int64", "date-time"]},
                "default": True,
                "enum": {"type": "array", "minItems": 1, "uniqueItems": True},
                "minimum": {"type": "number"},
                "maximum": {"type": "number"},
                "minLength": {"type": "integer", "minimum": 0},
                "maxLength": {"type": "integer", "minimum": 0},
                "minItems": {"type": "integer", "minimum": 0},
                "maxItems": {"type": "integer", "minimum": 0},
                "maxProperties": {"type": "integer", "minimum": 0},
                "pattern": {"type": "string", "format": "regex"},
                "required": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
                "properties": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}},
                "additionalProperties": {"$ref": "#/$defs/node"},
                "items": {"$ref": "#/$defs/node"},
                "x-kubernetes-int-or-string": {"const": True},
                "x-kubernetes-preserve-unknown-fields": {"const": True},
                "x-kubernetes-list-type": {"enum": ["atomic", "set", "map"]},
                "x-kubernetes-list-map-keys": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "x-kubernetes-validations": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,  # Kubernetes 1.25 knows no more, and kubectl refuses the rest
                        "required": ["rule", "message"],
                        "properties": {"rule": {"type": "string"}, "message": {"type": "string", "maxLength": 2048}},
                    },
                },
            },
        }
    },
    "$ref": "#/$defs/node",
}


def faults(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Rules of structural schemas that a schema breaks, with the place."""
    kind = schema.get("type")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not keeps and not schema.get("x-kubernetes-int-or-string"):
        yield f"{path}: no type"
    if kind is not None and schema.get("x-kubernetes-int-or-string"):
        yield f"{path}: int-or-string must not have a type"
    if kind == "array" and "items" not in schema:
        yield f"{path}: array without items"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: properties and additionalProperties exclude each other"
    if kind == "object" and not keeps and not {"properties", "additionalProperties"} & set(schema):
        yield f"{path}: everything inside would be pruned"
    for name in schema.get("required", ()):
        if name not in schema.get("properties", {}):
            yield f"{path}: requires {name}, which it does not declare"
    yield from _map_keys(schema, path)
    for name, child in schema.get("properties", {}).items():
        if (path, name) != ("", "metadata"):  # belongs to Kubernetes: a CRD may only say that it is an object
            yield from faults(child, f"{path}.{name}")
    if "items" in schema:
        yield from faults(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from faults(schema["additionalProperties"], f"{path}{{}}")


def _map_keys(schema: dict[str, Any], path: str) -> Iterator[str]:
    """A list of type map needs its keys in every item: required, or with a default."""
    if (schema.get("x-kubernetes-list-type") == "map") != ("x-kubernetes-list-map-keys" in schema):
        yield f"{path}: list type map and map keys go together"
    items = schema.get("items", {})
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        declared = items.get("properties", {}).get(key)
        if declared is None or not (key in items.get("required", ()) or "default" in declared):
            yield f"{path}: map key {key} is neither required nor defaulted"


def unknown_fields(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Fields that a strict server would refuse, as it names them."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or path == ".metadata":
        return
    if isinstance(value, dict):
        for name, child in value.items():
            if name in schema.get("properties", {}):
                yield from unknown_fields(child, schema["properties"][name], f"{path}.{name}")
            elif "additionalProperties" in schema:
                yield from unknown_fields(child, schema["additionalProperties"], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {}), f"{path}[{index}]")


def as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The same constraints in plain JSON Schema, for a validator that was not written here."""
    plain = {k: v for k, v in schema.items() if not k.startswith("x-kubernetes")}
    if schema.get("x-kubernetes-int-or-string"):
        plain["type"] = ["integer", "string"]
    if "properties" in schema:
        plain["properties"] = {k: as_json_schema(v) for k, v in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in schema:
            plain[name] = as_json_schema(schema[name])
    return plain
