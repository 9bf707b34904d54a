"""Does an object fit its schema? Causes in the words of Kubernetes.

A node's constraints are compiled once into `Rules`, so that a sound object costs little more than a walk. Paths are
linked pairs that become text only when there is something to say. Messages name the place twice, as Kubernetes' do: the
field is `spec.ports[0].port`, and the text begins `spec.ports[0].port in body must be …`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from paddlecloud.local.apiserver.causes import (
    Cause,
    duplicate,
    invalid,
    not_supported,
    quote,
    required,
    show,
    too_long,
    too_many,
    type_invalid,
)
from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema_formats import format_check
from paddlecloud.local.apiserver.schema_node import LONGEST_PART, MAX_DEPTH, Node, too_deep
from paddlecloud.local.apiserver.schema_pattern import PatternError, TooCostly, compile_pattern

MAX_CAUSES = 100
"""Enough to mend an object by; a hostile one must not make an answer of megabytes."""

_Path = Any  # nested pairs ((None, "spec"), "ports"), an int for an index; None is the root
_Check = Callable[[Any, _Path, list[Cause]], None]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def validate(obj: Any, schema: Schema, definitions: Mapping[str, Schema], *, path: str = "") -> list[Cause]:
    """Everything the schema forbids, in the order of the object's fields. Empty when the object fits."""
    out: list[Cause] = []
    check(obj, Node(schema, definitions), (None, path) if path else None, out)
    return out


def check(value: Any, node: Node, path: _Path, out: list[Cause], depth: int = 0) -> None:
    """Append to `out` what is wrong with `value`. The recursion of `validate`, for callers that hold a node."""
    rules: Rules = node.checks
    if rules is None:
        rules = node.checks = Rules(node)
    kind = type(value)
    if kind not in rules.types and not _tolerated(value, node, rules, path, out):
        return
    for rule in rules.checks:
        rule(value, path, out)
    if kind is dict:
        if depth >= MAX_DEPTH:
            raise too_deep()
        children, extra = node.children, node.additional
        for key, part in value.items():
            sub = children.get(key, extra)
            if sub is not None:
                rules = sub.checks
                if rules is None or type(part) is not rules.plain:
                    check(part, sub, (path, key), out, depth + 1)
                    if len(out) > MAX_CAUSES:
                        return
        if node.required:
            out += [required(text(path, key)) for key in node.required if key not in value]
    elif kind is list:
        items = node.items
        if items is None:
            return
        if depth >= MAX_DEPTH:
            raise too_deep()
        for index, part in enumerate(value):
            check(part, items, (path, index), out, depth + 1)
            if len(out) > MAX_CAUSES:
                return


def _tolerated(value: Any, node: Node, rules: Rules, path: _Path, out: list[Cause]) -> bool:
    """A value not of the type declared: 3.0 is an integer and goes on; null may be allowed; the rest is a cause."""
    if type(value) is float and int in rules.types and value.is_integer():
        return True
    if value is None and (node.nullable or not rules.type_name):
        found = not node.nullable
    else:
        found = True
        out.append(_wrong_type(path, rules.type_name, _NAMES.get(type(value), "null")))
    if found and rules.enum is not None:
        rules.enum(value, path, out)
    return False


class Rules:
    """The constraints of one node as a list of functions, in the order Kubernetes reports them."""

    __slots__ = ("checks", "enum", "plain", "type_name", "types")

    def __init__(self, node: Node) -> None:
        schema = node.schema
        combined = [key for key in _COMBINATIONS if schema.get(key) not in (None, [])]  # `not: {}` is a rule
        names: tuple[str, ...] = ("integer", "string") if node.int_or_string else (node.type,) if node.type else ()
        for key in ("anyOf", "oneOf"):  # how int-or-string and quantities are published: alternatives of type alone
            alternatives = _type_names(schema.get(key))
            if alternatives and (not names or set(names) == set(alternatives)):
                names = names or alternatives
                combined.remove(key)
        self.type_name = ",".join(names)
        self.types: tuple[type, ...] = tuple(t for n in names for t in _TYPES.get(n, ())) or tuple(_NAMES)
        self.enum = _enum(schema["enum"]) if schema.get("enum") else None
        found: list[_Check | None] = [_COMBINATIONS[key](node, schema[key]) for key in combined]
        constraints = [key for key in _CONSTRAINTS if key in schema and not (key in _CUSTOM_ONLY and node.owner)]
        found += [_CONSTRAINTS[key](schema[key], schema) for key in constraints]
        self.checks = tuple(rule for rule in (*found, self.enum) if rule is not None)
        # A scalar of exactly this type has nothing to fear: the caller may skip the call.
        only = self.types[0] if len(self.types) == 1 and not self.checks else None
        self.plain = only if only in (str, int, bool) else None


