"""OpenAPI v2: custom kinds as a form without alternatives and nulls can say them; sent again only when it changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from paddlecloud.local.apiserver.auth.authentication import ADMIN
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.crd import install
from paddlecloud.local.apiserver.discovery.openapi_v2 import OpenApiV2
from paddlecloud.local.apiserver.http.request import Request, Response
from paddlecloud.local.apiserver.registry import Registry

KEEPS = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}
NAMED_LIKE_WORDS = {"type": "object", "properties": {"items": {"type": "string"}, "nullable": {"type": "string"}}}
STRING = {"type": "string"}


def kinds_with(schema: dict[str, Any]) -> Registry:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "jobs", "kind": "Job"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return Registry([*builtin_kinds(), *install.kinds_of({"metadata": {"name": "jobs.example.org"}, "spec": spec})])


async def ask(document: OpenApiV2, **headers: str) -> Response:
    return await document.answer(Request("GET", "/openapi/v2", {}, headers, b"", ADMIN))


async def published(schema: dict[str, Any]) -> dict[str, Any]:
    answer = await ask(OpenApiV2(kinds_with(schema)))
    found: dict[str, Any] = msgspec.json.decode(answer.body)["definitions"]["org.example.v1.Job"]
    assert found.pop("x-kubernetes-group-version-kind") == [{"group": "example.org", "version": "v1", "kind": "Job"}]
    return found


@pytest.mark.parametrize(
    ("v3", "v2"),
    [
        (STRING, STRING),
        ({**STRING, "nullable": True, "description": "d"}, {"description": "d"}),
        ({"type": "object", "properties": {"a": STRING}, **KEEPS}, KEEPS),
        ({"type": "array", "items": {"type": "object", **KEEPS}}, {"type": "array", "items": KEEPS}),
        (
            {"type": "object", "additionalProperties": {**STRING, "nullable": True}},
            {"type": "object", "additionalProperties": {}},
        ),
        ({**INT_OR_STRING, "anyOf": [{"type": "integer"}, STRING]}, INT_OR_STRING),
        (
            {"type": "object", "required": ["a", "b"], "properties": {"a": STRING, "b": {**STRING, "nullable": True}}},
            {"type": "object", "required": ["a"], "properties": {"a": STRING, "b": {}}},
        ),
        (NAMED_LIKE_WORDS, NAMED_LIKE_WORDS),
    ],
)
async def test_a_field_says_what_the_old_form_can_say(v3: dict[str, Any], v2: dict[str, Any]) -> None:
    found = await published({"type": "object", "properties": {"spec": v3}})
    assert found["properties"]["spec"] == v2


async def test_a_kind_that_keeps_unknown_fields_lists_none() -> None:
    assert await published({"type": "object", "properties": {"spec": STRING}, **KEEPS}) == {"type": "object"}


async def test_it_is_sent_again_only_when_the_kinds_changed() -> None:
    registry = kinds_with({"type": "object"})
    document = OpenApiV2(registry)
    first = await ask(document)
    again = await ask(document, **{"if-none-match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    registry.remove("example.org", "v1", "jobs")
    changed = await ask(document, **{"if-none-match": first.headers["ETag"]})
    assert (changed.status, b"org.example" in changed.body) == (200, False)
