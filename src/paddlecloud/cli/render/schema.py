"""The documentation of fields: what `pdc explain KIND.field` prints."""

from __future__ import annotations

import textwrap
from typing import Any

from paddlecloud.cli.objects import schema as schemas
from paddlecloud.cli.objects.schema import Schema, SchemaField
from paddlecloud.kube.resource import Resource


def render(document: Schema, resource: Resource, field: SchemaField, *, recursive: bool) -> str:
    lines = [f"GROUP:      {resource.group}"] if resource.group else []
    lines += [f"KIND:       {resource.kind}", f"VERSION:    {resource.version}", ""]
    if field.path:
        required = " -required-" if field.required else ""
        lines += [f"FIELD: {field.path[-1]} <{schemas.type_name(document, field.schema)}>{required}", ""]
    lines += ["DESCRIPTION:", *_wrapped(_description(document, field.schema) or "<empty>", 4), ""]
    fields = list(schemas.children(document, field))
    if fields:
        lines.append("FIELDS:")
        if recursive:
            lines += _outline(document, fields, 2)
        else:
            for child in fields:
                required = " -required-" if child.required else ""
                lines.append(f"  {child.path[-1]}\t<{schemas.type_name(document, child.schema)}>{required}")
                lines += [*_wrapped(_description(document, child.schema) or "<no description>", 4), ""]
    return "\n".join(lines).rstrip() + "\n"


def report(document: Schema, field: SchemaField) -> dict[str, Any]:
    """The same for programs, one level deep."""
    return {
        "field": ".".join(field.path),
        "type": schemas.type_name(document, field.schema),
        "required": field.required,
        "description": _description(document, field.schema),
        "fields": [
            {
                "name": child.path[-1],
                "type": schemas.type_name(document, child.schema),
                "required": child.required,
                "description": _description(document, child.schema),
            }
            for child in schemas.children(document, field)
        ],
    }


def _outline(document: Schema, fields: list[SchemaField], depth: int) -> list[str]:
    lines = []
    for field in fields:
        lines.append(f"{' ' * depth}{field.path[-1]}\t<{schemas.type_name(document, field.schema)}>")
        if len(field.path) < schemas.MAX_DEPTH:
            lines += _outline(document, list(schemas.children(document, field)), depth + 2)
    return lines


def _wrapped(text: str, depth: int) -> list[str]:
    pad = " " * depth
    lines: list[str] = []
    for paragraph in text.splitlines():
        lines += textwrap.wrap(paragraph, 90, initial_indent=pad, subsequent_indent=pad) or [""]
    return lines


def _description(document: Schema, schema: Schema) -> str:
    text = str(schema.get("description") or schemas.resolve(document, schema).get("description") or "")
    choices = schemas.resolve(document, schema).get("enum")
    return f"{text}\nPossible values: {', '.join(map(str, choices))}".strip() if choices else text
