"""Values of expressions as Go shows and compares them. Pure.

Numbers out of JSON are floats, as in Go; whole numbers have 64 bits and wrap around.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from paddlecloud.local.workflow.expressions.tokens import ExpressionError

Value = Any


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def wrapped(number: int) -> int:
    """As 64 bits hold it."""
    return (number + 2**63) % 2**64 - 2**63


def equal(a: Value, b: Value) -> bool:
    if is_number(a) and is_number(b):
        return bool(a == b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(value, b[key]) for key, value in a.items())
    return type(a) is type(b) and bool(a == b)


def type_name(value: Value) -> str:
    names = {type(None): "nil", bool: "bool", int: "int", float: "float", str: "string", list: "array", dict: "map"}
    return names.get(type(value), "func")


def to_int(value: Value) -> int:
    if is_number(value):
        if isinstance(value, float) and not math.isfinite(value):
            raise ExpressionError(f"{shown(value)} is no whole number")
        return wrapped(int(value))
    if isinstance(value, str) and _is_decimal(value):
        number = int(value)
        if -(2**63) <= number < 2**63:
            return number
    raise ExpressionError(f"invalid operation: int({shown(value) if isinstance(value, str) else type_name(value)})")


def _is_decimal(text: str) -> bool:
    """What Go's Atoi reads."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdecimal() and len(digits) < 64


def to_float(value: Value) -> float:
    if is_number(value):
        return float(value)
    if isinstance(value, str) and value == value.strip() and "_" not in value and value.isascii():
        try:
            return float(value)
        except ValueError:
            pass  # reported below, as every value that is no number
    raise ExpressionError(f"invalid operation: float({shown(value) if isinstance(value, str) else type_name(value)})")


def shown(value: Value) -> str:
    """As fmt.Sprintf("%v") prints it.

    >>> shown([1, 2.5, "a", None, {"b": True}])
    '[1 2.5 a <nil> map[b:true]]'
    """
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value, smallest=1e-4, beyond=1e6, exponent_digits=2)
    if isinstance(value, list):
        return f"[{' '.join(shown(each) for each in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{shown(key)}:{shown(value[key])}' for key in sorted(value, key=str))}]"
    return str(value)


def _float_text(value: float, *, smallest: float, beyond: float, exponent_digits: int) -> str:
    """The shortest digits that read back as the same number, with an exponent for the very large and small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits = repr(value)
    if value == 0 or smallest <= abs(value) < beyond:
        return digits.removesuffix(".0") if "e" not in digits else f"{value:.{_places(digits)}f}"
    mantissa, _, exponent = f"{value:.{_significant(digits) - 1}e}".partition("e")
    sign, power = exponent[0], exponent[1:].lstrip("0").rjust(exponent_digits, "0")
    return f"{mantissa}e{sign}{power}"


def _places(digits: str) -> int:
    mantissa, _, exponent = digits.partition("e")
    return max(0, len(mantissa.partition(".")[2].rstrip("0")) - int(exponent))


def _significant(digits: str) -> int:
    return max(1, len(digits.partition("e")[0].lstrip("-").replace(".", "").strip("0")))


def to_json(value: Value, *, indent: str = "", escape_html: bool = True) -> str:
    """As Go's json.Marshal writes it, or MarshalIndent, or an Encoder with SetEscapeHTML: keys in order.

    Expressions call this function: what they may not choose, as the indent, is no positional argument.
    """
    text = "".join(_json(value, indent, "\n"))
    for char in "<>&\u2028\u2029" if escape_html else "\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def indentation(value: Value, indent: str) -> int:
    """How many characters of the indented JSON are white space: nested values have more of it than content."""
    total, todo = 0, [(value, len(indent))]
    while todo:
        value, width = todo.pop()
        if isinstance(value, (list, dict)):
            total += (len(value) + 1) * (width + 1)
            inner = value.values() if isinstance(value, dict) else value
            todo += [(each, width + len(indent)) for each in inner if isinstance(each, (list, dict))]
    return total


def _json(value: Value, indent: str, line: str) -> Iterator[str]:
    if isinstance(value, float) and math.isfinite(value):
        yield _float_text(value, smallest=1e-6, beyond=1e21, exponent_digits=1)
    elif value is None or isinstance(value, (bool, int, str)):
        yield json.dumps(value, ensure_ascii=False)
    elif isinstance(value, (list, dict)):
        yield from _json_members(value, indent, line)
    else:
        raise ExpressionError(f"json: unsupported value: {shown(value)}")


def _json_members(value: list[Value] | dict[Any, Value], indent: str, line: str) -> Iterator[str]:
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = line + indent if value and indent else ""
    yield opening
    for index, key in enumerate(sorted(value, key=str) if isinstance(value, dict) else range(len(value))):
        yield f",{inner}" if index else inner
        if isinstance(value, dict):
            yield json.dumps(str(key), ensure_ascii=False) + (": " if indent else ":")
        yield from _json(value[key], indent, line + indent)
    yield (line if inner else "") + closing


def from_json(text: str) -> Value:
    try:
        return json.loads(text, parse_int=float, parse_constant=_no_constant)
    except (ValueError, RecursionError) as why:
        raise ExpressionError(f"invalid JSON: {why}") from None


def _no_constant(name: str) -> Value:
    raise ValueError(f"{name} is no value of JSON")
