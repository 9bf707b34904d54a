"""Answers that are about a request rather than an object: refusals, successes, warnings, the version; and metadata
alone, for clients that want no more of an object."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud import __version__
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Response
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import Record

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
KUBERNETES = ("1", "34")  # the API whose behaviour is mirrored


def failure(error: ApiError) -> Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
    return Response(status=error.code, body=encode(error.status()), headers=headers)


def success(details: Mapping[str, Any]) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": dict(details)}


def partial_metadata(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def partial_value(record: Record) -> bytes:
    return encode(partial_metadata(record.object))


def value_of(kind: KindInfo) -> Callable[[Record], bytes]:
    """The object itself: the very bytes of the store unless it is shown in another form."""
    if kind.conversion is None and kind.complete is None:
        return _stored_value

    def value(record: Record) -> bytes:
        as_stored = kind.shows_as_stored(record.rev)
        return record.value if as_stored else encode(kind.shown(record.object, record.rev))

    return value


_stored_value: Callable[[Record], bytes] = operator.attrgetter("value")


def warning_headers(warnings: list[str]) -> dict[str, str]:
    """RFC 7234 warnings, which kubectl prints. One header, entries separated as the RFC has it.

    As kube-apiserver (endpoints/filters/warning.go): each text once, and none with control characters, which no header
    can hold.
    """
    shown = [text for text in dict.fromkeys(warnings) if not _CONTROL.search(text)][:20]
    if not shown:
        return {}
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in shown)
    return {"Warning": ", ".join(f'299 - "{text}"' for text in quoted)}


def version() -> Object:
    major, minor = KUBERNETES
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0-paddlecloud.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "cpython",
        "platform": "linux/amd64",
    }
