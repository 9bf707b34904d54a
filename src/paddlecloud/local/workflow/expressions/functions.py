"""The functions of expr-lang (builtin/builtin.go). Times and durations are not served.

A function gets its arguments evaluated and raises `ExpressionError`; one over elements gets what its predicate says of
each, as an iterator, so that it asks only as far as it needs to.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

from paddlecloud.local.workflow.expressions.budget import Budget
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import (
    Value,
    equal,
    from_json,
    indentation,
    is_number,
    is_whole,
    shown,
    to_float,
    to_int,
    to_json,
    type_name,
)

Function = Callable[..., Value]


def call(name: str, function: Function, arguments: list[Value], budget: Budget) -> Value:
    """The one way functions are called: a wrong number or type of arguments is an error of the expression."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise ExpressionError(f"invalid number of arguments for {name}: {len(arguments)}") from None
    budget.whole(*arguments)
    try:
        if function in GROWING:
            budget.spend(GROWING[function](*arguments))
        return function(*arguments)
    except (TypeError, AttributeError, ValueError, OverflowError, KeyError, IndexError, RecursionError) as why:
        if isinstance(why, ExpressionError):
            raise
        types = ", ".join(type_name(each) for each in arguments)
        raise ExpressionError(f"invalid arguments for {name}: ({types})") from None


def fetch(of: Value, key: Value) -> Value:
    """`of.key`, `of[key]`."""
    if isinstance(of, dict):
        return of.get(key) if isinstance(key, str) else None
    if isinstance(of, (list, str)) and is_number(key):
        items = (
            of if isinstance(of, list) or of.isascii() else of.encode()
        )  # a string is indexed by its bytes, as in Go
        index, length = to_int(key), len(items)
        if not -length <= index < length:
            raise ExpressionError(f"index out of range: {index} (array length is {length})")
        return ord(items[index]) if isinstance(items, str) else items[index]
    raise ExpressionError(f"cannot fetch {shown(key)} from {type_name(of)}")


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ExpressionError(f"expected a string, not {type_name(value)}")
    return value


def _array(value: Value) -> list[Value]:
    if not isinstance(value, list):
        raise ExpressionError(f"expected an array, not {type_name(value)}")
    return value


