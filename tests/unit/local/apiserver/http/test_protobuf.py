"""Protobuf bodies, against bytes and JSON that the real encoders made of the same objects (data/protobuf.jsonl)."""

from __future__ import annotations

import base64
import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import ApiError, BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from paddlecloud.local.apiserver.builtin.kinds import SUBRESOURCE_KINDS, builtin_kinds
from paddlecloud.local.apiserver.http import protobuf
from paddlecloud.local.apiserver.http.protobuf import MAGIC, decode

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data/protobuf.jsonl").read_text().splitlines()]
BODIES = {row["name"]: base64.b64decode(row["protobuf"]) for row in ROWS}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("row", ROWS, ids=BODIES.keys())
def test_a_body_decodes_to_the_json_the_same_client_would_have_sent(row: Any) -> None:
    want = without_nulls(row["object"])
    if row["name"] == "create service":
        assert want["spec"]["ports"][1].pop("targetPort") == 0  # unset; a server would fill in the port
    assert decode(base64.b64decode(row["protobuf"])) == want


def test_every_built_in_kind_that_is_served_can_be_sent_as_protobuf() -> None:
    served = {(info.resource.api_version, info.kind) for info in builtin_kinds()}
    served |= {(f"{k.group}/{k.version}" if k.group else k.version, k.kind) for k in SUBRESOURCE_KINDS.values()}
    kinds, _ = protobuf._table()
    assert served - kinds.keys() == set()


def test_every_type_the_table_names_is_in_the_table() -> None:
    kinds, messages = protobuf._table()
    known = messages.keys() | protobuf._CONVERSIONS.keys() | {"i", "d", "b"}
    assert {field.type for message in messages.values() for field in message.values()} - known == set()
    assert set(kinds.values()) - messages.keys() == set()


# --- a tiny encoder for what no real encoder writes -------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def chunk(number: int, data: bytes | str) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(raw: bytes, *, version: str = "v1", kind: str = "ConfigMap", more: bytes = b"") -> bytes:
    return MAGIC + chunk(1, chunk(1, version) + chunk(2, kind)) + chunk(2, raw) + more


def test_fields_that_are_not_known_are_skipped_whatever_their_wire_type() -> None:
    unknown = varint(100 << 3) + varint(5) + varint(101 << 3 | 1) + b"8" * 8 + varint(102 << 3 | 5) + b"4444"
    body = envelope(unknown + chunk(103, "x") + chunk(2, chunk(1, "k") + chunk(2, "v")))
    assert decode(body) == {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}}


def test_packed_numbers_are_read_as_well_as_single_ones() -> None:
    groups = chunk(4, varint(1) + varint(2)) + varint(4 << 3) + varint(3)
    pod = decode(envelope(chunk(2, chunk(14, groups)), kind="Pod"))
    assert pod["spec"]["securityContext"]["supplementalGroups"] == [1, 2, 3]


