"""Structural schemas at work: pruning, defaulting, unknown fields; and, re-exported, validation and `Node`.

Pure functions over plain dicts. They mirror what Kubernetes does to custom resources, and the embedded API server uses
them for built-in kinds too. What makes a schema acceptable in a CRD is not decided here but in `crd/schema.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.causes import Cause
from paddlecloud.local.apiserver.schema.node import (
    LONGEST_PART,
    MAX_DEPTH,
    META_FIELDS,
    Node,
    child,
    default,
    item,
    list_type,
    map_keys,
    map_type,
    patch_merge_key,
    patch_strategy,
    too_deep,
)
from paddlecloud.local.apiserver.schema.validate import validate, validate_field

__all__ = [
    "Cause",
    "Node",
    "apply_defaults",
    "child",
    "default",
    "item",
    "list_type",
    "map_keys",
    "map_type",
    "patch_merge_key",
    "patch_strategy",
    "prune",
    "unknown_fields",
    "validate",
    "validate_field",
]


def prune(obj: Any, schema: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """Drop in place what the schema does not know; the paths dropped, sorted, such as `spec.containers[0].foo`.

    apiVersion, kind and metadata of the root stay even where the schema leaves them out.
    """
    return sorted(_unknown(obj, Node(schema, definitions), True, 0, root=True))


def unknown_fields(obj: Any, schema: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """The paths `prune` would drop; the object is left alone."""
    return sorted(_unknown(obj, Node(schema, definitions), False, 0, root=True))


def _unknown(value: Any, node: Node, drop: bool, depth: int, *, root: bool = False, keep: bool = False) -> list[str]:
    """Paths relative to `value`. They are put together on the way back, so that a clean object builds no strings."""
    if depth > MAX_DEPTH:
        raise too_deep()
    found: list[str] = []
    if type(value) is dict:
        nested: list[str] = []
        children, extra = node.children, node.additional
        for key, part in value.items():
            sub = children.get(key, extra)
            if sub is None:
                if not (keep or node.preserve or (root and key in META_FIELDS)):
                    found.append(key)
            elif type(part) is dict or type(part) is list:
                below = _unknown(part, sub, drop, depth + 1)
                if below:
                    nested += _under(key, below)
        if drop:
            for key in found:
                del value[key]
        found += nested
    elif type(value) is list:
        sub = node.items
        if sub is None:
            if keep or node.preserve:
                return found
            sub = _NOTHING
        for index, part in enumerate(value):
            if type(part) is dict or type(part) is list:
                below = _unknown(part, sub, drop, depth + 1, keep=node.preserve)
                if below:
                    found += _under(f"[{index}]", below)
    return found


def _under(place: str, paths: list[str]) -> list[str]:
    place = place[:LONGEST_PART]  # a key is a user's: a huge one must not be repeated for each field below it
    return [place + path if path.startswith("[") else f"{place}.{path}" for path in paths]


_NOTHING = Node({}, {})


def apply_defaults(obj: Any, schema: Schema, definitions: Mapping[str, Schema]) -> None:
    """Fill in defaults in place: fields missing from objects that are there, and nulls that may not be null.

    A null in a field that is neither nullable nor defaulted is removed first, as if it had not been sent.
    """
    _default(obj, Node(schema, definitions), 0)


_SCALARS = frozenset((str, int, float, bool))


def _default(value: Any, node: Node, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise too_deep()
    if type(value) is dict:
        children = node.children
        for key, fallback in node.defaults:
            if key not in value:
                value[key] = fallback if type(fallback) in _SCALARS else copy.deepcopy(fallback)
        extra = node.additional
        nulls: list[str] = []
        for key, part in value.items():
            sub = children.get(key, extra)
            if part is None:
                if sub is not None and not sub.nullable:
                    nulls.append(key)
            elif sub is not None and (type(part) is dict or type(part) is list):
                _default(part, sub, depth + 1)
        for key in nulls:
            _replace_null(value, key, children.get(key, extra), depth)
    elif type(value) is list:
        sub = node.items
        if sub is None:
            return
        for index, part in enumerate(value):
            if part is None and not sub.nullable and sub.default_value is not None:
                value[index] = part = copy.deepcopy(sub.default_value)
            if type(part) is dict or type(part) is list:
                _default(part, sub, depth + 1)


def _replace_null(value: dict[str, Any], key: str, node: Node | None, depth: int) -> None:
    if node is None or node.default_value is None:
        del value[key]
    else:
        value[key] = copy.deepcopy(node.default_value)
        _default(value[key], node, depth + 1)
