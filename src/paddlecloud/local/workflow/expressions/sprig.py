"""Functions of the library sprig, as `sprig.NAME(…)`: the ones whose value depends on their arguments alone.

Not served: random values, keys and certificates, the clock, the network, and what reads the environment (which Argo
takes away as well). An expression that names one of these is an error.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

from paddlecloud.api.pattern import compile_pattern
from paddlecloud.local.workflow.expressions.dates import date
from paddlecloud.local.workflow.expressions.functions import GROWING
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import (
    Value,
    from_json,
    indentation,
    is_number,
    shown,
    to_json,
    wrapped,
)


def _empty(value: Value) -> bool:
    """As Go's templates judge a value."""
    return (
        value is None
        or value is False
        or value == ""
        or value == []
        or value == {}
        or (is_number(value) and value == 0)
    )


def _number(value: Value) -> int | float:
    if is_number(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, bool):
        return int(value)
    try:
        return float(str(value)) if "." in str(value) else int(str(value), 0)
    except ValueError:
        return 0


def _whole(value: Value) -> int:
    """Of 64 bits; what does not fit is none, as in Go."""
    number = _number(value)
    return int(number) if -(2**63) <= number < 2**63 else 0


def _default(usual: Value, value: Value = None) -> Value:
    return usual if _empty(value) else value


def _divided(a: Value, b: Value) -> int:
    """Towards zero, as in Go."""
    if _whole(b) == 0:
        raise ExpressionError("integer divide by zero")
    return int(math.copysign(1, _whole(a) * _whole(b))) * (abs(_whole(a)) // abs(_whole(b)))


def _remainder(a: Value, b: Value) -> int:
    return _whole(a) - _whole(b) * _divided(a, b)


def _folded(rule: Callable[[int, int], int]) -> Callable[..., int]:
    def applied(first: Value, *rest: Value) -> int:
        value = _whole(first)
        for each in rest:
            value = wrapped(rule(value, _whole(each)))
        return value

    return applied


def _trunc(length: Value, text: Value) -> str:
    count = _whole(length)
    return str(text)[:count] if count >= 0 else str(text)[count:]


def _substr(start: Value, end: Value, text: Value) -> str:
    first, last = _whole(start), _whole(end)
    if first < 0:
        return str(text)[:last]
    return str(text)[first:] if last < 0 or last > len(str(text)) else str(text)[first:last]


def _numbered(parts: list[str]) -> dict[str, str]:
    return {f"_{index}": part for index, part in enumerate(parts)}


def _merged(first: dict[str, Value], *rest: dict[str, Value]) -> dict[str, Value]:
    made = dict(first)
    for other in rest:
        for key, value in other.items():
            known = made.get(key)
            both = isinstance(known, dict) and isinstance(value, dict)
            if both:
                made[key] = _merged(known, value)  # type: ignore[arg-type]
            elif key not in made:
                made[key] = value
    return made


def _dict(*pairs: Value) -> dict[str, Value]:
    return {str(key): value for key, value in zip(pairs[::2], [*pairs[1::2], ""], strict=False)}


def _dig(*arguments: Value) -> Value:
    *path, usual, of = arguments
    for key in path:
        if not isinstance(of, dict) or key not in of:
            return usual
        of = of[key]
    return of


def _regex_match(pattern: Value, text: Value) -> bool:
    return compile_pattern(str(pattern)).search(str(text))


def _indented(count: Value, text: Value) -> str:
    if _whole(count) > 1000:
        raise ExpressionError("indent by at most 1000")
    pad = " " * _whole(count)
    return pad + str(text).replace("\n", "\n" + pad)


def _rounded(value: Value, places: Value) -> float:
    count = _whole(places)
    if abs(count) > 300:
        raise ExpressionError("round to at most 300 places")
    scale = math.pow(10.0, count)
    return math.floor(_number(value) * scale + 0.5) / scale


def _title(text: Value) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in str(text).split(" "))


def _compact(values: list[Value]) -> list[Value]:
    return [value for value in values if not _empty(value)]


def _uniq(values: list[Value]) -> list[Value]:
    found: dict[str, Value] = {}
    for value in values:
        found.setdefault(json.dumps(value, sort_keys=True), value)
    return list(found.values())


def _hashed(name: str) -> Callable[[Value], str]:
    return lambda text: hashlib.new(name, str(text).encode(), usedforsecurity=False).hexdigest()