def _type_names(alternatives: Any) -> tuple[str, ...]:
    """`("integer", "string")` of `[{type: integer}, {type: string}]`; empty if they say more or can both be true."""
    parts = alternatives or ()
    if not all(len(part) == 1 and part.get("type") in _TYPES for part in parts):
        return ()
    names = tuple(str(part["type"]) for part in parts)
    return names if len(set(names)) == len(names) and not {"integer", "number"} <= set(names) else ()


# --- single constraints ---------------------------------------------------------------------------------------------


def _only(*kinds: type) -> Callable[[_Check], _Check]:
    """A constraint on numbers does not concern strings."""

    def limit(rule: _Check) -> _Check:
        def limited(value: Any, path: _Path, out: list[Cause]) -> None:
            if type(value) in kinds:
                rule(value, path, out)

        return limited

    return limit


def _enum(allowed: list[Any]) -> _Check:
    choices = [value if isinstance(value, str) else json.dumps(value) for value in allowed]
    strings = frozenset(value for value in allowed if isinstance(value, str))

    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if value in strings if type(value) is str else any(same(value, choice) for choice in allowed):
            return
        out.append(not_supported(text(path), value, choices))

    return rule


def _bound(name: str, word: str) -> Callable[[Any, Schema], _Check]:
    """`minimum` or `maximum`, exclusive where the schema says so."""
    lower = name == "minimum"

    def make(limit: float, schema: Schema) -> _Check:
        exclusive = bool(schema.get("exclusiveMinimum" if lower else "exclusiveMaximum"))
        wording = f"should be {word} than" + ("" if exclusive else " or equal to")

        @_only(int, float)
        def rule(value: Any, path: _Path, out: list[Cause]) -> None:
            beyond = value < limit if lower else value > limit
            if beyond or (exclusive and value == limit):
                out.append(_invalid(path, value, f"{wording} {_number(limit)}"))

        return rule

    return make


def _multiple_of(factor: float, _: Schema) -> _Check:
    @_only(int, float)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if type(value) is int and type(factor) is int:
            fits = value % factor == 0
        else:
            ratio = value / factor
            fits = math.isfinite(ratio) and ratio.is_integer()
        if not fits:
            out.append(_invalid(path, value, f"should be a multiple of {_number(factor)}"))

    return rule


def _max_length(limit: int, _: Schema) -> _Check:
    @_only(str)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if len(value) > limit:
            out.append(too_long(text(path), limit))

    return rule


def _min_length(limit: int, _: Schema) -> _Check:
    @_only(str)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if len(value) < limit:
            out.append(_invalid(path, value, f"should be at least {limit} chars long"))

    return rule


def _pattern(pattern: str, _: Schema) -> _Check:
    @_only(str)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        try:
            if not compile_pattern(pattern).search(value):
                out.append(_invalid(path, value, f"should match '{pattern}'"))
        except PatternError as error:
            out.append(_invalid(path, value, f"should match '{pattern}, but pattern is invalid: {error}'"))
        except TooCostly:
            out.append(_invalid(path, value[:100], f"is too long to be matched against '{pattern}'"))

    return rule


def _format(name: str, _: Schema) -> _Check | None:
    fits = format_check(name)
    if fits is None:
        return None

    @_only(str)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if not fits(value):
            out.append(_invalid(path, value, f"must be of type {name}: {show(value)}"))

    return rule


def _too_many(kind: type) -> Callable[[int, Schema], _Check]:
    def make(limit: int, _: Schema) -> _Check:
        @_only(kind)
        def rule(value: Any, path: _Path, out: list[Cause]) -> None:
            if len(value) > limit:
                out.append(too_many(text(path), len(value), limit))

        return rule

    return make


def _too_few(kind: type, unit: str) -> Callable[[int, Schema], _Check]:
    def make(limit: int, _: Schema) -> _Check:
        @_only(kind)
        def rule(value: Any, path: _Path, out: list[Cause]) -> None:
            if len(value) < limit:
                out.append(_invalid(path, len(value), f"should have at least {limit} {unit}"))

        return rule

    return make


def _unique_items(wanted: bool, _: Schema) -> _Check:
    @_only(list)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if wanted and len({fingerprint(part) for part in value}) < len(value):
            out.append(_invalid(path, "", "shouldn't contain duplicates"))

    return rule


def _list_type(kind: str, schema: Schema) -> _Check | None:
    """A set holds no element twice, a map no two elements with the same keys."""
    if kind == "atomic":
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
    marks_of = itemgetter(*keys) if keys else None

    @_only(list)
    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        try:
            if len(set(map(marks_of, value) if marks_of else value)) == len(value):
                return
        except (KeyError, TypeError):
            pass  # a key left out, or an element that does not hash: look closer
        counts: dict[str, int] = {}
        for index, part in enumerate(value):
            if keys:
                if type(part) is not dict:
                    continue  # the type of the element is somebody else's complaint
                part = {key: part[key] for key in keys if key in part}
            mark = fingerprint(part)
            counts[mark] = counts.get(mark, 0) + 1
            if counts[mark] == 2:  # Kubernetes names the first repetition only
                out.append(duplicate(text(path, index), part))

    return rule


