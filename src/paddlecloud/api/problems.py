"""What is wrong with an object, in the words Kubernetes uses for it.

A `Problem` is what `kube.errors.invalid` takes as a cause. `check_declared` judges an object by the limits its fields
were declared with, the same that the CRD carries: a controller needs it for objects stored under another CRD, a client
for a check without a server. Rules that look at several fields live with their kind.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from paddlecloud.api.schema import Schema, struct_schema

S = TypeVar("S", bound=msgspec.Struct)

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
TYPE_INVALID = "FieldValueTypeInvalid"
FORBIDDEN = "FieldValueForbidden"

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


class Problem(NamedTuple):
    """(field, reason, message); the field is a path such as `spec.worker.replicas`."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class DecodeError(ValueError):
    """The object does not have the shape of its kind; the message names the field."""


def decode_as(struct: type[S], obj: Any) -> S:
    """Read a plain dict into a struct. Unknown fields are ignored, wrong types raise `DecodeError`."""
    try:
        return msgspec.convert(obj, struct)
    except msgspec.ValidationError as error:
        raise DecodeError(f"not a {struct.__name__}: {error}") from error


def decode_or_empty(struct: type[S], obj: Any) -> S:
    """The same for a status: an empty one for what somebody else wrote in another shape."""
    try:
        return decode_as(struct, obj)
    except DecodeError:
        return struct()


def encode(struct: msgspec.Struct) -> dict[str, Any]:
    """The plain dict of a struct: exactly the fields that were set."""
    built: dict[str, Any] = msgspec.to_builtins(struct)
    return built


def required(field: str, message: str) -> Problem:
    return Problem(field, REQUIRED, f"Required value: {message}")


def invalid(field: str, value: Any, message: str) -> Problem:
    shown = f'"{value}"' if isinstance(value, str) else value
    return Problem(field, INVALID, f"Invalid value: {shown}: {message}")


def not_supported(field: str, value: Any, supported: Collection[Any]) -> Problem:
    choices = ", ".join(f'"{choice}"' for choice in supported)
    return Problem(field, NOT_SUPPORTED, f'Unsupported value: "{value}": supported values: {choices}')


def declared_problems(struct: msgspec.Struct, path: str) -> list[Problem]:
    """Problems of a struct against the constraints its own fields declare."""
    return list(check_declared(encode(struct), _schema_of(type(struct)), path))


_schema_of = functools.cache(struct_schema)


def check_declared(value: Any, schema: Schema, path: str = "") -> Iterator[Problem]:
    """Problems of `value` against the constraints of a schema made by `schema`; unknown fields are not judged."""
    if schema.get("x-kubernetes-int-or-string"):
        kinds: Any = (int, str)
    else:
        kinds = _TYPES.get(schema.get("type", ""), object)
    wrong_bool = isinstance(value, bool) and schema.get("type") != "boolean"
    if not isinstance(value, kinds) or wrong_bool:
        wanted = schema.get("type", "integer or string")
        yield Problem(path, TYPE_INVALID, f"Invalid value: must be of type {wanted}")
        return
    yield from _scalar(value, schema, path)
    if isinstance(value, dict):
        yield from _members(value, schema, path)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield invalid(path, value, f"must have at least {schema['minItems']} items")
        yield from _too_many(value, schema, "maxItems", path)
        for index, item in enumerate(value):
            yield from check_declared(item, schema.get("items", {}), f"{path}[{index}]")


def _scalar(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        yield not_supported(path, value, schema["enum"])
    if isinstance(value, (int, float)):
        if "minimum" in schema and value < schema["minimum"]:
            yield invalid(path, value, f"must be at least {schema['minimum']}")
        if "maximum" in schema and value > schema["maximum"]:
            yield invalid(path, value, f"must be at most {schema['maximum']}")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield invalid(path, value, f"must have at least {schema['minLength']} characters")
        if "maxLength" in schema and len(value) > schema["maxLength"]:
            yield Problem(path, TOO_LONG, f"Too long: may not be more than {schema['maxLength']} characters")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield invalid(path, value, f"must match {schema['pattern']}")


def _too_many(value: Collection[Any], schema: Schema, limit: str, path: str) -> Iterator[Problem]:
    if len(value) > schema.get(limit, len(value)):
        yield Problem(path, TOO_MANY, f"Too many: {len(value)}: must have at most {schema[limit]} items")


def _members(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
    prefix = f"{path}." if path else ""
    yield from _too_many(value, schema, "maxProperties", path)
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield required(prefix + name, "must be set")
    properties = schema.get("properties", {})
    for name, member in value.items():
        if member is None:
            continue
        if name in properties:
            yield from check_declared(member, properties[name], prefix + name)
        elif "additionalProperties" in schema:
            yield from check_declared(member, schema["additionalProperties"], f"{path}[{name}]")
