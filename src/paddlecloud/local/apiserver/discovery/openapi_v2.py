"""OpenAPI v2, as little of it as keeps clients content that look there when v3 does not know a kind.

kubectl asks for v2, in protobuf, before it reports that a kind is unknown; without an answer it reports the failed
download instead of the kind. The document says truly that it describes nothing: every kind is in v3.
"""

from __future__ import annotations

import paddlecloud
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Request, Response

PATH = "/openapi/v2"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
TITLE = "PaddleCloud embedded Kubernetes API"


async def answer(request: Request) -> Response:
    if PROTOBUF in request.header("accept"):
        return Response(body=_message(), content_type=PROTOBUF.replace("@", "."))  # no media type may have an @
    info = {"title": TITLE, "version": paddlecloud.__version__}
    return Response(body=encode({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}))


def _message() -> bytes:
    """Document{swagger = 1, info = 2 {title = 1, version = 2}, paths = 8}."""
    info = _field(1, TITLE.encode()) + _field(2, paddlecloud.__version__.encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"")


def _field(number: int, payload: bytes) -> bytes:
    """A length-delimited field; all of ours are shorter than 128 bytes."""
    assert len(payload) < 0x80
    return bytes((number << 3 | 2, len(payload))) + payload
