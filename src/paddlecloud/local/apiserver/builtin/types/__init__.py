"""Types of the built-in kinds: a compact text of our own, read into OpenAPI schemas on first use.

Kubernetes publishes these types as megabytes of JSON; what the API server needs of them (names, types, list keys, merge
keys, which fields are required, what may be written, static defaults) fits in the `*.txt` files beside this one:

    package io.k8s.api.core.v1              names below live here; other packages' names are found when unambiguous

    Pod kind  -- text                       a kind: apiVersion, kind, metadata and a List type come by themselves
      spec    PodSpec  -- text              field, type, attributes, description
      names!  [string]                      `[T]` a list (atomic unless said otherwise), `{T}` a map

`!` marks a required field; `~` one that is published as required but not demanded, because the server reads its absence
as the zero value (most of what controllers report in status).

Attributes: `set`, `map=key,key` (list type), `merge`, `merge=key`, `retainKeys`, `replace` (strategic merge), `atomic`,
`granular` (map type, also on a type's own line), `enum=A|B`, `default=VALUE` (JSON where it parses, else a string).
Scalars are in `_SCALARS`. Nothing here knows which kinds are served (`builtin/kinds.py`) or rules between fields
(`builtin/validation`, `builtin/defaults.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.node import LENIENT, REF

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."

_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "time": {"$ref": f"{REF}{_META}Time"},
    "microtime": {"$ref": f"{REF}{_META}MicroTime"},
    "quantity": {"$ref": f"{REF}io.k8s.apimachinery.pkg.api.resource.Quantity"},
    "int-or-string": {"$ref": f"{REF}io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
}

COMMON: dict[str, Schema] = {
    "apiVersion": {
        "type": "string",
        "description": "APIVersion defines the group and version whose schema this object follows.",
    },
    "kind": {"type": "string", "description": "Kind is the name of the schema that this object follows."},
    "metadata": {"allOf": [{"$ref": f"{REF}{_META}ObjectMeta"}], "description": "Standard object's metadata."},
}
"""Fields of every kind, custom ones included."""

_NAMED_SCALARS: dict[str, Schema] = {
    f"{_META}Time": {"type": "string", "format": "date-time"},
    f"{_META}MicroTime": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}

# Packages are Go paths; groups are what the API calls them. Only these groups have a domain.
_DOMAINS = {
    "core": "",
    "apps": "apps",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "policy": "policy",
    "rbac": "rbac.authorization.k8s.io",
}


class Definitions(Mapping[str, Schema]):
    """All types by full name; the text is read when the first one is asked for."""

    def __getitem__(self, name: str) -> Schema:
        return _load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_load())

    def __len__(self) -> int:
        return len(_load())

    def __contains__(self, name: object) -> bool:
        return name in _load()


DEFINITIONS = Definitions()


def type_name(group: str, version: str, kind: str) -> str:
    """`io.k8s.api.apps.v1.Deployment` for apps/v1 Deployment."""
    if group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"
    return f"io.k8s.api.{group.split('.')[0] or 'core'}.{version}.{kind}"


@cache
def _load() -> dict[str, Schema]:
    reader = _Reader()
    for path in sorted(Path(__file__).parent.glob("*.txt")):
        reader.read(path.read_text(encoding="utf-8"), path.name)
    return reader.finish()


class _Reader:
    """Collects fields line by line and resolves type names when all files are known."""

    def __init__(self) -> None:
        self.types: dict[str, dict[str, Any]] = {}
        self.pending: list[tuple[str, str, str, str]] = []  # type's full name, field, rest of line, place
        self.by_short_name: dict[str, list[str]] = {}

    def read(self, text: str, source: str) -> None:
        package = current = ""
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{source}:{number}"
            if not line or line.startswith("#"):
                continue
            if line.startswith("package "):
                package = line[8:].strip()
            elif line.startswith("  "):
                field, _, rest = line.strip().partition(" ")
                self.pending.append((current, field, rest.strip(), place))
            else:
                current = self._open(package, line)

    def _open(self, package: str, line: str) -> str:
        words, _, description = line.partition("  -- ")
        name, *attributes = words.split()
        full = f"{package}.{name}"
        schema: dict[str, Any] = {"type": "object"}
        if description:
            schema["description"] = description
        if "atomic" in attributes:
            schema["x-kubernetes-map-type"] = "atomic"
        self.types[full] = schema
        self.by_short_name.setdefault(name, []).append(full)
        if "kind" in attributes:
            schema["properties"] = dict(COMMON)
            schema["x-kubernetes-group-version-kind"] = [_gvk(package, name)]
            self.types[f"{full}List"] = list_type(full, _gvk(package, name))
        return full

    def finish(self) -> dict[str, Schema]:
        for owner, field, rest, place in self.pending:
            schema = self.types[owner]
            name = field.rstrip("!~")
            if name != field:
                schema.setdefault("required", []).append(name)
                if field.endswith("~"):
                    schema.setdefault(LENIENT, []).append(name)
            schema.setdefault("properties", {})[name] = self._field(rest, owner.rpartition(".")[0], place)
        return {**self.types, **_NAMED_SCALARS}

    def _field(self, text: str, package: str, place: str) -> dict[str, Any]:
        words, _, description = text.partition("-- ")
        kind, *attributes = words.split()
        schema = dict(self._type(kind, package, place))
        extra: dict[str, Any] = {"description": description} if description else {}
        if kind[0] == "[":
            extra["x-kubernetes-list-type"] = "atomic"
        strategy = []
        for attribute in attributes:
            word, _, value = attribute.partition("=")
            if word in ("merge", "retainKeys", "replace"):
                strategy.append(word)
                if value:
                    extra["x-kubernetes-patch-merge-key"] = value
            elif word == "set":
                extra["x-kubernetes-list-type"] = "set"
            elif word == "map":
                extra["x-kubernetes-list-type"] = "map"
                extra["x-kubernetes-list-map-keys"] = value.split(",")
            elif word in ("atomic", "granular"):
                extra["x-kubernetes-map-type"] = word
            elif word == "enum":
                if kind[0] == "[":
                    schema["items"] = {**schema["items"], "enum": value.split("|")}
                else:
                    extra["enum"] = value.split("|")
            elif word == "default":
                extra["default"] = _value(value)
            else:
                raise ValueError(f"{place}: unknown attribute {attribute!r}")
        if strategy:
            extra["x-kubernetes-patch-strategy"] = ",".join(strategy)
        if extra and "$ref" in schema:
            return {"allOf": [schema], **extra}
        return {**schema, **extra}

    def _type(self, text: str, package: str, place: str) -> dict[str, Any]:
        if text[0] == "[":
            return {"type": "array", "items": self._type(text[1:-1], package, place)}
        if text[0] == "{":
            return {"type": "object", "additionalProperties": self._type(text[1:-1], package, place)}
        if text in _SCALARS:
            return _SCALARS[text]
        full = f"{package}.{text}"
        if full not in self.types:
            found = [text] if text in self.types else self.by_short_name.get(text, [])
            if len(found) != 1:
                raise ValueError(f"{place}: type {text!r} is not one of {found or 'the types known'}")
            full = found[0]
        return {"$ref": REF + full}


def _gvk(package: str, kind: str) -> dict[str, str]:
    *_, group, version = package.split(".")
    return {"group": _DOMAINS.get(group, f"{group}.k8s.io"), "version": version, "kind": kind}


def list_type(name: str, gvk: Mapping[str, str], *, kind: str = "") -> dict[str, Any]:
    """Of the kind whose type has this name; `kind` of the list where it is not the kind's with `List` behind it."""
    return {
        "type": "object",
        "description": f"A list of {gvk['kind']} objects.",
        "required": ["items"],
        "properties": {
            "apiVersion": COMMON["apiVersion"],
            "kind": COMMON["kind"],
            "metadata": {"$ref": f"{REF}{_META}ListMeta"},
            "items": {"type": "array", "items": {"$ref": REF + name}},
        },
        "x-kubernetes-group-version-kind": [{**gvk, "kind": kind or f"{gvk['kind']}List"}],
    }


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
