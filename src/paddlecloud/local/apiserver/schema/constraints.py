"""What a schema may ask of a value, one function per keyword, and the words for what is wrong.

A constraint is compiled once into a `Check`. Paths are linked pairs that become text only when there is something to
say. Messages name the place twice, as Kubernetes' do: the field is `spec.ports[0].port`, and the text begins
`spec.ports[0].port in body must be …`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from paddlecloud.api.pattern import PatternError, TooCostly, compile_pattern
from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.causes import (
    Cause,
    duplicate,
    invalid,
    not_supported,
    quote,
    show,
    too_long,
    too_many,
    type_invalid,
)
from paddlecloud.local.apiserver.schema.formats import format_check
from paddlecloud.local.apiserver.schema.node import LONGEST_PART

Path = Any  # nested pairs ((None, "spec"), "ports"), an int for an index; None is the root
Check = Callable[[Any, Path, list[Cause]], None]


def _only(*kinds: type) -> Callable[[Check], Check]:
    """A constraint on numbers does not concern strings."""

    def limit(rule: Check) -> Check:
        def limited(value: Any, path: Path, out: list[Cause]) -> None:
            if type(value) in kinds:
                rule(value, path, out)

        return limited

    return limit


def one_of_these(allowed: list[Any]) -> Check:
    choices = [value if isinstance(value, str) else json.dumps(value) for value in allowed]
    strings = frozenset(value for value in allowed if isinstance(value, str))

    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if value in strings if type(value) is str else any(same(value, choice) for choice in allowed):
            return
        out.append(not_supported(text(path), value, choices))

    return rule


def _bound(name: str, word: str) -> Callable[[Any, Schema], Check]:
    """`minimum` or `maximum`, exclusive where the schema says so."""
    lower = name == "minimum"

    def make(limit: float, schema: Schema) -> Check:
        exclusive = bool(schema.get("exclusiveMinimum" if lower else "exclusiveMaximum"))
        wording = f"should be {word} than" + ("" if exclusive else " or equal to")

        @_only(int, float)
        def rule(value: Any, path: Path, out: list[Cause]) -> None:
            beyond = value < limit if lower else value > limit
            if beyond or (exclusive and value == limit):
                out.append(_invalid(path, value, f"{wording} {_number(limit)}"))

        return rule

    return make


def _multiple_of(factor: float, _: Schema) -> Check:
    @_only(int, float)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if type(value) is int and type(factor) is int:
            fits = value % factor == 0
        else:
            ratio = value / factor
            fits = math.isfinite(ratio) and ratio.is_integer()
        if not fits:
            out.append(_invalid(path, value, f"should be a multiple of {_number(factor)}"))

    return rule


def _max_length(limit: int, _: Schema) -> Check:
    @_only(str)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if len(value) > limit:
            out.append(too_long(text(path), limit))

    return rule


def _min_length(limit: int, _: Schema) -> Check:
    @_only(str)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if len(value) < limit:
            out.append(_invalid(path, value, f"should be at least {limit} chars long"))

    return rule


def _pattern(pattern: str, _: Schema) -> Check:
    @_only(str)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        try:
            if not compile_pattern(pattern).search(value):
                out.append(_invalid(path, value, f"should match '{pattern}'"))
        except PatternError as error:
            out.append(_invalid(path, value, f"should match '{pattern}, but pattern is invalid: {error}'"))
        except TooCostly:
            out.append(_invalid(path, value[:100], f"is too long to be matched against '{pattern}'"))

    return rule


def _format(name: str, _: Schema) -> Check | None:
    fits = format_check(name)
    if fits is None:
        return None

    @_only(str)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if not fits(value):
            out.append(_invalid(path, value, f"must be of type {name}: {show(value)}"))

    return rule


def _too_many(kind: type) -> Callable[[int, Schema], Check]:
    def make(limit: int, _: Schema) -> Check:
        @_only(kind)
        def rule(value: Any, path: Path, out: list[Cause]) -> None:
            if len(value) > limit:
                out.append(too_many(text(path), len(value), limit))

        return rule

    return make


def _too_few(kind: type, unit: str) -> Callable[[int, Schema], Check]:
    def make(limit: int, _: Schema) -> Check:
        @_only(kind)
        def rule(value: Any, path: Path, out: list[Cause]) -> None:
            if len(value) < limit:
                out.append(_invalid(path, len(value), f"should have at least {limit} {unit}"))

        return rule

    return make


def _unique_items(wanted: bool, _: Schema) -> Check:
    @_only(list)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        if wanted and len({fingerprint(part) for part in value}) < len(value):
            out.append(_invalid(path, "", "shouldn't contain duplicates"))

    return rule


def _list_type(kind: str, schema: Schema) -> Check | None:
    """A set holds no element twice, a map no two elements with the same keys."""
    if kind == "atomic":
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
    marks_of = itemgetter(*keys) if keys else None

    @_only(list)
    def rule(value: Any, path: Path, out: list[Cause]) -> None:
        try:
            if len(set(map(marks_of, value) if marks_of else value)) == len(value):
                return
        except (KeyError, TypeError):
            pass  # a key left out, or an element that does not hash: look closer
        counts: dict[str, int] = {}
        for index, part in enumerate(value):
            if keys:
                if type(part) is not dict:
                    continue  # the type of the element is reported elsewhere
                part = {key: part[key] for key in keys if key in part}
            mark = fingerprint(part)
            counts[mark] = counts.get(mark, 0) + 1
            if counts[mark] == 2:  # Kubernetes names the first repetition only
                out.append(duplicate(text(path, index), part))

    return rule


CONSTRAINTS: dict[str, Callable[[Any, Schema], Check | None]] = {
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


CUSTOM_ONLY = frozenset(("format", "x-kubernetes-list-type"))
"""Not checked in named types: decoding has read the formats, and Kubernetes lets a pod repeat a variable or a port."""


# --- words ----------------------------------------------------------------------------------------------------------


def text(path: Path, *more: str | int) -> str:
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


def _invalid(path: Path, value: Any, wording: str) -> Cause:
    where = text(path)
    return invalid(where, value, f"{where} in body {wording}")


def wrong_type(path: Path, wanted: str, found: str) -> Cause:
    where = text(path)
    return type_invalid(where, found, f'{where} in body must be of type {wanted}: "{found}"')


def composite(path: Path, wording: str) -> Cause:
    """Kubernetes leaves the field of these out (`<nil>`); naming it is more use to programs."""
    where = text(path)
    return invalid(where, "", f"{quote(where)} {wording}")
