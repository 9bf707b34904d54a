"""Reference pages of the kinds, written from their declarations.

`make rendered` writes one page per kind and an index to docs/kinds. A test fails when the pages in
the repository are not what the declarations say. The prose of a field is its `doc`; nothing is said here that is not
declared.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import inspect as shapes

from paddlecloud.api.catalogue import EMBEDDED_KINDS
from paddlecloud.api.kind import KindDeclaration
from paddlecloud.api.schema import struct_schema

FOLDER = Path(__file__).parents[1] / "kinds"
_HEADER = "<!-- Written by `make rendered`: change the declarations, not this file. -->"
_PREFIXES = {"kubeflow.org": "kubeflow-", "serving.knative.dev": "knative-"}
_LIMITS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties")
_WORDS = {"minimum": "≥", "maximum": "≤", "minLength": "length ≥", "maxLength": "length ≤", "minItems": "items ≥"}
_WORDS |= {"maxItems": "items ≤", "maxProperties": "items ≤"}


@dataclass
class Section:
    """One struct and every place it occurs at."""

    shape: shapes.StructType
    paths: list[str] = field(default_factory=list)


def pages() -> dict[str, str]:
    """File name to text."""
    found: dict[str, str] = {}
    for kinds in _grouped().values():
        found[_file(kinds[0])] = page(kinds)
    found["README.md"] = _index()
    return found


def page(kinds: list[KindDeclaration]) -> str:
    """The page of a kind; several declarations of one struct share it."""
    kind = kinds[0]
    lines = [_HEADER, "", f"# {kind.kind}", "", kind.doc, "", *_identity(kinds), ""]
    for section in _sections(kind):
        lines += _section(section)
    return "\n".join(lines).rstrip() + "\n"


def _grouped() -> dict[Any, list[KindDeclaration]]:
    grouped: dict[Any, list[KindDeclaration]] = {}
    for kind in EMBEDDED_KINDS:
        grouped.setdefault(kind.type, []).append(kind)
    return grouped


def _file(kind: KindDeclaration) -> str:
    return f"{_PREFIXES.get(kind.group, '')}{kind.singular}.md"


def _index() -> str:
    lines = [_HEADER, "", "# Kinds", "", "| Kind | apiVersion | Short name | What it is |", "|---|---|---|---|"]
    for kinds in _grouped().values():
        versions = "<br>".join(f"`{kind.api_version}`" for kind in kinds)
        short = ", ".join(f"`{name}`" for name in kinds[0].short_names)
        lines.append(f"| [{kinds[0].kind}]({_file(kinds[0])}) | {versions} | {short} | {kinds[0].doc} |")
    lines += ["", "Kinds of other projects (Kubeflow, Knative, Volcano) are served by the embedded platform only.", ""]
    return "\n".join(lines)


def _identity(kinds: list[KindDeclaration]) -> Iterator[str]:
    kind = kinds[0]
    yield from ("| | |", "|---|---|")
    yield f"| apiVersion | {', '.join(f'`{k.api_version}`' for k in kinds)} |"
    names = [kind.plural, kind.singular, *kind.short_names]
    yield f"| names | {', '.join(f'`{name}`' for name in names)} |"
    yield f"| scope | {kind.scope} |"
    subresources = (["`status`"] if kind.status else []) + (["`scale`"] if kind.scale else [])
    yield f"| subresources | {', '.join(subresources)} |"
    if kind.scale:
        yield f"| `kubectl scale` sets | `{kind.scale.spec_replicas.lstrip('.')}` |"
    plain = ["NAME", *(column.name.upper() for column in kind.columns if not column.priority)]
    yield f"| `kubectl get` prints | {' · '.join(plain)} |"
    wide = [column.name.upper() for column in kind.columns if column.priority]
    if wide:
        yield f"| with `-o wide` also | {' · '.join(wide)} |"
    if kind.foreign:
        yield "| belongs to | another project; on a cluster it comes from there |"


def _sections(kind: KindDeclaration) -> list[Section]:
    """The structs below the root, in the order they are met, each once."""
    found: dict[type, Section] = {}

    def visit(shape: shapes.Type, path: str) -> None:
        for struct, place in _structs(shape, path):
            section = found.setdefault(struct.cls, Section(struct))
            section.paths.append(place)
            if len(section.paths) == 1:
                for member in struct.fields:
                    visit(member.type, f"{place}.{member.encode_name}")

    root = shapes.type_info(kind.type)
    assert isinstance(root, shapes.StructType)
    for member in root.fields:
        visit(member.type, member.encode_name)
    return list(found.values())


def _structs(shape: shapes.Type, path: str) -> Iterator[tuple[shapes.StructType, str]]:
    if isinstance(shape, shapes.Metadata):
        yield from _structs(shape.type, path)
    elif isinstance(shape, shapes.UnionType):
        for member in shape.types:
            yield from _structs(member, path)
    elif isinstance(shape, shapes.ListType):
        yield from _structs(shape.item_type, f"{path}[]")
    elif isinstance(shape, shapes.DictType):
        yield from _structs(shape.value_type, f"{path}.*")
    elif isinstance(shape, shapes.StructType):
        yield shape, path


def _section(section: Section) -> Iterator[str]:
    yield f"## {', '.join(section.paths)}"
    yield ""
    if section.shape.cls.__doc__:
        yield inspect.cleandoc(section.shape.cls.__doc__)
        yield ""
    yield from ("| Field | Type | Limits | Meaning |", "|---|---|---|---|")
    schema = struct_schema(section.shape.cls)
    for name, declared in schema["properties"].items():
        limits = _limits(declared, required=name in schema.get("required", ()))
        meaning = declared.get("description", "").replace("|", "\\|")
        yield f"| `{name}` | {_type(declared)} | {limits} | {meaning} |"
    yield ""


def _type(schema: dict[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return "object, kept whole"
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    return "time" if schema.get("format") == "date-time" else str(schema["type"])


def _limits(schema: dict[str, Any], *, required: bool) -> str:
    words = ["required"] if required else []
    if "default" in schema:
        words.append(f"default `{schema['default']}`")
    if "enum" in schema:
        words.append("one of " + ", ".join(f"`{choice}`" for choice in schema["enum"]))
    words += [f"{_WORDS[name]} {schema[name]}" for name in _LIMITS if name in schema]
    return ", ".join(words)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"docs/kinds/{name}")
