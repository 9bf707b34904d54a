"""Read the protobuf bodies that typed clients send; answers are always JSON, which the same clients read.

`kubectl create configmap`, `kubectl auth can-i` and every Go client built on a typed clientset encode built-in kinds,
CustomResourceDefinitions included, as protobuf: the magic `k8s\\0`, an envelope that names the kind, and the message.
What each message holds is the table `protobuf_types.txt`; this module turns bytes into the object the JSON of the same
client would have been. It encodes nothing, and it skips fields it does not know, as protobuf readers do.
"""

from __future__ import annotations

import base64
import datetime
import math
import struct
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from paddlecloud.kube.errors import ApiError, BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from paddlecloud.kube.resource import Object

MAGIC = b"k8s\0"
MAX_BYTES = 3 * 1024 * 1024
MAX_DEPTH = 128
"""A property of a schema takes two levels, and schemas of pods within custom kinds have more than twenty in a row."""
ANY_VERSION = "*"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class ProtobufField(NamedTuple):
    name: str
    """In JSON; empty when the fields of the message belong to the one around it."""
    type: str
    mark: str


Message = dict[int, ProtobufField]


def decode(body: bytes) -> Object:
    """The object in a protobuf body, with apiVersion and kind.

    `BadRequest` for what is no such body, `UnsupportedMediaType` for a kind that only JSON is read of.
    """
    if len(body) > MAX_BYTES:
        raise RequestEntityTooLarge(f"the protobuf body has {len(body)} bytes; the limit is {MAX_BYTES}")
    if not body.startswith(MAGIC):
        raise BadRequest("the body is not protobuf as Kubernetes writes it: it does not start with k8s\\0")
    envelope = _message(memoryview(body)[len(MAGIC) :], _ENVELOPE, 0)
    api_version, kind = envelope.get("apiVersion", ""), envelope.get("kind", "")
    if envelope.get("contentEncoding"):
        raise UnsupportedMediaType(f"content encoding {envelope['contentEncoding']!r} of protobuf bodies is not read")
    kinds, messages = _table()
    name = kinds.get((api_version, kind)) or kinds.get((ANY_VERSION, kind))
    if name is None:
        raise UnsupportedMediaType(f"{kind or 'an unnamed kind'} of {api_version or 'no version'}: send it as JSON")
    return {"apiVersion": api_version, "kind": kind, **_message(envelope.get("raw", b""), messages[name], 0)}


# --- the table --------------------------------------------------------------------------------------------------------

_ENVELOPE: Message = {
    1: ProtobufField("", "TypeMeta", ""),
    2: ProtobufField("raw", "bytes", ""),
    3: ProtobufField("contentEncoding", "s", ""),
    4: ProtobufField("contentType", "s", ""),
}
_TYPE_META: Message = {1: ProtobufField("apiVersion", "s", ""), 2: ProtobufField("kind", "s", "")}


@cache
def _table() -> tuple[dict[tuple[str, str], str], dict[str, Message]]:
    """The messages of all kinds; read when the first protobuf body comes, since most clients send none."""
    text = Path(__file__).with_name("protobuf_types.txt").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    head, _, tail = lines.replace("\n    ", " ").partition("\n---\n")
    kinds: dict[tuple[str, str], str] = {}
    for line in head.strip().splitlines():
        version, _, names = line.partition(": ")
        for entry in names.split():
            kind, _, message = entry.partition("=")
            kinds[version, kind] = message or kind
    messages: dict[str, Message] = {"TypeMeta": _TYPE_META}
    for line in tail.strip().splitlines():
        name, _, fields = line.partition(":")
        messages[name] = dict(map(_field, fields.split()))
    return kinds, messages


def _field(text: str) -> tuple[int, ProtobufField]:
    name, _, rest = text.partition("=")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    kind = rest[digits:]
    mark = kind[-1] if kind[-1] in "*%!" else ""
    return int(rest[:digits]), ProtobufField(name, kind[: len(kind) - len(mark)], mark)


# --- the wire ---------------------------------------------------------------------------------------------------------


