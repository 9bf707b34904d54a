"""Is a schema structural? The rules a schema in a CRD must obey so that pruning and defaulting mean something.

A structural schema states the type of every field outside of `allOf`, `anyOf`, `oneOf` and `not`; those may only add
constraints on values. The rules and their wording are Kubernetes'. Expressions of CEL are read in `schema/rules.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.api.pattern import PatternError, compile_pattern
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required
from paddlecloud.local.apiserver.schema.node import MAX_DEPTH, REF
from paddlecloud.local.apiserver.schema.structural import prune, validate

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_DEEPEST = MAX_DEPTH // 2  # a field of an object takes two levels of its schema
_SCALARS = ("boolean", "integer", "number", "string")
_COMBINATIONS = ("allOf", "anyOf", "oneOf")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_JSON_SCHEMA = {"$ref": f"{REF}io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"}
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING = ({"type": "integer"}, {"type": "string"})

# What a schema under allOf, anyOf, oneOf or not may not hold, and the message for each.
_NOT_IN_COMBINATION = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_causes(path: str, schema: Schema) -> list[Cause]:
    """Why the schema is not acceptable as the schema of a version; empty when it is."""
    found = _malformed(path, schema)
    if found:
        return found
    found = _schema(path, schema, "root")
    if not found:
        found = _defaults(path, schema)
    return found


def _parts(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas of fields, elements and map values."""
    for name, sub in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", sub
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield f"{path}.{key}", schema[key]


def _malformed(path: str, schema: Schema, depth: int = 0) -> list[Cause]:
    """`additionalProperties` may be a boolean or a schema, which no type can say: its schema is checked here."""
    if depth > _DEEPEST:
        return [forbidden(path, "the schema nests too deeply")]
    found: list[Cause] = []
    for place, sub in _parts(path, schema):
        if place.endswith(".additionalProperties"):
            found += validate(sub, _JSON_SCHEMA, DEFINITIONS, path=place)
        if not found:
            found += _malformed(place, sub, depth + 1)
    return found


# --- structure ------------------------------------------------------------------------------------------------------


def _schema(path: str, schema: Schema, level: str) -> list[Cause]:
    found = _own(path, schema, level) + _list_rules(path, schema) + _map_rules(path, schema)
    found += _values(path, schema)
    for key in _COMBINATIONS:
        for index, part in enumerate(schema.get(key) or ()):
            if not _is_int_or_string(schema, key, part):
                found += _nested(f"{path}.{key}[{index}]", part, schema, path)
    if schema.get("not") is not None:
        found += _nested(f"{path}.not", schema["not"], schema, path)
    for place, sub in _parts(path, schema):
        found += _schema(place, sub, "item" if place.endswith(".items") else "field")
    return found


def _own(path: str, schema: Schema, level: str) -> list[Cause]:
    kind = schema.get("type", "")
    embedded = schema.get("x-kubernetes-embedded-resource")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields")
    either = schema.get("x-kubernetes-int-or-string")
    found = [forbidden(f"{path}.{key}", f"{key} is not supported") for key in _UNSUPPORTED if schema.get(key)]
    if kind == "null":
        found.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    elif kind and kind not in TYPES:
        found.append(not_supported(f"{path}.type", kind, TYPES))
    if not kind and not either and not keeps:
        found.append(required(f"{path}.type", _LEVELS[level]))
    if level == "root":
        found += _root(path, schema, kind)
    if kind == "array" and schema.get("items") is None:
        found.append(required(f"{path}.items", "must be specified"))
    if schema.get("additionalProperties") not in (None, True) and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden(f"{path}.additionalProperties", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(f"{path}.uniqueItems", detail))
    if keeps is False:
        found.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    if either:
        found += [
            invalid(f"{path}.{key}", True, "must be false if x-kubernetes-int-or-string is true")
            for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
            if schema.get(key)
        ]
    if embedded:
        found += _embedded(path, schema, kind, keeps=bool(keeps))
    return found


def _root(path: str, schema: Schema, kind: str) -> list[Cause]:
    found: list[Cause] = []
    if kind and kind != "object":
        found.append(invalid(f"{path}.type", kind, "must be object at the root"))
    if schema.get("additionalProperties") is not None:
        found.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    fields = schema.get("properties") or {}
    for name in ("apiVersion", "kind"):
        if name in fields and fields[name].get("type") != "string":
            place = f"{path}.properties[{name}].type"
            found.append(invalid(place, fields[name].get("type", ""), "must be string"))
    meta = fields.get("metadata")
    if meta is not None:
        place = f"{path}.properties[metadata]"
        if meta.get("type") != "object":
            found.append(invalid(f"{place}.type", meta.get("type", ""), "must be object"))
        if set(meta.get("properties") or ()) - {"name", "generateName"}:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            found.append(forbidden(place, detail))
    return found


def _embedded(path: str, schema: Schema, kind: str, *, keeps: bool) -> list[Cause]:
    found: list[Cause] = []
    if kind and kind != "object":
        found.append(invalid(f"{path}.type", kind, "must be object if x-kubernetes-embedded-resource is true"))
    if schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        found.append(forbidden(f"{path}.additionalProperties", detail))
    if not keeps and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        found.append(required(f"{path}.properties", detail))
    return found


