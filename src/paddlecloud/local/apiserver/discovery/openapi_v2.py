"""OpenAPI v2 of what is served now, in JSON: every path and type of the v3 documents in one.

Terraform, kustomize and older clients read it. v2 has no alternatives and no nulls, so schemas of custom kinds lose
what it cannot say, as kube-apiserver makes them (apiextensions-apiserver/pkg/controller/openapi): a field that may be
null or keeps unknown fields is one of any content, because clients refuse what a v2 schema does not list.

The protobuf form, which kubectl asks for before it reports that a kind is unknown, describes nothing: every client that
reads it reads v3 as well.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import paddlecloud
from paddlecloud.local.apiserver.discovery import openapi
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Request, Response
from paddlecloud.local.apiserver.objects.large import in_thread
from paddlecloud.local.apiserver.registry import KindInfo, Registry, Schema
from paddlecloud.local.apiserver.schema.node import REF

PATH = "/openapi/v2"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
TITLE = "PaddleCloud embedded Kubernetes API"

_REF = "#/definitions/"
_PRODUCED = ["application/json"]
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"

Json = dict[str, Any]


class OpenApiV2:
    """Answers with the document, built once per change of the kinds and outside of the event loop."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept: tuple[int, bytes, str] = (-1, b"", "")
        self._building = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        if PROTOBUF in request.header("accept"):
            return Response(body=_message(), content_type=PROTOBUF.replace("@", "."))  # no media type may have an @
        async with self._building:  # many clients ask at once when the kinds have changed
            generation = self._registry.generation
            if self._kept[0] != generation:
                body = await in_thread(_encoded, self._registry.group_versions())
                self._kept = (generation, body, f'"{hashlib.sha256(body).hexdigest().upper()}"')
        _, body, etag = self._kept
        headers = {"ETag": etag, "Vary": "Accept"}
        if request.header("if-none-match") == etag:
            return Response(status=304, headers=headers)
        return Response(body=body, headers=headers)


def document(kinds: dict[str, dict[str, list[KindInfo]]]) -> Json:
    """Of all groups and versions of `Registry.group_versions`."""
    paths: Json = {}
    definitions: dict[str, Json] = {}
    for versions in kinds.values():
        for served in versions.values():
            found = openapi.document_of(served)
            paths |= {path: _path_item(item) for path, item in found["paths"].items()}
            for name, schema in found["components"]["schemas"].items():
                if name not in definitions:
                    definitions[name] = _definition(schema)
    return {
        "swagger": "2.0",
        "info": {"title": TITLE, "version": paddlecloud.__version__},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _encoded(kinds: dict[str, dict[str, list[KindInfo]]]) -> bytes:
    return encode(document(kinds))


# --- schemas ----------------------------------------------------------------------------------------------------------


def _definition(schema: Schema) -> Json:
    """A named type. One that keeps unknown fields at its root lists none, not even metadata."""
    kinds = "x-kubernetes-group-version-kind"
    if schema.get(_PRESERVE) and kinds in schema:
        return {"type": "object", kinds: schema[kinds]}
    return _schema(schema)


def _schema(schema: Schema) -> Json:
    found: Json = {key: value for key, value in schema.items() if key not in _JUNCTORS and key != "nullable"}
    if alone := _reference(schema):
        return {**found, "$ref": _REF + alone.removeprefix(REF)}
    for alternative in schema.get("oneOf", ()):
        if alternative.get("type") == "string":  # quantities, and numbers or strings
            found["type"] = "string"
    properties = schema.get("properties", {})
    if schema.get("nullable") or schema.get(_PRESERVE):
        found.pop("items", None)
        found.pop("properties", None)
    if schema.get("nullable") or (schema.get(_PRESERVE) and found.get("type") == "object"):
        found.pop("type", None)
    if found.get("type") == "array" and "items" not in found:
        del found["type"]
    if required := [name for name in schema.get("required", ()) if not properties.get(name, {}).get("nullable")]:
        found["required"] = required
    else:
        found.pop("required", None)
    if "properties" in found:
        found["properties"] = {name: _schema(part) for name, part in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _schema(found[key])
    return found


def _reference(schema: Schema) -> str:
    """What a schema refers to: by itself, or in v3 beside a description."""
    (first, *_) = schema.get("allOf") or [schema]
    return str(first.get("$ref", ""))


# --- operations -------------------------------------------------------------------------------------------------------


def _path_item(item: Json) -> Json:
    found: Json = {method: _operation(operation) for method, operation in item.items() if method != "parameters"}
    if "parameters" in item:
        found["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return found


def _operation(operation: Json) -> Json:
    found = {key: value for key, value in operation.items() if key != "requestBody"}
    found["parameters"] = [_parameter(parameter) for parameter in operation["parameters"]]
    found["responses"] = {code: _response(response) for code, response in operation["responses"].items()}
    found |= {"schemes": ["https"], "produces": _PRODUCED, "consumes": ["*/*"]}
    if body := operation.get("requestBody"):
        found["consumes"] = list(body["content"])
        schema = next(iter(body["content"].values()))["schema"]
        taken = {"name": "body", "in": "body", "required": body.get("required", False), "schema": _schema(schema)}
        found["parameters"].append(taken)
    return found


def _parameter(parameter: Json) -> Json:
    found = {key: value for key, value in parameter.items() if key != "schema"}
    return {**found, "type": parameter["schema"]["type"], "uniqueItems": True}


def _response(response: Json) -> Json:
    found: Json = {"description": response["description"]}
    for content in response.get("content", {}).values():
        found["schema"] = _schema(content["schema"])
    return found


# --- protobuf ---------------------------------------------------------------------------------------------------------


def _message() -> bytes:
    """Document{swagger = 1, info = 2 {title = 1, version = 2}, paths = 8}."""
    info = _field(1, TITLE.encode()) + _field(2, paddlecloud.__version__.encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"")


def _field(number: int, payload: bytes) -> bytes:
    """A length-delimited field; all of ours are shorter than 128 bytes."""
    assert len(payload) < 0x80
    return bytes((number << 3 | 2, len(payload))) + payload