def _mapping(value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise ExpressionError(f"expected a map, not {type_name(value)}")
    return value


def _numeric(value: Value) -> int | float:
    if not is_number(value):
        raise ExpressionError(f"expected a number, not {type_name(value)}")
    return value  # type: ignore[no-any-return]


# Text


def _split(text: Value, by: Value, most: Value = -1) -> list[str]:
    whole, mark, limit = _text(text), _text(by), to_int(most)
    if limit == 0:
        return []
    if mark:
        return whole.split(mark, limit - 1 if limit > 0 else -1)
    chars = list(whole)
    return chars if limit < 0 or len(chars) <= limit else [*chars[: limit - 1], "".join(chars[limit - 1 :])]


def _split_after(text: Value, by: Value, most: Value = -1) -> list[str]:
    parts = _split(text, by, most)
    return [f"{part}{by}" for part in parts[:-1]] + parts[-1:]


def _replace(text: Value, old: Value, new: Value, most: Value = -1) -> str:
    return _text(text).replace(_text(old), _text(new), to_int(most))


def _replace_size(text: Value, old: Value, new: Value, most: Value = -1) -> int:
    return (_text(text).count(_text(old)) if old else len(text) + 1) * len(_text(new))


def _repeat(text: Value, times: Value) -> str:
    if to_int(times) < 0:
        raise ExpressionError(f"invalid argument for repeat (expected positive integer, got {to_int(times)})")
    return _text(text) * to_int(times)


def _join(parts: Value, glue: Value = "") -> str:
    return _text(glue).join(_text(each) for each in _array(parts))


def _join_size(parts: Value, glue: Value = "") -> int:
    return sum(len(each) + len(glue) for each in _array(parts) if isinstance(each, str))


def _from_base64(text: Value) -> str:
    try:
        return base64.b64decode(_text(text), validate=True).decode(errors="replace")
    except binascii.Error as why:
        raise ExpressionError(f"illegal base64 data: {why}") from None


# Numbers


def _numbers(values: tuple[Value, ...]) -> list[int | float]:
    found: list[int | float] = []
    for value in values:
        found += _numbers(tuple(value)) if isinstance(value, list) else [_numeric(value)]
    return found


def _extreme(pick: Callable[..., Any]) -> Function:
    def applied(*values: Value) -> Value:
        return pick(_numbers(values), default=None)

    return applied


def _mean(*values: Value) -> float:
    numbers = _numbers(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def _median(*values: Value) -> float:
    numbers = sorted(_numbers(values))
    middle = len(numbers) // 2
    if not numbers:
        return 0.0
    return float(numbers[middle]) if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2


def _round(value: Value) -> float:
    """Halves away from zero."""
    number = float(_numeric(value))
    return math.copysign(math.floor(abs(number) + 0.5), number)


# Arrays and maps


def _length(value: Value) -> int:
    if not isinstance(value, (str, list, dict)):
        raise ExpressionError(f"invalid argument for len (type {type_name(value)})")
    return len(value)


def _get(of: Value, key: Value) -> Value:
    try:
        return None if of is None else fetch(of, key)
    except ExpressionError:
        return None


def _uniq(values: Value) -> list[Value]:
    found: list[Value] = []
    for value in _array(values):
        if not any(equal(value, each) for each in found):
            found.append(value)
    return found


def _flatten(values: Value) -> list[Value]:
    found: list[Value] = []
    for value in _array(values):
        found += _flatten(value) if isinstance(value, list) else [value]
    return found


def _from_pairs(pairs: Value) -> dict[str, Value]:
    made = {}
    for pair in _array(pairs):
        key, value = _array(pair)
        made[_text(key)] = value
    return made


def _in_order(values: list[Value], keys: list[Value], order: Value = "asc") -> list[Value]:
    if order not in ("asc", "desc"):
        raise ExpressionError(f"invalid order {shown(order)}, expected asc or desc")
    if not (all(is_number(key) for key in keys) or all(isinstance(key, str) for key in keys)):
        raise ExpressionError("only numbers, or only strings, have an order")
    ranked = sorted(zip(keys, range(len(values)), strict=True), key=lambda each: each[0], reverse=order == "desc")
    return [values[index] for _, index in ranked]


BUILT_IN: dict[str, Function] = {
    "len": _length,
    "type": type_name,
    "int": to_int,
    "float": to_float,
    "string": shown,
    "abs": lambda value: abs(_numeric(value)),
    "ceil": lambda value: float(math.ceil(_numeric(value))),
    "floor": lambda value: float(math.floor(_numeric(value))),
    "round": _round,
    "trim": lambda text, chars=None: _text(text).strip(chars),
    "trimPrefix": lambda text, prefix=" ": _text(text).removeprefix(_text(prefix)),
    "trimSuffix": lambda text, suffix=" ": _text(text).removesuffix(_text(suffix)),
    "upper": lambda text: _text(text).upper(),
    "lower": lambda text: _text(text).lower(),
    "split": _split,
    "splitAfter": _split_after,
    "replace": _replace,
    "repeat": _repeat,
    "join": _join,
    "indexOf": lambda text, part: _text(text).find(_text(part)),
    "lastIndexOf": lambda text, part: _text(text).rfind(_text(part)),
    "hasPrefix": lambda text, part: _text(text).startswith(_text(part)),
    "hasSuffix": lambda text, part: _text(text).endswith(_text(part)),
    "max": _extreme(max),
    "min": _extreme(min),
    "mean": _mean,
    "median": _median,
    "toJSON": lambda value: to_json(value, indent="  "),
    "fromJSON": lambda text: from_json(_text(text)),
    "toBase64": lambda text: base64.b64encode(_text(text).encode()).decode(),
    "fromBase64": _from_base64,
    "first": lambda values: values[0] if isinstance(values, list) and values else None,
    "last": lambda values: values[-1] if isinstance(values, list) and values else None,
    "get": _get,
    "take": lambda values, count: _array(values)[: to_int(count)],
    "keys": lambda of: list(_mapping(of)),
    "values": lambda of: list(_mapping(of).values()),
    "toPairs": lambda of: [list(pair) for pair in _mapping(of).items()],
    "fromPairs": _from_pairs,
    "reverse": lambda values: _array(values)[::-1],
    "uniq": _uniq,
    "concat": lambda first, *rest: [each for values in (first, *rest) for each in _array(values)],
    "flatten": _flatten,
    "sort": lambda values, order="asc": _in_order(_array(values), _array(values), order),
    "bitand": lambda a, b: _whole(a) & _whole(b),
    "bitor": lambda a, b: _whole(a) | _whole(b),
    "bitxor": lambda a, b: _whole(a) ^ _whole(b),
    "bitnand": lambda a, b: _whole(a) & ~_whole(b),
    "bitnot": lambda a: ~_whole(a),
}


def _whole(value: Value) -> int:
    if not is_whole(value):
        raise ExpressionError(f"expected a whole number, not {type_name(value)}")
    return value  # type: ignore[no-any-return]


GROWING: dict[Function, Callable[..., int]] = {
    _replace: _replace_size,
    _repeat: lambda text, times: len(_text(text)) * max(0, to_int(times)),
    _join: _join_size,
    _uniq: lambda values: len(_array(values)) ** 2,
    BUILT_IN["toJSON"]: lambda value: indentation(value, "  "),
}
"""Functions whose result, or whose work, is larger than their arguments: the size, to be known before."""


# Functions over elements: the elements, what the predicate says of each, and further arguments

Results = Iterator[Value]


def truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"predicate should return a bool, not {type_name(value)}")
    return value


def _matching(items: list[Value], results: Results) -> Iterator[tuple[int, Value]]:
    return ((index, item) for index, (item, result) in enumerate(zip(items, results, strict=True)) if truth(result))


def _group_by(items: list[Value], results: Results) -> dict[str, list[Value]]:
    groups: dict[str, list[Value]] = {}
    for item, result in zip(items, results, strict=True):
        groups.setdefault(result if isinstance(result, str) else shown(result), []).append(item)
    return groups


OVER_ELEMENTS: dict[str, Callable[..., Value]] = {
    "all": lambda items, results: all(truth(each) for each in results),
    "none": lambda items, results: not any(truth(each) for each in results),
    "any": lambda items, results: any(truth(each) for each in results),
    "one": lambda items, results: len(list(_matching(items, results))) == 1,
    "filter": lambda items, results: [item for _, item in _matching(items, results)],
    "map": lambda items, results: list(results),
    "find": lambda items, results: next((item for _, item in _matching(items, results)), None),
    "findIndex": lambda items, results: next((index for index, _ in _matching(items, results)), None),
    "count": lambda items, results: len(list(_matching(items, results))),
    "sum": lambda items, results: sum(_numeric(each) for each in results),
    "groupBy": _group_by,
    "sortBy": lambda items, results, order="asc": _in_order(items, list(results), order),
}
