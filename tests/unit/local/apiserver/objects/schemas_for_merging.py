"""A schema with every kind of place that merging tells apart, for the tests of ownership and apply."""

from __future__ import annotations

from typing import Any

from paddlecloud.local.apiserver.schema.structural import Node

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
STRINGS = {"type": "object", "additionalProperties": TEXT}


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def listing(items: dict[str, Any], kind: str = "atomic", *keys: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return {**schema, "x-kubernetes-list-map-keys": list(keys)} if keys else schema


PORT = record(port=NUMBER, protocol={"type": "string", "default": "TCP"}, name=TEXT)
PART = record(
    name=TEXT,
    image=TEXT,
    args=listing(TEXT),
    ports=listing(PORT, "map", "port", "protocol"),
    limits=record(cpu=TEXT, memory=TEXT),
)
SPEC = record(
    replicas=NUMBER,
    parts=listing(PART, "map", "name"),
    labels=STRINGS,
    selector={**STRINGS, "x-kubernetes-map-type": "atomic"},
    args=listing(TEXT),
    hosts=listing(TEXT, "set"),
    policy=record(kind=TEXT, limit=NUMBER),
    maybe={"type": "string", "nullable": True},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
WIDGET = Node(record(metadata={"type": "object"}, spec=SPEC, status=record(phase=TEXT), data=STRINGS), {})


def widget(spec: Any = None, *, metadata: Any = None, **rest: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w", **(metadata or {})}, **rest}
    return obj if spec is None else {**obj, "spec": spec}