def _message(data: memoryview | bytes, fields: Message, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise BadRequest("the protobuf body nests too deeply")
    result: dict[str, Any] = {}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire = tag & 7
        raw: Any
        if wire == _VARINT:
            raw, position = _varint(data, position)
        elif wire == _BYTES:
            length, position = _varint(data, position)
            raw, position = data[position : position + length], position + length
        elif wire == _FIXED64:
            raw, position = bytes(data[position : position + 8]), position + 8
            raw = struct.unpack("<d", raw)[0] if len(raw) == 8 else None
        elif wire == _FIXED32:
            raw, position = None, position + 4
        else:
            raise _malformed("a wire type that is not used")
        if position > len(data):
            raise _malformed("it ends in the middle of a field")
        field = fields.get(tag >> 3)
        if field is not None:
            _store(result, field, raw, depth)
    return result


def _store(result: dict[str, Any], field: ProtobufField, raw: Any, depth: int) -> None:
    if field.mark == "*":
        values = result.setdefault(field.name, [])
        if field.type == "i" and not isinstance(raw, int):
            values.extend(_packed(raw))
        else:
            values.append(_value(field, raw, depth))
    elif field.mark == "%":
        entry = {1: ProtobufField("key", "s", "!"), 2: ProtobufField("value", field.type, "!")}
        pair = _message(_bytes(raw), entry, depth + 1)
        empty = "" if field.type in ("s", "y") else _value(ProtobufField("", field.type, ""), b"", depth + 1)
        result.setdefault(field.name, {})[pair.get("key", "")] = pair.get("value", empty)
    else:
        value = _value(field, raw, depth)
        if not field.name:
            result.update(value)
        elif value is None or (field.mark != "!" and field.type in _ZERO and value == _ZERO[field.type]):
            result.pop(field.name, None)
        else:
            result[field.name] = value


_ZERO: dict[str, Any] = {"s": "", "i": 0, "b": False, "y": "", "IntOrString": 0}


def _value(field: ProtobufField, raw: Any, depth: int) -> Any:
    kind = field.type
    if kind in ("i", "b"):
        if not isinstance(raw, int):
            raise _malformed(f"{field.name} is not a number")
        return raw != 0 if kind == "b" else _signed(raw)
    if kind == "d":
        return _double(field, raw)
    data = _bytes(raw)
    convert = _CONVERSIONS.get(kind)
    if convert is not None:
        try:
            return convert(data)
        except (ValueError, OverflowError) as error:
            raise _malformed(f"{field.name}: {error}") from None
    message = _table()[1][kind]
    found = _message(data, message, depth + 1)
    if kind not in _ONE_OF:
        return found
    return next((found[one.name] for one in message.values() if one.name in found), _ONE_OF[kind])


_ONE_OF: dict[str, Any] = {
    "JSONSchemaPropsOrArray": None,
    "JSONSchemaPropsOrBool": False,
    "JSONSchemaPropsOrStringArray": None,
}
"""Messages that are in JSON the first of their fields that is set; with what they are if none is."""


def _double(field: ProtobufField, raw: Any) -> float | int:
    """As Go writes it in JSON: a whole number without a fraction."""
    if not isinstance(raw, float) or not math.isfinite(raw):
        raise _malformed(f"{field.name} is not a number")
    return int(raw) if raw.is_integer() and abs(raw) < 1e21 else raw


def _bytes(raw: Any) -> memoryview | bytes:
    if not isinstance(raw, (memoryview, bytes)):
        raise _malformed("a number where a text or a message belongs")
    return raw


def _varint(data: memoryview | bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise _malformed("it ends in the middle of a number")
        if shift > 63:
            raise _malformed("a number of more than 64 bits")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _packed(raw: Any) -> list[int]:
    data, position, values = _bytes(raw), 0, []
    while position < len(data):
        value, position = _varint(data, position)
        values.append(_signed(value))
    return values


# --- types with their own JSON form ------------------------------------------------------------------------------


def _text(data: memoryview | bytes) -> str:
    return bytes(data).decode("utf-8")


def _base64(data: memoryview | bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _moment(data: memoryview | bytes) -> datetime.datetime | None:
    """An empty message is the zero time, which JSON says as null."""
    fields = _message(data, {1: ProtobufField("seconds", "i", "!"), 2: ProtobufField("nanos", "i", "!")}, 0)
    if not data:
        return None
    return _EPOCH + datetime.timedelta(seconds=fields.get("seconds", 0), microseconds=fields.get("nanos", 0) // 1000)


def _time(data: memoryview | bytes) -> str | None:
    return _iso(_moment(data), "seconds")


def _micro_time(data: memoryview | bytes) -> str | None:
    return _iso(_moment(data), "microseconds")


def _iso(moment: datetime.datetime | None, precision: str) -> str | None:
    """Not strftime, whose years before 1000 have fewer than four digits."""
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z" if moment else None


def _quantity(data: memoryview | bytes) -> str:
    return str(_message(data, {1: ProtobufField("string", "s", "")}, 0).get("string", "0"))


def _int_or_string(data: memoryview | bytes) -> int | str:
    fields = _message(
        data, {1: ProtobufField("type", "i", ""), 2: ProtobufField("int", "i", ""), 3: ProtobufField("str", "s", "")}, 0
    )
    return str(fields.get("str", "")) if fields.get("type") == 1 else int(fields.get("int", 0))


def _raw_json(data: memoryview | bytes) -> Any:
    raw = _message(data, {1: ProtobufField("raw", "bytes", "")}, 0).get("raw", b"")
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("the JSON inside cannot be read") from None


def _strings(data: memoryview | bytes) -> list[str]:
    return list(_message(data, {1: ProtobufField("items", "s", "*")}, 0).get("items", []))


_CONVERSIONS: dict[str, Any] = {
    "s": _text,
    "y": _base64,
    "bytes": bytes,
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Raw": _raw_json,
    "Strings": _strings,
}


def _malformed(why: str) -> ApiError:
    return BadRequest(f"the protobuf body is malformed: {why}")
