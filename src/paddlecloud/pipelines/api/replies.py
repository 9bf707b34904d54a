"""What the API answers when it refuses: `{code, message, details}` with gRPC's codes, as KFP's gateway does. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object


class Reply(NamedTuple):
    status: int
    body: Any


class RequestRefused(Exception):
    """A request that is not carried out: the HTTP status, and the sentence that says why and what to do."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


GRPC = {400: 3, 401: 16, 403: 7, 404: 5, 409: 6, 413: 3, 415: 3, 429: 8, 500: 13, 501: 12, 503: 14, 504: 4}
"""HTTP status → gRPC code, as grpc-gateway maps them."""
NO_CREDENTIALS = (
    "no credentials: send `Authorization: Bearer TOKEN` with a token of the Kubernetes API "
    "(kfp.Client(host, existing_token=…); `pdc pipeline login` gives kfp one for 24 hours)"
)


def refusal(status: int, message: str) -> Reply:
    code = GRPC.get(status, 13)
    return Reply(status, {"error": message, "code": code, "message": message, "details": []})


def of_error(error: errors.ApiError) -> Reply:
    """The answer of the Kubernetes API in the words of this one. What is unknown becomes 500; nothing is left out."""
    if isinstance(error, errors.Unreachable):
        return refusal(503, f"the Kubernetes API does not answer: {error.message}")
    status = {422: 400, 405: 501, 410: 400}.get(error.code, error.code)
    return refusal(status if status in GRPC else 500, error.message)


def object_of(value: Any, what: str = "the body") -> Object:
    if not isinstance(value, dict):
        raise RequestRefused(400, f"{what} must be an object")
    return value


def text_in(body: Object, *fields: str) -> str:
    """The first of these fields that is there, as text: kfp's clients of different ages write snake and camel case."""
    for field in fields:
        value = body.get(field)
        if value is None:
            continue
        if not isinstance(value, (str, int, float, bool)):
            raise RequestRefused(400, f"{field} must be a text")
        return value if isinstance(value, str) else str(value)
    return ""
