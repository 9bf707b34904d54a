"""Bodies in and out: which media types are understood, and which shape of answer a client asked for."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import msgspec

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.http import protobuf
from paddlecloud.local.apiserver.http.limits import MAX_BODY, MAX_SMALL, MAX_YAML, SHORT_YAML
from paddlecloud.local.apiserver.objects.large import in_thread

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML_TYPES = ("application/yaml", "text/yaml", "application/x-yaml")

READABLE = ("application/json", "*/*", "application/*", PROTOBUF, "application/yaml")
"""What clients ask for that are content with JSON: those that would rather have protobuf or YAML read it, too."""

SHAPES = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LARGEST = sys.float_info.max
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{309}")
"""What a body with too large a whole number has. Looked for at the beginning of digits alone: the time is linear."""


@dataclass(frozen=True, slots=True)
class Accept:
    """The first acceptable form. `as_kind` is Table, PartialObjectMetadata(List) or empty for the object itself."""

    as_kind: str = ""
    version: str = "v1"


def accepted(header: str, *, tables: bool = True) -> Accept:
    """The first entry of an Accept header that this server can produce: JSON in one of three shapes.

    Without `tables` for what is answered rather than stored: nothing says what a row of it would be.
    """
    if not header or header in ("*/*", "application/json"):
        return Accept()
    for entry in header.split(","):
        media, *params = (part.strip() for part in entry.split(";"))
        if media not in READABLE:
            continue
        options = dict(p.split("=", 1) for p in params if "=" in p)
        kind = options.get("as", "")
        if not kind:
            return Accept()
        if options.get("g") == "meta.k8s.io" and kind in SHAPES and (tables or kind != "Table"):
            return Accept(kind, options.get("v", "v1"))
    as_table = ", application/json;as=Table;v=v1;g=meta.k8s.io" if tables else ""
    raise errors.NotAcceptable(f"only the following media types are accepted: application/json{as_table}")


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def read_json(body: bytes) -> Any:
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.BadRequest(f"the body is not valid JSON: {error}") from None
    if _LONG_NUMBER.search(body):
        _check_numbers(value)
    return value


def _check_numbers(value: Any) -> None:
    """Whole numbers beyond the range of a double are no numbers of Kubernetes: as in kube-apiserver they are refused.
    Stored, a single one would end every list that a client in Go reads, also those of other tenants' objects."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, (int, float)) and not -_LARGEST <= one <= _LARGEST:
            raise errors.BadRequest("the body has a number beyond the range of 64-bit floating point")


def read_yaml(body: bytes) -> Any:
    """JSON is YAML; only what is not JSON pays for the slow parser, which counts depth and expanded aliases."""
    if body[:1] in (b"{", b"["):
        return read_json(body)
    if len(body) > MAX_YAML:
        raise errors.RequestEntityTooLarge(
            f"the body is {len(body)} bytes of YAML; the limit is {MAX_YAML}: send it as JSON"
        )
    from paddlecloud.kube.yamlio import YamlError, load_one

    try:
        value = load_one(body.decode())
    except (YamlError, UnicodeDecodeError) as error:
        raise errors.BadRequest(f"the body is not one valid YAML document: {error}") from None
    _check_numbers(value)
    return value


async def with_long_yaml_read(body: bytes, content_type: str) -> bytes:
    """The body; as JSON if it is YAML of some length, so that nobody else waits while the slow parser reads it."""
    if len(body) <= SHORT_YAML or body[:1] in (b"{", b"["):
        return body
    media = media_type(content_type)
    if media not in YAML_TYPES and media != APPLY_PATCH:
        return body
    return await in_thread(_as_json, body)


def _as_json(body: bytes) -> bytes:
    found = encode(read_yaml(body))
    if len(found) > MAX_BODY:  # aliases
        raise errors.RequestEntityTooLarge(f"the body is {len(found)} bytes of JSON; the limit is {MAX_BODY}")
    return found


def read_small(body: bytes, content_type: str) -> Object:
    """`read_object` for kinds that are answered at once and need few words."""
    if len(body) > MAX_SMALL:
        raise errors.RequestEntityTooLarge(f"the request body is {len(body)} bytes; the limit for it is {MAX_SMALL}")
    return read_object(body, content_type)


def read_object(body: bytes, content_type: str) -> Object:
    """The object in a request body, whatever encoding the client chose."""
    if not body:
        raise errors.BadRequest("the body is empty: send the object")
    media = media_type(content_type)
    if media in ("", "application/json") or media == MERGE_PATCH:
        value = read_json(body)
    elif media == PROTOBUF:
        value = protobuf.decode(body)
    elif media in YAML_TYPES:
        value = read_yaml(body)
    else:
        raise errors.UnsupportedMediaType(
            f'the body of the request was in an unknown format "{media}": '
            "accepted are application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    if not isinstance(value, dict):
        raise errors.BadRequest("the body is not an object")
    return value
