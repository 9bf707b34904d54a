"""What a schema says about one place in an object.

A schema is a plain dict (OpenAPI v3, `$ref` resolved in a `definitions` mapping). `Node` is the same schema made ready
for walking objects: references followed, children looked up once, extensions read. Nodes are compiled lazily, one level
at a time, so recursive types cost nothing until an object really recurses. Strategic merge, server-side apply, pruning
and validation all ask the same nodes, so there is one merge-key table and it is true for all of them.

Nodes hold no rules of their own: pruning and defaulting are in `schema`, value checks in `schema_validate`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from paddlecloud.local.apiserver.registry import Schema

REF = "#/components/schemas/"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
META_FIELDS = ("apiVersion", "kind", "metadata")

ABSENT: Any = object()
"""Stands for "the schema has no default", since null is a possible default."""


class Node:
    """A schema at one place. Compare nodes by identity; the same place of the same schema is the same node."""

    __slots__ = (
        "_children",
        "_definitions",
        "_item",
        "_shared",
        "additional",
        "checks",
        "default_value",
        "defaults",
        "embedded",
        "int_or_string",
        "nullable",
        "preserve",
        "required",
        "schema",
        "type",
    )

    def __init__(
        self,
        schema: Schema,
        definitions: Mapping[str, Schema],
        *,
        _shared: dict[str, Node] | None = None,
    ) -> None:
        self.schema: Schema = _resolve(schema, definitions)
        self._definitions = definitions
        self._shared: dict[str, Node] = {} if _shared is None else _shared
        self._children: dict[str, Node] | None = None
        self._item: Node | None = None
        self.additional: Node | None = None
        self.defaults: tuple[tuple[str, Any], ...] = ()  # of the children that have one; filled with them
        self.checks: Any = None  # compiled by schema_validate on first use
        body = self.schema
        self.type: str = body.get("type", "")
        self.int_or_string: bool = bool(body.get("x-kubernetes-int-or-string") or body.get("format") == "int-or-string")
        self.nullable: bool = bool(body.get("nullable"))
        self.preserve: bool = bool(body.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded: bool = bool(body.get("x-kubernetes-embedded-resource"))
        self.required: tuple[str, ...] = tuple(body.get("required", ()))
        self.default_value: Any = body.get("default", ABSENT)

    @property
    def children(self) -> dict[str, Node]:
        """Nodes of the declared fields; compiles this level on first use."""
        if self._children is None:
            self._load()
        assert self._children is not None
        return self._children

    @property
    def items(self) -> Node | None:
        """The node of every element of a list, or None where the schema does not say."""
        if self._item is None and isinstance(self.schema.get("items"), Mapping):
            self._item = self._make(self.schema["items"])
        return self._item

    def _load(self) -> None:
        children = {name: self._make(sub) for name, sub in self.schema.get("properties", {}).items()}
        if self.embedded:
            children["apiVersion"] = self._make({"type": "string"})
            children["kind"] = self._make({"type": "string"})
            known = OBJECT_META in self._definitions
            children["metadata"] = self._make({"$ref": REF + OBJECT_META} if known else _ANY_OBJECT)
        extra = self.schema.get("additionalProperties")
        if isinstance(extra, Mapping):
            self.additional = self._make(extra)
        elif extra is True:
            self.additional = self._make({})
        self.defaults = tuple(
            (name, node.default_value) for name, node in children.items() if node.default_value is not ABSENT
        )
        self._children = children

    def _make(self, schema: Schema) -> Node:
        if len(schema) == 1 and "$ref" in schema:
            name = schema["$ref"][len(REF) :]
            node = self._shared.get(name)
            if node is None:
                node = self._shared[name] = Node(schema, self._definitions, _shared=self._shared)
            return node
        return Node(schema, self._definitions, _shared=self._shared)


_ANY_OBJECT: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _resolve(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Follow `$ref`, also in the published form `allOf: [{$ref}]` beside other keys; what stands beside it wins."""
    seen: set[str] = set()
    while True:
        ref = schema.get("$ref")
        beside = {k: v for k, v in schema.items() if k != "$ref"} if ref else None
        if ref is None:
            parts = schema.get("allOf")
            if not (isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0].get("$ref"), str)):
                return schema
            ref = parts[0]["$ref"]
            beside = {k: v for k, v in schema.items() if k != "allOf"}
        name = ref[len(REF) :]
        if name in seen or name not in definitions:
            raise ValueError(f"schema reference {ref!r} does not lead to a definition")
        seen.add(name)
        schema = {**definitions[name], **(beside or {})}


_compiled: dict[tuple[int, int], tuple[Node, Schema, Mapping[str, Schema]]] = {}
_COMPILED_LIMIT = 1024


def compiled(schema: Schema, definitions: Mapping[str, Schema]) -> Node:
    """The node of a schema, compiled once as long as the same two objects are passed.

    The cache is keyed by identity (dicts do not hash) and keeps both alive, so an id is never met twice.
    """
    entry = _compiled.get((id(schema), id(definitions)))
    if entry is None:
        if len(_compiled) >= _COMPILED_LIMIT:
            _compiled.clear()
        entry = (Node(schema, definitions), schema, definitions)
        _compiled[(id(schema), id(definitions))] = entry
    return entry[0]


# --- questions that merging asks ---------------------------------------------------------------------------------


def child(node: Node, field: str) -> Node | None:
    """The node of a field: declared, or of every key of a map; None where the schema does not know the field."""
    found = node.children.get(field)
    return found if found is not None else node.additional


def item(node: Node) -> Node | None:
    return node.items


def list_type(node: Node) -> str:
    """`atomic`, `set` or `map`. A list without the extension is atomic, as Kubernetes has it."""
    return str(node.schema.get("x-kubernetes-list-type", "atomic"))


def map_keys(node: Node) -> tuple[str, ...]:
    """The fields that together identify an element of a list of type `map`."""
    return tuple(node.schema.get("x-kubernetes-list-map-keys", ()))


def map_type(node: Node) -> str:
    """`granular` (each field owned by itself) or `atomic` (replaced as a whole)."""
    return str(node.schema.get("x-kubernetes-map-type", "granular"))


def patch_strategy(node: Node) -> set[str]:
    """Words of strategic merge for this field: a subset of `merge`, `replace`, `retainKeys`."""
    text = str(node.schema.get("x-kubernetes-patch-strategy", ""))
    return set(text.split(",")) if text else set()


def patch_merge_key(node: Node) -> str | None:
    key = node.schema.get("x-kubernetes-patch-merge-key")
    return str(key) if key is not None else None


def default(node: Node, key: str) -> Any:
    """The default of a field, or None. List-map keys with a default (a port's protocol) may be left out by users."""
    found = node.children.get(key)
    if found is None or found.default_value is ABSENT:
        return None
    return copy.deepcopy(found.default_value)
