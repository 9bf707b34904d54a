"""Structural schemas at work: pruning, defaulting, unknown fields; and, re-exported, validation and `Node`.

Pure functions over plain dicts. They mirror what Kubernetes does to custom resources, and the embedded API server uses
them for built-in kinds too. What makes a schema acceptable in a CRD is not decided here but in `crd_install`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema_node import (
    ABSENT,
    META_FIELDS,
    Node,
    child,
    compiled,
    default,
    item,
    list_type,
    map_keys,
    map_type,
    patch_merge_key,
    patch_strategy,
)

__all__ = [
    "MAX_DEPTH",
    "Node",
    "apply_defaults",
    "child",
    "compiled",
    "default",
    "item",
    "list_type",
    "map_keys",
    "map_type",
    "patch_merge_key",
    "patch_strategy",
    "prune",
    "unknown_fields",
]

MAX_DEPTH = 128
"""Objects nesting deeper are refused: far beyond any real one, far below the interpreter's recursion limit."""


def prune(obj: Any, schema: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """Drop in place what the schema does not know; the paths dropped, sorted, such as `spec.containers[0].foo`.

    apiVersion, kind and metadata of the root stay even where the schema leaves them out.
    """
    return sorted(_unknown(obj, compiled(schema, definitions), drop=True, root=True, depth=0) or ())


def unknown_fields(obj: Any, schema: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """The paths `prune` would drop; the object is left alone."""
    return sorted(_unknown(obj, compiled(schema, definitions), drop=False, root=True, depth=0) or ())


def _unknown(
    value: Any, node: Node, *, drop: bool, depth: int, root: bool = False, keep: bool = False
) -> list[str] | None:
    """Paths relative to `value`. They are put together on the way back, so that a clean object builds no strings."""
    if depth > MAX_DEPTH:
        raise _too_deep()
    found: list[str] = []
    keep = keep or node.preserve
    if type(value) is dict:
        children, extra = node.children, node.additional
        strangers = []
        for key, part in value.items():
            sub = children.get(key, extra)
            if sub is None:
                if not keep and not (root and key in META_FIELDS):
                    strangers.append(key)
            elif type(part) is dict or type(part) is list:
                below = _unknown(part, sub, drop=drop, depth=depth + 1)
                if below:
                    found += [f"{key}{path if path[0] == '[' else '.' + path}" for path in below]
        found += strangers
        if drop:
            for key in strangers:
                del value[key]
    elif type(value) is list:
        sub = node.items
        if sub is None:
            if keep:
                return None
            sub = _NOTHING
        for index, part in enumerate(value):
            if type(part) is dict or type(part) is list:
                below = _unknown(part, sub, drop=drop, depth=depth + 1, keep=node.preserve)
                if below:
                    found += [f"[{index}]{path if path[0] == '[' else '.' + path}" for path in below]
    return found or None


_NOTHING = Node({}, {})


def apply_defaults(obj: Any, schema: Schema, definitions: Mapping[str, Schema]) -> None:
    """Fill in defaults in place: fields missing from objects that are there, and nulls that may not be null.

    A null in a field that is neither nullable nor defaulted is removed first, as if it had not been sent.
    """
    _default(obj, compiled(schema, definitions), 0)


def _default(value: Any, node: Node, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    if type(value) is dict:
        children = node.children
        for key, fallback in node.defaults:
            if key not in value or (value[key] is None and not children[key].nullable):
                value[key] = copy.deepcopy(fallback)
        nulls = None
        extra = node.additional
        for key, part in value.items():
            sub = children.get(key, extra)
            if sub is None:
                continue
            if part is None:
                if not sub.nullable:
                    nulls = [*(nulls or ()), key]
            elif type(part) is dict or type(part) is list:
                _default(part, sub, depth + 1)
        for key in nulls or ():
            sub = children.get(key, extra)
            if sub is not None and sub.default_value is not ABSENT:
                value[key] = copy.deepcopy(sub.default_value)
                _default(value[key], sub, depth + 1)
            else:
                del value[key]
    elif type(value) is list:
        sub = node.items
        if sub is None:
            return
        for index, part in enumerate(value):
            if part is None and not sub.nullable and sub.default_value is not ABSENT:
                value[index] = part = copy.deepcopy(sub.default_value)
            if type(part) is dict or type(part) is list:
                _default(part, sub, depth + 1)


def _too_deep() -> BadRequest:
    return BadRequest(f"the object nests deeper than {MAX_DEPTH} levels; flatten it")