_CONSTRAINTS: dict[str, Callable[[Any, Schema], _Check | None]] = {
    "maxLength": _max_length,
    "minLength": _min_length,
    "pattern": _pattern,
    "format": _format,
    "multipleOf": _multiple_of,
    "minimum": _bound("minimum", "greater"),
    "maximum": _bound("maximum", "less"),
    "minItems": _too_few(list, "items"),
    "maxItems": _too_many(list),
    "uniqueItems": _unique_items,
    "minProperties": _too_few(dict, "properties"),
    "maxProperties": _too_many(dict),
    "x-kubernetes-list-type": _list_type,
}


_CUSTOM_ONLY = frozenset(("format", "x-kubernetes-list-type"))
"""Not checked in named types: decoding has read the formats, and Kubernetes lets a pod repeat a variable or a port."""


# --- combinations ---------------------------------------------------------------------------------------------------


def _judge(value: Any, node: Node, path: _Path) -> list[Cause]:
    out: list[Cause] = []
    check(value, node, path, out)
    return out


def _mildest(verdicts: list[list[Cause]]) -> list[Cause]:
    """The complaints of the schema that came nearest to accepting the value."""
    return sorted(verdicts, key=len)[0]


def _any_of(node: Node, schemas: list[Schema]) -> _Check:
    nodes = [node.sub(schema) for schema in schemas]

    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        verdicts = []
        for node in nodes:
            verdict = _judge(value, node, path)
            if not verdict:
                return
            verdicts.append(verdict)
        out.append(_composite(path, "must validate at least one schema (anyOf)"))
        out += _mildest(verdicts)

    return rule


def _one_of(node: Node, schemas: list[Schema]) -> _Check:
    nodes = [node.sub(schema) for schema in schemas]

    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        verdicts = [_judge(value, node, path) for node in nodes]
        valid = sum(not verdict for verdict in verdicts)
        if valid == 1:
            return
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        out.append(_composite(path, f"must validate one and only one schema (oneOf). {found}"))
        if not valid:
            out += _mildest(verdicts)

    return rule


def _all_of(node: Node, schemas: list[Schema]) -> _Check:
    nodes = [node.sub(schema) for schema in schemas]

    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        verdicts = [_judge(value, node, path) for node in nodes]
        for verdict in verdicts:
            out += verdict
        if any(verdicts):
            suffix = ". None validated" if all(verdicts) else ""
            out.append(_composite(path, f"must validate all the schemas (allOf){suffix}"))

    return rule


def _not(node: Node, schema: Schema) -> _Check:
    refused = node.sub(schema)

    def rule(value: Any, path: _Path, out: list[Cause]) -> None:
        if not _judge(value, refused, path):
            out.append(_composite(path, "must not validate the schema (not)"))

    return rule


_COMBINATIONS: dict[str, Callable[[Node, Any], _Check]] = {
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
}
"""Schemas that judge the same value."""


# --- words ----------------------------------------------------------------------------------------------------------


def text(path: _Path, *more: str | int) -> str:
    """`spec.ports[0].port` of a linked path."""
    parts: list[str | int] = list(reversed(more))
    while path is not None:
        path, part = path
        parts.append(part)
    out = ""
    for part in reversed(parts):
        out += f"[{part}]" if isinstance(part, int) else f".{part[:LONGEST_PART]}" if out else part
    return out


def same(a: Any, b: Any) -> bool:
    """JSON equality: 1 is 1.0, but true is not 1."""
    return fingerprint(a) == fingerprint(b)


def fingerprint(value: Any) -> str:
    """Equal texts for equal JSON values."""
    return json.dumps(_whole(value), sort_keys=True, default=str)


def _whole(value: Any) -> Any:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is list:
        return [_whole(part) for part in value]
    if type(value) is dict:
        return {key: _whole(part) for key, part in value.items()}
    return value


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _invalid(path: _Path, value: Any, wording: str) -> Cause:
    where = text(path)
    return invalid(where, value, f"{where} in body {wording}")


def _wrong_type(path: _Path, wanted: str, found: str) -> Cause:
    where = text(path)
    return type_invalid(where, found, f'{where} in body must be of type {wanted}: "{found}"')


def _composite(path: _Path, wording: str) -> Cause:
    """Kubernetes leaves the field of these out (`<nil>`); naming it is more use to programs."""
    where = text(path)
    return invalid(where, "", f"{quote(where)} {wording}")