def _map_rules(path: str, schema: Schema) -> list[Cause]:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return []
    found: list[Cause] = []
    if schema.get("type") != "object":
        detail = "must be object if x-kubernetes-map-type is specified"
        found.append(invalid(f"{path}.type", schema.get("type", ""), detail))
    if kind not in ("atomic", "granular"):
        found.append(not_supported(f"{path}.x-kubernetes-map-type", kind, ("atomic", "granular")))
    return found


def _list_rules(path: str, schema: Schema) -> list[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    found: list[Cause] = []
    if kind is not None and schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        found.append(invalid(f"{path}.type", schema.get("type", ""), detail))
    if kind not in (None, "atomic", "set", "map"):
        found.append(not_supported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "set", "map")))
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(invalid(f"{path}.x-kubernetes-list-type", kind, detail))
    element = schema.get("items") or {}
    if kind in ("set", "map") and element.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {kind}"
        found.append(forbidden(f"{path}.items.nullable", detail))
    if kind == "set":
        found += _set_rules(path, element)
    elif kind == "map":
        found += _list_map_rules(path, element, keys)
    return found


def _set_rules(path: str, element: Schema) -> list[Cause]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    for kind, key in (("array", "x-kubernetes-list-type"), ("object", "x-kubernetes-map-type")):
        given = element.get(key)
        if element.get("type") == kind and given != "atomic" and not (kind == "array" and given is None):
            return [invalid(f"{path}.items.{key}", given, detail)]
    return []


def _list_map_rules(path: str, element: Schema, keys: list[str]) -> list[Cause]:
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        return [required(f"{path}.x-kubernetes-list-map-keys", detail)]
    if element.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [invalid(f"{path}.items.type", element.get("type", ""), detail)]
    found: list[Cause] = []
    if len(set(keys)) < len(keys):
        found.append(invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries"))
    for key in keys:
        field = (element.get("properties") or {}).get(key)
        place = f"{path}.items.properties[{key}]"
        if field is None:
            detail = "entries must all be names of item properties"
            found.append(invalid(f"{path}.x-kubernetes-list-map-keys", keys, detail))
            continue
        if field.get("type") not in _SCALARS and not field.get("x-kubernetes-int-or-string"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.append(invalid(f"{place}.type", field.get("type", ""), detail))
        if field.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            found.append(forbidden(f"{place}.nullable", detail))
        if key not in (element.get("required") or ()) and field.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            found.append(required(f"{place}.default", detail))
    return found


# --- values ---------------------------------------------------------------------------------------------------------


def _values(path: str, schema: Schema) -> list[Cause]:
    if not schema.get("pattern"):
        return []
    try:
        compile_pattern(schema["pattern"])
    except PatternError as error:
        detail = f"must be a valid regular expression, but isn't: {error}"
        return [invalid(f"{path}.pattern", schema["pattern"], detail)]
    return []


def _is_int_or_string(schema: Schema, key: str, part: Schema) -> bool:
    """The two forms in which Kubernetes' own tools write int-or-string although they state types."""
    if not schema.get("x-kubernetes-int-or-string"):
        return False
    if key == "anyOf":
        return tuple(schema["anyOf"]) == _INT_OR_STRING
    return key == "allOf" and tuple(part.get("anyOf") or ()) == _INT_OR_STRING


def _nested(path: str, part: Schema, structure: Schema | None, place: str) -> list[Cause]:
    """A schema that only judges values: it may not define anything, and what it names must be defined outside."""
    if structure is None:
        return [required(place, f"because it is defined in {path}")]
    found = [forbidden(f"{path}.{key}", detail) for key, detail in _NOT_IN_COMBINATION.items() if part.get(key)]
    found += _values(path, part)
    fields = structure.get("properties") or {}
    for name, sub in (part.get("properties") or {}).items():
        if name == "metadata":
            found.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
        else:
            found += _nested(f"{path}.properties[{name}]", sub, fields.get(name), f"{place}.properties[{name}]")
    if isinstance(part.get("items"), Mapping):
        found += _nested(f"{path}.items", part["items"], structure.get("items"), f"{place}.items")
    for key in _COMBINATIONS:
        for index, sub in enumerate(part.get(key) or ()):
            found += _nested(f"{path}.{key}[{index}]", sub, structure, place)
    if part.get("not") is not None:
        found += _nested(f"{path}.not", part["not"], structure, place)
    return found


def _defaults(path: str, schema: Schema, *, level: int = 0) -> list[Cause]:
    """A default must be a value its own schema accepts whole."""
    found: list[Cause] = []
    given = schema.get("default")
    if given is not None:
        left: Any = copy.deepcopy({"default": given})
        wrapped = {"type": "object", "properties": {"default": schema}}
        if prune(left, wrapped, DEFINITIONS):
            found.append(invalid(f"{path}.default", given, "must not have unknown fields"))
        found += validate(given, schema, DEFINITIONS, path=f"{path}.default")
    for place, sub in _parts(path, schema):
        if level == 0 and place.endswith(("[apiVersion]", "[kind]", "[metadata]")):
            name = place.rpartition("[")[2].rstrip("]")
            if sub.get("default") is not None:
                found.append(forbidden(f"{place}.default", f"must not be set in top-level {name}"))
        else:
            found += _defaults(place, sub, level=level + 1)
    return found
