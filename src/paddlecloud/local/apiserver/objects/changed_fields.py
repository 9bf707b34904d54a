"""Which fields an object has, and which changed between two objects, as sets of paths (`fieldset.py`).

What is one field and what has its own fields is read from the schema (`schema.node.Node`): lists are atomic, sets or
keyed, maps granular or atomic. Where the schema is silent, lists are atomic and maps granular.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from paddlecloud.local.apiserver.objects.fieldset import EMPTY, Fields, is_member, json_text, step_text
from paddlecloud.local.apiserver.schema.structural import Node, child, default, item, list_type, map_keys, map_type

_ABSENT: Any = object()

UNOWNED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""What the server writes or what names the object: no manager ever owns it."""
_UNOWNED_ROOT = frozenset({"apiVersion", "kind"})


class Malformed(Exception):
    """An element of a keyed list or a set that is not unique; the message says where."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path = ""

    def inside(self, step: str) -> Malformed:
        self.path = step_text(step) + self.path
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


# --- sets of objects --------------------------------------------------------------------------------------------------


def of_object(obj: dict[str, Any], node: Node | None) -> Fields:
    """What a manager owns that applies `obj`: leaves, keys of maps and elements of lists, not the fields around them.

    Raises `Malformed` when elements of a keyed list or a set are not unique.
    """
    return _without_unowned(_applied_map(obj, node, top_level))


def changes(old: dict[str, Any], new: dict[str, Any], node: Node | None) -> tuple[Fields, Fields]:
    """The paths added or modified, and the paths removed, on the way from `old` to `new`.

    Equal subtrees are skipped whole, so the cost follows what changed, not the size of the object. As Python compares
    them, `true` and 1 are equal; a schema that admits both at one place is the only one to notice.
    """
    changed: Fields = {}
    removed: Fields = {}
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if key == "metadata":
            _metadata_changes(before, value, top_level(node, key), changed, removed)
        elif value is before or value == before or key in _UNOWNED_ROOT:
            continue
        elif before is _ABSENT:
            changed["f:" + key] = _added_at_top(key, value, node)
        else:
            _value_changes("f:" + key, before, value, top_level(node, key), changed, removed)
    for key in old.keys() - new.keys() - _UNOWNED_ROOT:
        removed["f:" + key] = _whole(old[key], top_level(node, key))
    return changed, removed


def _added_at_top(key: str, value: Any, node: Node | None) -> Fields:
    """A kind has its spec and status whether they are written or not: only what is inside comes to be owned."""
    added = _whole(value, top_level(node, key))
    if key in ("spec", "status") and len(added) > 1:
        del added["."]
    return added


def _metadata_changes(old: Any, new: Any, node: Node | None, changed: Fields, removed: Fields) -> None:
    before = {k: v for k, v in old.items() if k not in UNOWNED_METADATA} if isinstance(old, dict) else {}
    after = {k: v for k, v in new.items() if k not in UNOWNED_METADATA} if isinstance(new, dict) else {}
    if before != after:
        _put("f:metadata", _map_changes(before, after, node), changed, removed)


def _value_changes(step: str, old: Any, new: Any, node: Node | None, changed: Fields, removed: Fields) -> None:
    """Note under `step` how two different values differ."""
    if isinstance(new, dict) and isinstance(old, dict) and not is_atomic_map(node):
        _put(step, _map_changes(old, new, node), changed, removed)
    elif isinstance(new, list) and isinstance(old, list):
        old_keys, new_keys = element_keys(old, node), element_keys(new, node)
        if old_keys is None or new_keys is None:
            changed[step] = {}
        else:
            sub = item(node) if node is not None else None
            sets = _pairwise_changes(_index(old_keys, old), _index(new_keys, new), "", lambda _: sub)
            _put(step, sets, changed, removed)
    else:
        changed[step] = _whole(new, node)
        inside = {k: v for k, v in _whole(old, node).items() if k != "."}
        if inside:
            removed[step] = inside


def _map_changes(old: dict[str, Any], new: dict[str, Any], node: Node | None) -> tuple[Fields, Fields]:
    return _pairwise_changes(old, new, "f:", lambda key: field_node(node, key))


def _pairwise_changes(
    old: dict[str, Any], new: dict[str, Any], prefix: str, node_of: Callable[[str], Node | None]
) -> tuple[Fields, Fields]:
    changed: Fields = {}
    removed: Fields = {}
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if value is before or value == before:
            continue
        if before is _ABSENT:
            changed[prefix + key] = _whole(value, node_of(key))
        else:
            _value_changes(prefix + key, before, value, node_of(key), changed, removed)
    for key in old.keys() - new.keys():
        removed[prefix + key] = _whole(old[key], node_of(key))
    return changed, removed


def _put(step: str, sets: tuple[Fields, Fields], changed: Fields, removed: Fields) -> None:
    if sets[0]:
        changed[step] = sets[0]
    if sets[1]:
        removed[step] = sets[1]


class _Duplicates(list[Any]):
    """Elements of a list that share a key: they are compared and owned together, as one opaque value."""


def _index(keys: list[str], values: list[Any]) -> dict[str, Any]:
    index = dict(zip(keys, values, strict=True))
    if len(index) < len(keys):
        index.update({key: _Duplicates() for key, count in Counter(keys).items() if count > 1})
        for key, value in zip(keys, values, strict=True):
            if isinstance(index[key], _Duplicates):
                index[key].append(value)
    return index


def _whole(value: Any, node: Node | None) -> Fields:
    """Every path at and below a value that has just come or gone."""
    if isinstance(value, dict):
        if not value or is_atomic_map(node):
            return {}
        fields: Fields = {".": {}}
        for key, inner in value.items():
            if isinstance(inner, (dict, list)):
                fields["f:" + key] = _whole(inner, child(node, key) if node is not None else None)
            else:
                fields["f:" + key] = {}
        return fields
    if isinstance(value, list) and value and not isinstance(value, _Duplicates):
        keys = element_keys(value, node)
        if keys is not None:
            sub = item(node) if node is not None else None
            return {".": {}, **{k: _whole(v, sub) for k, v in _index(keys, value).items()}}
    return {}


def _applied_map(value: dict[str, Any], node: Node | None, lookup: Lookup) -> Fields:
    fields: Fields = {}
    declared = node.children if node is not None else {}
    for key, inner in value.items():
        step = "f:" + key
        try:
            below = _applied(inner, lookup(node, key))
        except Malformed as error:
            raise error.inside(step) from None
        if below is not None:
            fields[step] = below if key in declared or is_member(below) else {".": {}, **below}
        elif key not in declared:
            fields[step] = {}
    return fields


def _applied(value: Any, node: Node | None) -> Fields | None:
    """The set of a field applied, or None when nothing in it is owned: a list to be merged that is empty."""
    if isinstance(value, dict) and value and not is_atomic_map(node):
        return _applied_map(value, node, field_node) or None
    if not isinstance(value, list) or node is None or list_type(node) not in ("set", "map"):
        return {}
    fields: Fields = {}
    sub, key_of = item(node), element_key(node)
    for element in value:
        step = key_of(element)
        if step in fields:
            raise Malformed(f"duplicate entries for key {step_text(step)}")
        try:
            below = _applied(element, sub)
        except Malformed as error:
            raise error.inside(step) from None
        fields[step] = {".": {}, **below} if below else {}
    return fields or None


def _without_unowned(fields: Fields) -> Fields:
    kept = {key: value for key, value in fields.items() if key[2:] not in _UNOWNED_ROOT}
    owned = kept.pop("f:metadata", EMPTY).items()
    metadata = {key: value for key, value in owned if key != "." and key[2:] not in UNOWNED_METADATA}
    return {"f:metadata": metadata, **kept} if metadata else kept


# --- what the schema says about a place -------------------------------------------------------------------------------


Lookup = Callable[["Node | None", str], "Node | None"]

_METADATA = Node(
    {
        "type": "object",
        "properties": {
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "generateName": {"type": "string"},
            "ownerReferences": {
                "type": "array",
                "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
            },
        },
    },
    {},
)
"""Metadata of kinds whose own schema says no more than `type: object`, as CRDs do: it is the same for every kind."""


def field_node(node: Node | None, key: str) -> Node | None:
    return child(node, key) if node is not None else None


def top_level(node: Node | None, key: str) -> Node | None:
    """The node of a field of the whole object."""
    found = field_node(node, key)
    if key == "metadata" and (found is None or not found.children):
        return _METADATA
    return found


def is_atomic_map(node: Node | None) -> bool:
    return node is not None and map_type(node) == "atomic"


def element_keys(values: list[Any], node: Node | None) -> list[str] | None:
    """The path element of each element, or None for a list that is one field: atomic, or not as its schema says."""
    if node is None or list_type(node) == "atomic":
        return None
    try:
        key_of = element_key(node)
        return [key_of(value) for value in values]
    except Malformed:
        return None


def element_key(node: Node) -> Callable[[Any], str]:
    """How the elements of a set or a keyed list are addressed: the path element of a value."""
    if list_type(node) == "set":
        return _member_key
    names, sub = map_keys(node), item(node)
    quoted = [(name, json_text(name)) for name in sorted(names)]

    def key_of(value: Any) -> str:
        if not isinstance(value, dict):
            raise Malformed("a list with keys may only have objects as elements")
        parts = []
        for name, text in quoted:
            part = value.get(name)
            if part is None:
                # A key left out takes the default its schema has: ports without a protocol are TCP.
                part = default(sub, name) if sub is not None else None
                if part is None:
                    continue
            if isinstance(part, (dict, list)):
                raise Malformed(f"the key field {name} must be a scalar")
            parts.append(f"{text}:{json_text(part)}")
        if not parts:
            raise Malformed(f"an element omits all key fields {list(names)} and there is no default for any")
        return "k:{" + ",".join(parts) + "}"

    return key_of


def _member_key(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        raise Malformed("a list used as a set may only have scalar elements")
    return f"v:{json_text(value)}"