SPRIG: dict[str, Callable[..., Any]] = {
    # Text
    "trim": lambda text: str(text).strip(),
    "trimAll": lambda chars, text: str(text).strip(str(chars)),
    "trimPrefix": lambda prefix, text: str(text).removeprefix(str(prefix)),
    "trimSuffix": lambda suffix, text: str(text).removesuffix(str(suffix)),
    "upper": lambda text: str(text).upper(),
    "lower": lambda text: str(text).lower(),
    "title": _title,
    "untitle": lambda text: " ".join(word[:1].lower() + word[1:] for word in str(text).split(" ")),
    "substr": _substr,
    "trunc": _trunc,
    "nospace": lambda text: "".join(str(text).split()),
    "contains": lambda part, text: str(part) in str(text),
    "hasPrefix": lambda part, text: str(text).startswith(str(part)),
    "hasSuffix": lambda part, text: str(text).endswith(str(part)),
    "quote": lambda *values: " ".join(
        json.dumps(shown(each), ensure_ascii=False) for each in values if each is not None
    ),
    "squote": lambda *values: " ".join(f"'{shown(each)}'" for each in values if each is not None),
    "cat": lambda *values: " ".join(shown(each) for each in values),
    "indent": _indented,
    "nindent": lambda count, text: "\n" + _indented(count, text),
    "replace": lambda old, new, text: str(text).replace(str(old), str(new)),
    "plural": lambda one, many, count: one if _whole(count) == 1 else many,
    "join": lambda glue, values: str(glue).join(shown(each) for each in values),
    "split": lambda by, text: _numbered(str(text).split(str(by))),
    "splitn": lambda by, most, text: _numbered(str(text).split(str(by), max(0, _whole(most) - 1))),
    "splitList": lambda by, text: str(text).split(str(by)),
    "toString": shown,
    "toStrings": lambda values: [shown(each) for each in values],
    "sortAlpha": lambda values: sorted(shown(each) for each in values),
    "regexMatch": _regex_match,
    "sha1sum": _hashed("sha1"),
    "sha256sum": _hashed("sha256"),
    "sha512sum": _hashed("sha512"),
    "b64enc": lambda text: base64.b64encode(str(text).encode()).decode(),
    "b64dec": lambda text: base64.b64decode(str(text)).decode(errors="replace"),
    # Numbers
    "atoi": lambda text: _whole(text),
    "int": _whole,
    "int64": _whole,
    "float64": lambda value: float(_number(value)),
    "add": lambda *values: wrapped(sum(_whole(each) for each in values)),
    "add1": lambda value: wrapped(_whole(value) + 1),
    "sub": lambda a, b: wrapped(_whole(a) - _whole(b)),
    "mul": _folded(lambda a, b: a * b),
    "div": _divided,
    "mod": _remainder,
    "max": lambda *values: max(_whole(each) for each in values),
    "min": lambda *values: min(_whole(each) for each in values),
    "floor": lambda value: float(math.floor(_number(value))),
    "ceil": lambda value: float(math.ceil(_number(value))),
    "round": _rounded,
    # Choices
    "default": _default,
    "empty": _empty,
    "coalesce": lambda *values: next((each for each in values if not _empty(each)), None),
    "all": lambda *values: not any(_empty(each) for each in values),
    "any": lambda *values: not all(_empty(each) for each in values),
    "ternary": lambda yes, no, condition: yes if condition is True else no,
    # Times
    "date": date,
    # JSON
    "fromJson": lambda text: from_json(str(text)),
    "mustFromJson": lambda text: from_json(str(text)),
    "toJson": to_json,
    "mustToJson": to_json,
    "toRawJson": lambda value: to_json(value, escape_html=False),
    "toPrettyJson": lambda value: to_json(value, indent="  "),
    # Lists
    "list": lambda *values: list(values),
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "rest": lambda values: values[1:],
    "initial": lambda values: values[:-1],
    "append": lambda values, value: [*values, value],
    "prepend": lambda values, value: [value, *values],
    "concat": lambda *lists: [each for values in lists for each in values],
    "reverse": lambda values: values[::-1],
    "uniq": _uniq,
    "without": lambda values, *others: [each for each in values if each not in others],
    "has": lambda value, values: value in values,
    "compact": _compact,
    "slice": lambda values, *bounds: (
        values[slice(*map(_whole, bounds or (0,)))] if len(bounds) != 1 else values[_whole(bounds[0]) :]
    ),
    # Maps
    "dict": _dict,
    "get": lambda of, key: of.get(key, ""),
    "hasKey": lambda of, key: key in of,
    "keys": lambda *maps: [key for of in maps for key in of],
    "values": lambda of: list(of.values()),
    "pick": lambda of, *keys: {key: of[key] for key in keys if key in of},
    "omit": lambda of, *keys: {key: value for key, value in of.items() if key not in keys},
    "pluck": lambda key, *maps: [of[key] for of in maps if key in of],
    "dig": _dig,
    "merge": _merged,
}

GROWING.update(
    {
        SPRIG["replace"]: lambda old, new, text: (str(text).count(str(old)) + 1) * len(str(new)),
        SPRIG["join"]: lambda glue, values: len(values) * len(str(glue)),
        SPRIG["indent"]: lambda count, text: str(text).count("\n") * max(0, _whole(count)),
        SPRIG["nindent"]: lambda count, text: str(text).count("\n") * max(0, _whole(count)),
        SPRIG["toPrettyJson"]: lambda value: indentation(value, "  "),
        SPRIG["without"]: lambda values, *others: len(values) * len(others) * 4,
        SPRIG["omit"]: lambda of, *keys: len(of) * len(keys) * 4,
        SPRIG["uniq"]: lambda values: len(values) * 40,
        SPRIG["regexMatch"]: lambda pattern, text: (len(str(pattern)) + 1) * (len(str(text)) + 1),
    }
)
