"""Fields of a kind, found in the server's OpenAPI v3 document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.cli.failures import NOT_FOUND, CliError
from paddlecloud.cli.objects.api import Api
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import Resource

Schema = Mapping[str, Any]
MAX_DEPTH = 12
"""Schemas may contain themselves (JSONSchemaProps does)."""
NOT_DOCUMENTED = "its fields are not documented one by one"
MOST_LISTED = 20
"""Fields that one sentence names."""
NEAR_THE_TOP = 2
"""Levels below `spec` on which a field is looked for that was written in the wrong place."""


class SchemaField(NamedTuple):
    path: tuple[str, ...]
    schema: Schema
    required: bool = False


def fetch(api: Api, resource: Resource) -> dict[str, Any]:
    """The document of the kind's group and version."""
    group = f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"
    index = api.json("/openapi/v3").get("paths") or {}
    if group not in index:
        message = f"the server documents nothing of {resource.api_version}"
        raise CliError(message, next="pdc api-resources", exit_code=NOT_FOUND)
    address, _, query = str(index[group]["serverRelativeURL"]).partition("?")
    parameters = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
    return api.json(address, query=parameters or None)


def descend(document: Schema, resource: Resource, path: list[str]) -> SchemaField:
    """The field at the end of the path; lists and maps are passed through to what they hold."""
    root = field = SchemaField((), _root(document, resource))
    for depth, name in enumerate(path):
        inner = _inside(document, field.schema)
        properties = inner.get("properties") or {}
        if name not in properties:
            raise _unknown(resource, path[:depth], name, list(properties), _elsewhere(document, root, name))
        field = SchemaField((*field.path, name), properties[name], name in (inner.get("required") or ()))
    return field


def children(document: Schema, field: SchemaField) -> Iterator[SchemaField]:
    inner = _inside(document, field.schema)
    required = inner.get("required") or ()
    for name, schema in sorted((inner.get("properties") or {}).items()):
        yield SchemaField((*field.path, name), schema, name in required)


def type_name(document: Schema, schema: Schema) -> str:
    """`string`, `[]Container`, `map[string]string`, `Object`."""
    reference = _reference(schema)
    schema = resolve(document, schema)
    if "items" in schema:
        return f"[]{type_name(document, schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map[string]{type_name(document, schema['additionalProperties'])}"
    if schema.get("x-kubernetes-int-or-string"):
        return "IntOrString"
    kind = str(schema.get("type") or "Object")
    if kind != "object":
        return kind
    return reference.rpartition(".")[2] if reference else "Object"


def resolve(document: Schema, schema: Schema) -> Schema:
    """A schema with its reference followed; references in OpenAPI v3 hide in an allOf of one."""
    for _ in range(MAX_DEPTH):
        reference = _reference(schema)
        if not reference:
            return schema
        target = ((document.get("components") or {}).get("schemas") or {}).get(reference) or {}
        own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        schema = {**target, **own}
    return schema


def _reference(schema: Schema) -> str:
    options: list[Schema] = schema.get("allOf") or []
    found = schema.get("$ref") or (options[0].get("$ref") if len(options) == 1 else None) or ""
    return str(found).rpartition("/")[2]


def _inside(document: Schema, schema: Schema) -> Schema:
    """Where the named fields are: below any lists and maps."""
    for _ in range(MAX_DEPTH):
        schema = resolve(document, schema)
        if "items" in schema:
            schema = schema["items"]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        else:
            break
    return schema


def _root(document: Schema, resource: Resource) -> Schema:
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for schema in ((document.get("components") or {}).get("schemas") or {}).values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            return dict(schema)
    raise CliError(f"the server documents no {resource.kind}", next="pdc api-resources", exit_code=NOT_FOUND)


def _elsewhere(document: Schema, root: SchemaField, name: str) -> str:
    """The path of the field of this name that is nearest to the top of the object; empty where there is none."""
    level = [field for field in children(document, root) if field.path == ("spec",)]
    for _ in range(NEAR_THE_TOP):
        level = [child for field in level for child in children(document, field)]
        if found := [field for field in level if field.path[-1] == name]:
            return ".".join(found[0].path)
    return ""


def _unknown(resource: Resource, above: list[str], name: str, known: list[str], elsewhere: str) -> CliError:
    where = ".".join([resource.kind.lower(), *above])
    why = f"its fields are {', '.join(sorted(known))}" if known else NOT_DOCUMENTED
    if len(known) > MOST_LISTED:
        why = ""
    return CliError(
        f'{where} has no field "{name}"',
        why=f"the field is {elsewhere}" if elsewhere else question(name, known) or why,
        next=f"pdc explain {where}",
        exit_code=NOT_FOUND,
    )
