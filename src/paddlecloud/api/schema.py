"""msgspec structs to OpenAPI v3 structural schemas.

The result keeps to what Kubernetes calls structural: every value has a type, nothing is said inside `anyOf`, objects
either list their properties or keep unknown ones. Rules between fields (CEL) have a `rule` and a `message`, all
that Kubernetes 1.25 knows. Descriptions come from the fields' `doc` and, for objects, from their struct's docstring.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
from msgspec import inspect as shapes

from paddlecloud.api.fields import Rule, written
from paddlecloud.api.kind import KindDeclaration

Schema = dict[str, Any]

_SCALARS: dict[type[shapes.Type], str] = {
    shapes.BoolType: "boolean",
    shapes.IntType: "integer",
    shapes.FloatType: "number",
    shapes.StrType: "string",
}
_ROOT = {
    "apiVersion": {
        "type": "string",
        "description": "Group and version of this representation; servers may convert between versions.",
    },
    "kind": {"type": "string", "description": "The kind of this object, in CamelCase."},
    "metadata": {"type": "object"},
}


class UnsupportedType(TypeError):
    """A struct uses a type that has no structural schema; the message names it."""


def root_schema(declaration: KindDeclaration) -> Schema:
    """The schema of a whole object. Kubernetes owns `metadata`: a CRD may say nothing about it."""
    schema = struct_schema(declaration.type)
    schema["description"] = declaration.doc
    schema["properties"] = {**_ROOT, **{k: v for k, v in schema["properties"].items() if k not in _ROOT}}
    return schema


def struct_schema(struct: type[msgspec.Struct]) -> Schema:
    shape = shapes.type_info(struct)
    assert isinstance(shape, shapes.StructType)
    return _object(shape)


def _object(shape: shapes.StructType) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in shape.fields:
        properties[field.encode_name] = _convert(field.type)
        if isinstance(field.type, shapes.Metadata) and (field.type.extra or {}).get("required"):
            required.append(field.encode_name)
    schema: Schema = {"type": "object", "properties": properties}
    text = shape.cls.__doc__
    if text and not text.startswith(f"{shape.cls.__name__}("):
        schema["description"] = " ".join(inspect.cleandoc(text).split())
    if required:
        schema["required"] = required
    rules: tuple[Rule, ...] = getattr(shape.cls, "RULES", ())
    if rules:
        schema |= written(rules)
    return schema


def _convert(shape: shapes.Type) -> Schema:
    if isinstance(shape, shapes.Metadata):
        return {**_convert(shape.type), **(shape.extra_json_schema or {})}
    if isinstance(shape, shapes.UnionType):
        return _union(shape)
    if isinstance(shape, shapes.StructType):
        return _object(shape)
    if isinstance(shape, shapes.ListType):
        return {"type": "array", "items": _convert(shape.item_type)}
    if isinstance(shape, shapes.DictType):
        if isinstance(shape.value_type, shapes.AnyType):
            return {"type": "object"}
        return {"type": "object", "additionalProperties": _convert(shape.value_type)}
    name = _SCALARS.get(type(shape))
    if name is None:
        raise UnsupportedType(f"{shape} has no structural schema; declare the field with another type")
    return {"type": name}


def _union(shape: shapes.UnionType) -> Schema:
    """`X | None` is X: an absent field and a null one mean the same. `int | str` is Kubernetes' int-or-string."""
    members = [member for member in shape.types if not isinstance(member, shapes.NoneType)]
    if len(members) == 1:
        return _convert(members[0])
    if {type(member) for member in members} == {shapes.IntType, shapes.StrType}:
        return {"x-kubernetes-int-or-string": True}
    raise UnsupportedType(f"{shape} has no structural schema; only `int | str` and `X | None` do")
