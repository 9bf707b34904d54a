"""Does an object fit its schema? Causes in the words of Kubernetes.

A node's constraints are compiled once into `Rules`, so that a sound object costs little more than a walk. This is the
walk, and the schemas that judge one value together; what each keyword asks is in `constraints`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.causes import MAX_CAUSES, Cause, required
from paddlecloud.local.apiserver.schema.constraints import (
    CONSTRAINTS,
    CUSTOM_ONLY,
    Check,
    Path,
    composite,
    one_of_these,
    text,
    wrong_type,
)
from paddlecloud.local.apiserver.schema.node import MAX_DEPTH, Node, too_deep
from paddlecloud.local.apiserver.schema.rules import Rule, broken, compiled

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def validate(
    obj: Any, schema: Schema, definitions: Mapping[str, Schema], *, path: str = "", old: Any = None
) -> list[Cause]:
    """Everything the schema forbids, in the order of the object's fields. Empty when the object fits.

    `old` is the object that a write replaces: rules may compare the two.
    """
    out: list[Cause] = []
    node = Node(schema, definitions)
    check(obj, node, (None, path) if path else None, out)
    return out or broken(_rules(node), obj, old)


def validate_field(
    obj: Any, name: str, schema: Schema, definitions: Mapping[str, Schema], *, old: Any = None
) -> list[Cause]:
    """The same for one field of the root, where the others are known to fit. All of it where the root has constraints.

    Rules of the root are evaluated too: they may look at this field.
    """
    node = Node(schema, definitions)
    if node.checks is None:
        node.checks = Rules(node)
    field = node.children.get(name)
    if field is None or node.checks.checks or name not in obj:
        return validate(obj, schema, definitions, old=old)
    out: list[Cause] = []
    check(obj[name], field, (None, name), out)
    return out or broken(tuple(rule for rule in _rules(node) if rule.path[:1] in ((), (name,))), obj, old)


def _rules(node: Node) -> tuple[Rule, ...]:
    rules: tuple[Rule, ...] | None = node.rules
    if rules is None:
        rules = node.rules = tuple(compiled(node.schema))
    return rules


def check(value: Any, node: Node, path: Path, out: list[Cause], depth: int = 0) -> None:
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


def _tolerated(value: Any, node: Node, rules: Rules, path: Path, out: list[Cause]) -> bool:
    """A value not of the type declared: 3.0 is an integer and goes on; null may be allowed; the rest is a cause."""
    if type(value) is float and int in rules.types and value.is_integer():
        return True
    if value is None and (node.nullable or not rules.type_name):
        found = not node.nullable
    else:
        found = True
        out.append(wrong_type(path, rules.type_name, _NAMES.get(type(value), "null")))
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
        self.enum = one_of_these(schema["enum"]) if schema.get("enum") else None
        found: list[Check | None] = [_COMBINATIONS[key](node, schema[key]) for key in combined]
        constraints = [key for key in CONSTRAINTS if key in schema and not (key in CUSTOM_ONLY and node.owner)]
        found += [CONSTRAINTS[key](schema[key], schema) for key in constraints]
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


# --- combinations ---------------------------------------------------------------------------------------------------


def _judge(value: Any, node: Node, path: Path) -> list[Cause]:
    out: list[Cause] = []
    check(value, node, path, out)
    return out


def _mildest(verdicts: list[list[Cause]]) -> list[Cause]:
    """The causes given by the schema that came nearest to accepting the value."""
    return sorted(verdicts, key=len)[0]


def _any_of(node: Node, schemas: list[Schema]) -> Check:
    nodes = [node.sub(schema) for schema in schemas]

    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        verdicts = []
        for node in nodes:
            verdict = _judge(value, node, path)
            if not verdict:
                return
            verdicts.append(verdict)
        out.append(composite(path, "must validate at least one schema (anyOf)"))
        out += _mildest(verdicts)

    return rule


def _one_of(node: Node, schemas: list[Schema]) -> Check:
    nodes = [node.sub(schema) for schema in schemas]

    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        verdicts = [_judge(value, node, path) for node in nodes]
        valid = sum(not verdict for verdict in verdicts)
        if valid == 1:
            return
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        out.append(composite(path, f"must validate one and only one schema (oneOf). {found}"))
        if not valid:
            out += _mildest(verdicts)

    return rule


def _all_of(node: Node, schemas: list[Schema]) -> Check:
    nodes = [node.sub(schema) for schema in schemas]

    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        verdicts = [_judge(value, node, path) for node in nodes]
        for verdict in verdicts:
            out += verdict
        if any(verdicts):
            suffix = ". None validated" if all(verdicts) else ""
            out.append(composite(path, f"must validate all the schemas (allOf){suffix}"))

    return rule


def _not(node: Node, schema: Schema) -> Check:
    refused = node.sub(schema)

    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if not _judge(value, refused, path):
            out.append(composite(path, "must not validate the schema (not)"))

    return rule


_COMBINATIONS: dict[str, Callable[[Node, Any], Check]] = {
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
}
"""Schemas that judge the same value."""
