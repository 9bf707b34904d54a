"""Reading a built-in object as Kubernetes' own types would: what is absent or malformed, how a value is written.

A real API server decodes built-in kinds into Go structs before it validates. That has effects clients rely on: null and
(where it means nothing) the empty string, list or map are the same as absent, quantities and times come back in
canonical form, a value of the wrong type is a malformed request (400), not an invalid object (422), and a field that
the type does not have is dropped: nothing after it can take it for one that means something. `decode` has the same
effects on the plain dict, in place, and fills in static defaults on the same walk.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from paddlecloud.kube import quantity
from paddlecloud.kube.clock import rfc3339, rfc3339_micro
from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.schema.node import MAX_DEPTH, Node, too_deep

_JSON_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


class _Malformed(Exception):
    """A value that its type cannot hold. Field names are added on the way out, innermost first."""

    def __init__(self, problem: str, go_type: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.go_type = go_type
        self.fields: list[str] = []
        self.owner = ""


def decode(obj: dict[str, Any], info: KindInfo) -> None:
    """Bring `obj` into the form its types give it: no unknown fields, static defaults included.

    Raises `BadRequest` naming the field when a value cannot be read as its type.
    """
    try:
        _decode_fields(obj, Node(info.schema or {}, info.definitions), 0)
    except _Malformed as error:
        path = ".".join(reversed(error.fields))
        if error.go_type:
            problem = f"json: {error.problem} into Go struct field {error.owner}.{path} of type {error.go_type}"
        else:
            problem = f"{path}: {error.problem}"
        raise BadRequest(
            f'{info.kind} in version "{info.resource.version}" cannot be handled as a {info.kind}: {problem}'
        ) from None


def _decode_fields(value: dict[str, Any], node: Node, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise too_deep()
    children, extra = node.children, node.additional
    absent: list[str] = []
    for key, part in value.items():
        sub = children.get(key, extra)
        if sub is None:
            if not node.preserve:
                absent.append(key)
            continue
        codec: _Codec = sub.codec
        if codec is None:
            codec = sub.codec = _Codec(sub)
        if part is None:
            if sub is extra:
                value[key] = codec.zero()
            else:
                absent.append(key)
        elif type(part) is not codec.plain:
            try:
                replaced = codec.read(part, depth + 1)
            except _Malformed as error:
                error.fields.append(key)
                error.owner = error.owner or node.owner.rpartition(".")[2]
                raise
            if codec.collection and not replaced and sub is not extra and key not in node.schema.get("required", ()):
                absent.append(key)
            elif replaced is not part:
                value[key] = replaced
        elif part == "" and (codec.empty_is_absent or key in node.required) and sub is not extra:
            absent.append(key)
    for key in absent:
        del value[key]
    for key, _ in node.defaults:
        if key not in value:
            value[key] = _default_of(children[key])


def _default_of(node: Node) -> Any:
    """A fresh default, with the defaults inside it."""
    given = node.default_value
    if type(given) is not dict:
        return list(given) if type(given) is list else given
    filled = dict(given)
    for key, _ in node.defaults:
        if key not in filled:
            filled[key] = _default_of(node.children[key])
    return filled


class _Codec:
    """How one node reads a value. A scalar of type `plain` needs no reading."""

    __slots__ = ("collection", "empty_is_absent", "plain", "read", "zero")

    def __init__(self, node: Node) -> None:
        self.plain: type | None = None
        self.read: Callable[[Any, int], Any] = lambda value, depth: value
        self.zero: Callable[[], Any] = lambda: None  # of a field that may hold anything
        self.empty_is_absent = False
        self.collection = False  # lists and maps of which Go writes nothing when they are empty
        schema = node.schema
        if node.name in _NAMED:
            self.read, zero = _NAMED[node.name]
            self.zero = lambda: zero
        elif node.type == "object":
            self.read, self.zero = _object_reader(node), dict
            self.collection = node.additional is not None
        elif node.type == "array":
            self.read, self.zero = _list_reader(node), list
            self.collection = True
        elif node.type:
            self.read = _scalar_reader(node.type, schema.get("format", ""))
            self.zero = {"string": str, "boolean": bool}.get(node.type, int)
            if not schema.get("format"):
                self.plain = {"string": str, "boolean": bool}.get(node.type)
            # Go writes nothing for an empty string; a choice or a default makes that visible to users.
            self.empty_is_absent = node.type == "string" and bool(schema.get("enum") or schema.get("default"))


def _object_reader(node: Node) -> Callable[[Any, int], Any]:
    go_type = "map[string]" if node.schema.get("additionalProperties") else node.name.rpartition(".")[2] or "object"

    def read(value: Any, depth: int) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, go_type)
        _decode_fields(value, node, depth)
        return value

    return read


def _list_reader(node: Node) -> Callable[[Any, int], Any]:
    def read(value: Any, depth: int) -> Any:
        element = node.items
        if type(value) is not list:
            raise _mismatch(value, f"[]{element.name.rpartition('.')[2] or element.type if element else ''}")
        if element is None:
            return value
        codec: _Codec = element.codec
        if codec is None:
            codec = element.codec = _Codec(element)
        for index, part in enumerate(value):
            if part is None:
                value[index] = codec.zero()
            elif type(part) is not codec.plain:
                replaced = codec.read(part, depth)
                if replaced is not part:
                    value[index] = replaced
        return value

    return read


_LIMITS = {"int32": 2**31, "int64": 2**63}


def _scalar_reader(kind: str, format_: str) -> Callable[[Any, int], Any]:
    wanted = {"string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}[kind]
    go_type = {"string": "string", "boolean": "bool", "number": "float64"}.get(kind, format_)
    limit = _LIMITS.get(format_)

    def read(value: Any, depth: int) -> Any:
        if type(value) not in wanted:
            raise _mismatch(value, go_type)
        if limit is not None and not -limit <= value < limit:
            raise _Malformed(f"cannot unmarshal number {value}", go_type)
        if format_ == "byte":
            _check_base64(value)
        return value

    return read


def _mismatch(value: Any, go_type: str) -> _Malformed:
    return _Malformed(f"cannot unmarshal {_JSON_NAMES.get(type(value), 'value')}", go_type)


def _check_base64(value: str) -> None:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        wrong = re.search(r"[^A-Za-z0-9+/]", value.rstrip("="))
        raise _Malformed(f"illegal base64 data at input byte {wrong.start() if wrong else len(value)}") from None


# --- types that are written in many ways ---

_QUANTITY_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    return quantity.canonical(text)


def _read_quantity(value: Any, depth: int) -> Any:
    if type(value) is str:
        text = value.strip()
    elif type(value) is int or type(value) is float:
        text = repr(value)
    else:
        raise _mismatch(value, "resource.Quantity")
    try:
        found = _canonical(text)
    except quantity.QuantityError:
        raise _Malformed(f"quantities must match the regular expression '{_QUANTITY_FORM}', not {text!r}") from None
    return value if found == value else found


def _read_int_or_string(value: Any, depth: int) -> Any:
    if type(value) is int:
        if not -(2**31) <= value < 2**31:
            raise _Malformed(f"cannot unmarshal number {value}", "int32")
    elif type(value) is not str:
        raise _mismatch(value, "intstr.IntOrString")
    return value


_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_FRACTION = re.compile(r"(\.\d{1,6})\d*")


def _time_reader(written: re.Pattern[str], write: Callable[[float], str]) -> Callable[[Any, int], Any]:
    def read(value: Any, depth: int) -> Any:
        if type(value) is not str:
            raise _mismatch(value, "v1.Time")
        try:
            # Python before 3.11 reads neither `Z` nor fractions of other lengths
            text = _FRACTION.sub(lambda match: match[1].ljust(7, "0"), value).replace("Z", "+00:00")
            moment = datetime.datetime.fromisoformat(text)
            if moment.tzinfo is None or "T" not in value:
                raise ValueError
            return value if written.fullmatch(value) else write(moment.timestamp())
        except (ValueError, OverflowError):
            layout = "2006-01-02T15:04:05Z07:00"
            raise _Malformed(f'parsing time "{value[:64]}" as "{layout}": not a time of that form') from None

    return read


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_NAMED: dict[str, tuple[Callable[[Any, int], Any], Any]] = {
    f"{_META}Time": (_time_reader(_SECONDS, rfc3339), None),
    f"{_META}MicroTime": (_time_reader(_MICROS, rfc3339_micro), None),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (_read_quantity, "0"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (_read_int_or_string, 0),
}
