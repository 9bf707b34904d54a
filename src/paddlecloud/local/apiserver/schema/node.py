"""What a schema says about one place in an object.

A schema is a plain dict (OpenAPI v3, `$ref` resolved in a `definitions` mapping). `Node` is the same schema made ready
for walking objects: references followed, children looked up once, extensions read. Nodes are compiled lazily, one level
at a time, so recursive types cost nothing until an object really recurses. Strategic merge, server-side apply, pruning
and validation all ask the same nodes, so there is one merge-key table and it is true for all of them.

Nodes hold no rules of their own: pruning and defaulting are in `structural`, value checks in `validate`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.registry import Schema

REF = "#/components/schemas/"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
META_FIELDS = ("apiVersion", "kind", "metadata")

LENIENT = "x-paddlecloud-lenient"
"""Our own extension, never published: required fields whose absence the server reads as their zero value."""


MAX_DEPTH = 128
"""Objects nesting deeper are refused: far beyond any real one, far below the interpreter's recursion limit."""

LONGEST_PART = 256
"""Characters of one key that a path shows."""


def too_deep() -> BadRequest:
    return BadRequest(f"the object nests deeper than {MAX_DEPTH} levels; flatten it")


class Node:
    """A schema at one place. `Node(schema, definitions)` of the same two objects is the same node, compiled once."""

    __slots__ = (
        "_definitions",
        "_shared",
        "additional",
        "checks",
        "children",
        "codec",
        "default_value",
        "defaults",
        "embedded",
        "int_or_string",
        "items",
        "name",
        "nullable",
        "owner",
        "preserve",
        "required",
        "rules",
        "schema",
        "type",
    )

    schema: Schema
    """With references followed."""
    name: str
    """The definition a reference led to, such as `io.k8s.api.core.v1.Pod`; empty for a schema written in place."""
    owner: str
    """The definition this place is in, its own name included; empty throughout a schema written in place."""
    children: dict[str, Node]
    """Nodes of the declared fields."""
    additional: Node | None
    """The node of every other key: what makes an object a map."""
    items: Node | None
    """The node of every element of a list, where the schema says what they are."""
    defaults: tuple[tuple[str, Any], ...]
    """The declared fields that have a default, with it."""
    default_value: Any
    """None where there is none: Kubernetes ignores a default of null, too."""
    checks: Any
    """Compiled by `validate` on first use."""
    codec: Any
    """Compiled by `builtin/decode.py` on first use."""
    rules: Any
    """Of this place and all below it; compiled by `validate` on first use."""

    def __new__(cls, schema: Schema, definitions: Mapping[str, Schema]) -> Node:
        return _remembered(schema, definitions)

    def _fill(
        self, schema: Schema, definitions: Mapping[str, Schema], shared: dict[str, Node], owner: str = ""
    ) -> Node:
        self.schema, self.name = _resolve(schema, definitions)
        self.owner = self.name or owner
        self._definitions = definitions
        self._shared = shared
        self.checks = None
        self.codec = None
        self.rules = None
        body = self.schema
        self.type: str = body.get("type", "")
        self.int_or_string = bool(body.get("x-kubernetes-int-or-string") or body.get("format") == "int-or-string")
        self.nullable = bool(body.get("nullable"))
        self.preserve = bool(body.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(body.get("x-kubernetes-embedded-resource"))
        zero_is_fine = body.get(LENIENT, ())
        self.required: tuple[str, ...] = tuple(key for key in body.get("required", ()) if key not in zero_is_fine)
        self.default_value = body.get("default")
        return self

    def __getattr__(self, name: str) -> Any:
        """Slots that are still empty: this level is compiled when something below it is first asked for."""
        if name not in ("children", "additional", "defaults", "items"):
            raise AttributeError(name)
        self._load()
        return object.__getattribute__(self, name)

    def _load(self) -> None:
        children = {name: self.sub(sub) for name, sub in self.schema.get("properties", {}).items()}
        if self.embedded:
            children["apiVersion"] = self.sub({"type": "string"})
            children["kind"] = self.sub({"type": "string"})
            known = OBJECT_META in self._definitions
            children["metadata"] = self.sub({"$ref": REF + OBJECT_META} if known else _ANY_OBJECT)
        extra = self.schema.get("additionalProperties")
        if extra is True:
            extra = {}
        self.additional = self.sub(extra) if isinstance(extra, Mapping) else None
        element = self.schema.get("items")
        self.items = self.sub(element) if isinstance(element, Mapping) else None
        self.defaults = tuple(
            (name, node.default_value) for name, node in children.items() if node.default_value is not None
        )
        self.children = children

    def sub(self, schema: Schema) -> Node:
        """The node of a schema written inside this one. Named types are shared, which is what ends recursion."""
        if len(schema) == 1 and "$ref" in schema:
            name = schema["$ref"][len(REF) :]
            node = self._shared.get(name)
            if node is None:
                node = self._shared[name] = _new()._fill(schema, self._definitions, self._shared)
            return node
        return _new()._fill(schema, self._definitions, self._shared, self.owner)


def _new() -> Node:
    return object.__new__(Node)


_ANY_OBJECT: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _resolve(schema: Schema, definitions: Mapping[str, Schema]) -> tuple[Schema, str]:
    """Follow `$ref`, also in the published form `allOf: [{$ref}]` beside other keys; what stands beside it wins."""
    name = ""
    seen: set[str] = set()
    while True:
        parts = schema.get("allOf")
        if isinstance(schema.get("$ref"), str):
            via, ref = "$ref", schema["$ref"]
        elif isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0].get("$ref"), str):
            via, ref = "allOf", parts[0]["$ref"]
        else:
            return schema, name
        name = ref[len(REF) :]
        if name in seen or name not in definitions:
            raise ValueError(f"schema reference {ref!r} does not lead to a definition")
        seen.add(name)
        beside = {key: value for key, value in schema.items() if key != via}
        schema = {**definitions[name], **beside} if beside else definitions[name]


# Both caches are keyed by identity, since dicts do not hash, and keep what they are keyed by alive, so that no id is
# ever met twice. Nodes of named types are shared by all schemas over the same definitions.
_nodes: dict[tuple[int, int], tuple[Node, Schema]] = {}
_named: dict[int, tuple[Mapping[str, Schema], dict[str, Node]]] = {}
_REMEMBERED = 1024


def _remembered(schema: Schema, definitions: Mapping[str, Schema]) -> Node:
    entry = _nodes.get((id(schema), id(definitions)))
    if entry is None:
        if len(_nodes) >= _REMEMBERED or len(_named) >= _REMEMBERED:
            _nodes.clear()
            _named.clear()
        shared = _named.setdefault(id(definitions), (definitions, {}))[1]
        entry = (_new()._fill(schema, definitions, shared), schema)
        _nodes[(id(schema), id(definitions))] = entry
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
    return copy.deepcopy(found.default_value) if found is not None else None
