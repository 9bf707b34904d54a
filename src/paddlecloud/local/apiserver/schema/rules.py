"""Rules of a CRD between several fields: `x-kubernetes-validations`, as far as `cel` understands them.

As kube-apiserver does, rules are evaluated on objects that fit the schema otherwise, a rule that has no value for an
object is broken by it, and one with `oldSelf` is evaluated only where a write replaces a value. Only rules that apply
once to an object are evaluated: one below a list or a map could be made to run any number of times by a large object.
Which rules are left out is `unevaluated`, for the warning that the definition is answered with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.causes import Cause, invalid
from paddlecloud.local.apiserver.schema.cel import CompiledRule, Unsupported, compile_rule
from paddlecloud.local.apiserver.schema.cel_operations import EvaluationError

KEYWORD = "x-kubernetes-validations"


class Rule(NamedTuple):
    path: tuple[str, ...]
    type: str
    expression: CompiledRule
    message: str


def compiled(schema: Schema, path: tuple[str, ...] = ()) -> Iterator[Rule]:
    """The rules that are evaluated, those of an object before those of its fields."""
    for given in schema.get(KEYWORD) or ():
        if (expression := _expression(given, schema)) is not None:
            message = str(given.get("message") or f"failed rule: {given['rule']}").strip()
            yield Rule(path, str(schema.get("type") or ""), expression, message)
    for name, sub in (schema.get("properties") or {}).items():
        yield from compiled(sub, (*path, name))


def unevaluated(path: str, schema: Schema, *, repeated: bool = False) -> Iterator[str]:
    """Paths of the rules that are stored only."""
    rules = schema.get(KEYWORD) or ()
    if any(repeated or _expression(given, schema) is None for given in rules):
        yield f"{path}.{KEYWORD}"
    for name, sub in (schema.get("properties") or {}).items():
        yield from unevaluated(f"{path}.properties[{name}]", sub, repeated=repeated)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from unevaluated(f"{path}.{key}", schema[key], repeated=True)


def broken(rules: Iterable[Rule], obj: Any, old: Any = None) -> list[Cause]:
    """The rules that the object breaks, each on the object or field it is declared for. `old` is what it replaces."""
    return [
        invalid(".".join(rule.path), rule.type, rule.message)
        for rule in rules
        if (value := _at(obj, rule.path)) is not None and not _holds(rule, value, _at(old, rule.path))
    ]


def _expression(given: Mapping[str, Any], schema: Schema) -> CompiledRule | None:
    rule = str(given.get("rule") or "")
    if "/" in rule and _has_floats(schema):
        return None  # 1 and 2 in fields of type number are 1.0 and 2.0 there, which only their schema shows
    try:
        return compile_rule(rule)
    except (Unsupported, EvaluationError):
        return None


def _has_floats(schema: Schema) -> bool:
    below = [schema.get("items"), schema.get("additionalProperties"), *(schema.get("properties") or {}).values()]
    return schema.get("type") == "number" or any(_has_floats(sub) for sub in below if isinstance(sub, Mapping))


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _holds(rule: Rule, value: Any, old: Any) -> bool:
    if rule.expression.transition and old is None:
        return True
    try:
        return rule.expression(value, old) is True
    except (EvaluationError, RecursionError):  # the second for a rule of a thousand nested operations
        return False