def custom_kind(schema: bytes) -> bytes:
    version = chunk(4, chunk(1, schema))
    return envelope(chunk(2, chunk(7, version)), version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")


def test_a_schema_or_boolean_that_says_nothing_is_false_as_in_go() -> None:
    (version,) = decode(custom_kind(chunk(30, b"")))["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"] == {"additionalProperties": False}


def test_a_schema_as_deep_as_that_of_a_pod_within_a_custom_kind_is_read() -> None:
    schema = b""
    for _ in range(40):
        schema = chunk(29, chunk(1, "in") + chunk(2, schema))
    (version,) = decode(custom_kind(schema))["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"]["in"]


def test_a_time_of_the_first_years_has_four_digits_of_year() -> None:
    seconds = -62135596798 % (1 << 64)  # Go's time.Unix of the year 1
    body = envelope(chunk(1, chunk(8, varint(1 << 3) + varint(seconds))))
    assert decode(body)["metadata"]["creationTimestamp"] == "0001-01-01T00:00:02Z"


MALFORMED: dict[str, tuple[bytes, type[ApiError], str]] = {
    "nothing": (b"", BadRequest, "does not start with"),
    "JSON": (b'{"kind":"Pod"}', BadRequest, "does not start with"),
    "no envelope": (MAGIC, UnsupportedMediaType, "unnamed kind"),
    "a kind that is not in the table": (envelope(b"", kind="Sprocket"), UnsupportedMediaType, "Sprocket of v1"),
    "a kind of another version": (envelope(b"", version="v2"), UnsupportedMediaType, "ConfigMap of v2"),
    "a content encoding": (envelope(b"", more=chunk(3, "gzip")), UnsupportedMediaType, "gzip"),
    "a length past the end": (envelope(varint(1 << 3 | 2) + varint(99)), BadRequest, "middle of a field"),
    "a fixed number past the end": (envelope(varint(9 << 3 | 1) + b"123"), BadRequest, "middle of a field"),
    "a number cut off": (envelope(b"\x80"), BadRequest, "middle of a number"),
    "an endless number": (envelope(b"\xff" * 20), BadRequest, "more than 64 bits"),
    "a group": (envelope(varint(1 << 3 | 3)), BadRequest, "wire type"),
    "a number where a message belongs": (envelope(varint(1 << 3) + varint(7)), BadRequest, "a number where"),
    "a text where a number belongs": (envelope(chunk(4, "x")), BadRequest, "immutable is not a number"),
    "a text that is no UTF-8": (envelope(chunk(2, chunk(1, b"\xff"))), BadRequest, "key"),
    "a time beyond the calendar": (
        envelope(chunk(1, chunk(8, varint(1 << 3) + varint(1 << 62)))),
        BadRequest,
        "creationTimestamp",
    ),
    "an infinite number": (
        custom_kind(varint(9 << 3 | 1) + struct.pack("<d", math.inf)),
        BadRequest,
        "maximum is not a number",
    ),
    "a default that is no JSON": (custom_kind(chunk(8, chunk(1, "{"))), BadRequest, "default"),
    "managed fields that are no JSON": (
        envelope(chunk(1, chunk(17, chunk(7, chunk(1, "{"))))),
        BadRequest,
        "fieldsV1",
    ),
}


@pytest.mark.parametrize(("body", "error", "words"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_such_body_is_refused(body: bytes, error: type[ApiError], words: str) -> None:
    with pytest.raises(error) as caught:
        decode(body)
    assert words in caught.value.message


def test_a_body_beyond_the_limit_is_refused_unread() -> None:
    with pytest.raises(RequestEntityTooLarge):
        decode(MAGIC + bytes(protobuf.MAX_BYTES))


# --- fuzzing ----------------------------------------------------------------------------------------------------------


def decodes_or_refuses(body: bytes) -> None:
    try:
        json.dumps(decode(body))
    except ApiError:
        pass  # refusing is fine; anything else would escape to the caller


@given(st.binary(max_size=200))
def test_random_bytes_decode_or_are_refused(noise: bytes) -> None:
    decodes_or_refuses(noise)
    decodes_or_refuses(MAGIC + noise)
    for kind in ("Pod", "ConfigMap", "DeleteOptions"):
        decodes_or_refuses(envelope(noise, kind=kind))


@given(st.sampled_from(sorted(BODIES)), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4), st.data())
def test_damaged_bodies_decode_or_are_refused(name: str, damage: list[tuple[int, int]], data: st.DataObject) -> None:
    body = bytearray(BODIES[name])
    for place, byte in damage:
        body[place % len(body)] = byte
    decodes_or_refuses(bytes(body))
    decodes_or_refuses(bytes(body[: data.draw(st.integers(0, len(body)))]))


def test_nesting_is_bounded_whatever_the_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {("v1", "Doll"): "Doll"}, {**protobuf._table()[1], "Doll": {1: protobuf.ProtobufField("in", "Doll", "")}}
    monkeypatch.setattr(protobuf, "_table", lambda: tables)
    doll = b""
    for _ in range(protobuf.MAX_DEPTH):
        doll = chunk(1, doll)
    assert decode(envelope(doll, kind="Doll"))["in"]
    with pytest.raises(BadRequest, match="too deep"):
        decode(envelope(chunk(1, doll), kind="Doll"))
