"""The functions of Go's templates and how Go prints values (`fmt`): what `gotemplate` calls.

A value is decoded JSON, or a constant of the template. `MISSING` is what a map has no key for. Mirrors
text/template/funcs.go and fmt; error messages are shortened.
"""

from __future__ import annotations

import base64
import binascii
import json
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote_plus

from paddlecloud.kube.templates.gotemplate_parse import GoTemplateError


class _Missing:
    def __repr__(self) -> str:
        return "<no value>"


MISSING: Final = _Missing()


def is_true(value: Any) -> bool:
    return value is not MISSING and bool(value)


# Printing


def to_text(value: Any) -> str:
    """As `%v`."""
    if value is None or value is MISSING:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{to_text(item)}' for key, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(to_text, value))}]"
    return str(value)


def _float(value: float) -> str:
    """The shortest digits that mean the same number; with an exponent below 1e-4 and from 1e6 on, as `%v` has it."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    if -4 <= power < 6:
        return format(Decimal(repr(value)).normalize(), "f")
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    return f"{'-' if sign else ''}{first}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _type(value: Any) -> str:
    names = {bool: "bool", int: "int", float: "float64", str: "string", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}" if isinstance(value, Mapping) else "<nil>")


def _print(*values: Any) -> str:
    """A space stands between two of which neither is text."""
    text = ""
    for index, value in enumerate(values):
        if index and not isinstance(value, str) and not isinstance(values[index - 1], str):
            text += " "
        text += to_text(value)
    return text


def _println(*values: Any) -> str:
    return " ".join(map(to_text, values)) + "\n"


_VERB = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?(?P<verb>.)", re.DOTALL)


def _printf(text: str, *values: Any) -> str:
    left = list(values)

    def write(match: re.Match[str]) -> str:
        if match["verb"] == "%":
            return "%"
        if not left:
            return f"%!{match['verb']}(MISSING)"
        return _verb(match, left.pop(0))

    written = _VERB.sub(write, text)
    extra = ", ".join(f"{_type(value)}={to_text(value)}" for value in left)
    return f"{written}%!(EXTRA {extra})" if left else written


def _verb(match: re.Match[str], value: Any) -> str:
    verb, flags, precision = match["verb"], match["flags"], match["precision"]
    body = _formatted(verb, flags, precision, value)
    if body is None:
        shown = "<nil>" if _type(value) == "<nil>" else f"{_type(value)}={to_text(value)}"
        return f"%!{verb}({shown})"
    width = int(match["width"] or 0)
    if "-" in flags:
        return body.ljust(width)
    if "0" in flags and not isinstance(value, str):
        return body.zfill(width)
    return body.rjust(width)


def _formatted(verb: str, flags: str, precision: str | None, value: Any) -> str | None:
    sign = "+" if "+" in flags else " " if " " in flags else ""
    digits = "" if precision is None else f".{precision or 0}"
    whole, broken = type(value) is int, type(value) is float
    if verb == "v":
        return to_text(value)
    if verb == "T":
        return _type(value)
    if verb == "t" and isinstance(value, bool):
        return to_text(value)
    if verb == "s" and isinstance(value, str):
        return value[: int(precision or 0)] if precision is not None else value
    if verb == "q" and isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if verb in "xX" and isinstance(value, str):
        return value.encode().hex() if verb == "x" else value.encode().hex().upper()
    if verb in "dxXob" and whole:
        return f"{value:{sign}{verb}}"
    if verb in "feEgG" and broken:
        return f"{value:{sign}{digits}{verb}}" if digits or verb in "feE" else to_text(value)
    return None


# Looking into values


def _len(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, (list, Mapping)):
        return len(value)
    raise GoTemplateError(f"len of {_type(value)}")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping):
            if not isinstance(key, str):
                raise GoTemplateError(f"index: a map has keys of text, not {_type(key)}")
            value = value.get(key, MISSING)
        elif isinstance(value, (list, str)):
            if type(key) is not int:
                raise GoTemplateError(f"index: cannot index slice/array with type {_type(key)}")
            sequence = value.encode() if isinstance(value, str) else value
            if not 0 <= key < len(sequence):
                raise GoTemplateError(f"index: index out of range: {key}")
            value = sequence[key]
        else:
            raise GoTemplateError(f"index: can't index item of type {_type(value)}")
    return value


def _slice(value: Any, *bounds: Any) -> Any:
    if not isinstance(value, (list, str)) or len(bounds) > 2:
        raise GoTemplateError(f"slice: can't slice item of type {_type(value)}")
    begin, end = (0, len(value)) if not bounds else (bounds[0], bounds[1] if len(bounds) == 2 else len(value))
    if type(begin) is not int or type(end) is not int or not 0 <= begin <= end <= len(value):
        raise GoTemplateError("slice: index out of range")
    return value[begin:end]


def _exists(value: Any, *keys: Any) -> bool:
    """kubectl's own: whether all of the path is there."""
    for key in keys:
        try:
            value = _index(value, key)
        except GoTemplateError:
            return False
    return value is not MISSING and value is not None


# Comparing


def _kind(value: Any) -> str:
    return {bool: "bool", int: "int", float: "float", str: "string"}.get(type(value), "")


def _equal(first: Any, *others: Any) -> bool:
    if not others:
        raise GoTemplateError("eq: missing argument for comparison")
    return any(_same(first, other) for other in others)


def _same(first: Any, other: Any) -> bool:
    if first is None or first is MISSING or other is None or other is MISSING:
        return (first is None or first is MISSING) and (other is None or other is MISSING)
    if _kind(first) != _kind(other):
        raise GoTemplateError(f"incompatible types for comparison: {_type(first)} and {_type(other)}")
    if not _kind(first):
        raise GoTemplateError("non-comparable types: maps and lists cannot be compared")
    return bool(first == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def function(first: Any, other: Any) -> bool:
        if _kind(first) not in ("int", "float", "string") or not _kind(other):
            raise GoTemplateError("invalid type for comparison")
        if _kind(first) != _kind(other):
            raise GoTemplateError(f"incompatible types for comparison: {_type(first)} and {_type(other)}")
        return compare(first, other)

    return function


# Escaping

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "\0": "\ufffd"}
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def _html(*values: Any) -> str:
    return "".join(_HTML.get(one, one) for one in _printable(values))


def _js(*values: Any) -> str:
    return "".join(_JS.get(one) or (f"\\u{ord(one):04X}" if one < " " else one) for one in _printable(values))


def _printable(values: tuple[Any, ...]) -> str:
    return _print(*("<no value>" if value is None or value is MISSING else value for value in values))


def _base64decode(text: Any) -> str:
    try:
        return base64.b64decode(str(text), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise GoTemplateError(f"base64 decode failed: {error}") from error


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "base64decode": _base64decode,
    "eq": _equal,
    "exists": _exists,
    "ge": _ordered(operator.ge),
    "gt": _ordered(operator.gt),
    "html": _html,
    "index": _index,
    "js": _js,
    "le": _ordered(operator.le),
    "len": _len,
    "lt": _ordered(operator.lt),
    "ne": lambda first, other: not _same(first, other),
    "not": lambda value: not is_true(value),
    "print": _print,
    "printf": _printf,
    "println": _println,
    "slice": _slice,
    "urlquery": lambda *values: quote_plus(_printable(values), safe=""),
}
"""All but `and` and `or`, which do not evaluate all of their arguments, and `call`: objects hold no functions."""
