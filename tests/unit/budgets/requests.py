"""Whole requests that a tenant with `edit` may send, each as large as the limits allow and made to be slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

CORE = "/api/v1/namespaces/default"
CONFIGMAPS, PODS, SERVICES, SECRETS = (f"{CORE}/{plural}" for plural in ("configmaps", "pods", "services", "secrets"))
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
STRICT = {"fieldValidation": "Strict"}
MANAGER = {"fieldManager": "m"}


class Sent(NamedTuple):
    shape: str
    method: str
    path: str
    body: Callable[[], Any]
    status: int = 201
    media: str = JSON
    query: dict[str, str] = {}  # noqa: RUF012 - never changed
    accept: str = JSON
    before: tuple[Sent, ...] = ()
    """What must be there first."""

    def raw(self) -> bytes:
        body = self.body()
        return body if isinstance(body, bytes) else msgspec.json.encode(body)


def names(count: int, letter: str = "k") -> list[str]:
    return [f"{letter}{number:x}" for number in range(count)]


def mapping(count: int, value: Any = "", letter: str = "k") -> dict[str, Any]:
    return dict.fromkeys(names(count, letter), value)


def config(name: str, *, meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **(meta or {})}, **fields}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def owners(count: int) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": name} for name in names(count)]


def ports(count: int) -> list[dict[str, Any]]:
    return [{"name": name, "port": number % 65535 + 1} for number, name in enumerate(names(count))]


def twice(count: int) -> bytes:
    fields = ",".join(f'"{name}":"","{name}":""' for name in names(count))
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"t"},"data":{%b}}' % fields.encode()


def managed(count: int) -> list[dict[str, Any]]:
    fields = {"f:data": mapping(count, {}, "f:k")}
    return [{"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]


def creations() -> Iterator[Sent]:
    def configured(shape: str, fields: Callable[[], dict[str, Any]], status: int = 201, **options: Any) -> Sent:
        return Sent(shape, "POST", CONFIGMAPS, lambda: config(shape.replace(" ", "-"), **fields()), status, **options)

    yield configured("labels", lambda: {"meta": {"labels": mapping(120_000, "v")}})
    yield configured("labels that are none", lambda: {"meta": {"labels": mapping(100_000, "-", "-")}}, 422)
    yield configured("data", lambda: {"data": mapping(120_000)})
    yield configured("data read strictly", lambda: {"data": mapping(120_000)}, query=STRICT)
    yield configured("data with bad keys", lambda: {"data": mapping(120_000, "", "/")}, 422)
    yield configured("annotations", lambda: {"meta": {"annotations": mapping(40_000)}})
    yield configured("too many annotations", lambda: {"meta": {"annotations": mapping(100_000)}}, 422)
    yield configured("owners", lambda: {"meta": {"ownerReferences": owners(30_000)}})
    yield configured("owners that are none", lambda: {"meta": {"ownerReferences": [{}] * 500_000}}, 422)
    yield configured("finalizers", lambda: {"meta": {"finalizers": names(90_000, "a/")}})
    yield configured("managed fields", lambda: {"meta": {"managedFields": managed(120_000)}})
    yield configured("unknown fields", lambda: mapping(200_000, 1, "x"))
    yield configured("unknown fields read strictly", lambda: mapping(200_000, 1, "x"), 400, query=STRICT)
    yield Sent("fields given twice", "POST", CONFIGMAPS, lambda: twice(100_000), 400, query=STRICT)
    yield Sent("a Secret", "POST", SECRETS, lambda: {"metadata": {"name": "s"}, "stringData": mapping(120_000)})
    yield Sent("containers", "POST", PODS,
               lambda: pod("p", containers=[{"name": name, "image": "i"} for name in names(90_000)]), 413)  # fmt: skip
    yield Sent("empty containers", "POST", PODS, lambda: pod("p", containers=[{}] * 500_000), 413)
    yield Sent("a few thousand containers", "POST", PODS,
               lambda: pod("q", containers=[{"name": n, "image": "i"} for n in names(6_000)]))  # fmt: skip
    yield Sent("tolerations", "POST", PODS,
               lambda: pod("r", tolerations=[{"operator": "Exists", "key": key} for key in names(50_000)]))  # fmt: skip
    yield Sent("ports", "POST", SERVICES, lambda: service("s", ports=ports(15_000)))
    yield Sent("too many ports", "POST", SERVICES, lambda: service("t", ports=ports(60_000)), 413)
    yield Sent("lists of a custom object", "POST", WIDGETS, lambda: widget("l", rows=[[]] * 500_000))
    yield Sent("keyed elements of a custom object", "POST", WIDGETS,
               lambda: widget("k", parts=[{"name": name} for name in names(18_000)]))  # fmt: skip
    yield Sent("too many keyed elements", "POST", WIDGETS,
               lambda: widget("k", parts=[{"name": name} for name in names(150_000)]), 413)  # fmt: skip
    yield Sent("a set of lists", "POST", WIDGETS, lambda: widget("s", tags=[[n] for n in range(150_000)]))
    yield Sent("unknown fields of a custom object", "POST", WIDGETS, lambda: widget("u", **mapping(200_000, 1)))


def changes() -> Iterator[Sent]:
    data = Sent("", "POST", CONFIGMAPS, lambda: config("d", data=mapping(60_000)))
    mine = Sent("", "PATCH", f"{CONFIGMAPS}/m", lambda: config("m", data=mapping(60_000)), 201, APPLY, MANAGER)
    items = Sent("", "POST", WIDGETS, lambda: widget("b", bag=[0] * 400_000))
    parts = [{"name": name} for name in names(15_000)]
    keyed = Sent("", "PATCH", f"{WIDGETS}/k", lambda: widget("k", parts=parts), 201, APPLY, MANAGER)

    def patched(shape: str, path: str, body: Callable[[], Any], media: str, first: Sent, status: int = 200,
                **query: str) -> Sent:  # fmt: skip
        return Sent(shape, "PATCH", path, body, status, media, query, before=(first,))

    yield Sent("an update of all values", "PUT", f"{CONFIGMAPS}/d", lambda: config("d", data=mapping(60_000, "x")), 200,
               before=(data,))  # fmt: skip
    yield Sent("an update of all keys", "PUT", f"{CONFIGMAPS}/d", lambda: config("d", data=mapping(60_000, "", "z")),
               200, before=(data,))  # fmt: skip
    yield patched("a merge of many keys", f"{CONFIGMAPS}/d", lambda: {"data": mapping(40_000, "", "z")}, MERGE, data)
    yield patched("a merge of one key", f"{CONFIGMAPS}/d", lambda: {"data": {"a": "b"}}, MERGE, data)
    yield patched("a strategic merge", f"{CONFIGMAPS}/d", lambda: {"data": mapping(40_000, "", "z")}, STRATEGIC, data)
    yield patched("insertions at the head of a list", f"{WIDGETS}/b",
                  lambda: [{"op": "add", "path": "/spec/bag/0", "value": 1}] * 10_000, JSON_PATCH, items)  # fmt: skip
    yield patched("moves within a list", f"{WIDGETS}/b",
                  lambda: [{"op": "move", "path": "/spec/bag/0", "from": "/spec/bag/399999"}] * 10_000, JSON_PATCH,
                  items)  # fmt: skip
    yield patched("a patch that changes nothing", f"{WIDGETS}/b",
                  lambda: [{"op": "test", "path": "/spec/bag/0", "value": 0}], JSON_PATCH, items)  # fmt: skip
    yield Sent("the first apply", "PATCH", f"{CONFIGMAPS}/a", lambda: config("a", data=mapping(120_000)), 201, APPLY,
               MANAGER)  # fmt: skip
    yield patched("an apply in conflict", f"{CONFIGMAPS}/d", lambda: config("d", data=mapping(60_000, "x")), APPLY,
                  data, 409, **MANAGER)  # fmt: skip
    yield patched("a forced apply", f"{CONFIGMAPS}/d", lambda: config("d", data=mapping(60_000, "x")), APPLY, data,
                  **MANAGER, force="true")  # fmt: skip
    yield patched("an apply of other keys", f"{CONFIGMAPS}/m", lambda: config("m", data=mapping(60_000, "", "z")),
                  APPLY, mine, **MANAGER)  # fmt: skip
    yield patched("an apply in another order", f"{WIDGETS}/k",
                  lambda: widget("k", parts=parts[::-1]), APPLY, keyed, **MANAGER)  # fmt: skip


def reading() -> Iterator[Sent]:
    many = tuple(
        Sent("", "POST", CONFIGMAPS, lambda name=name: config(name, meta={"labels": mapping(60_000)}))  # type: ignore[misc]
        for name in names(10)
    )
    yield Sent("an object as a table", "GET", f"{CONFIGMAPS}/k0", bytes, 200, accept=TABLE, before=many)
    yield Sent("an object's metadata", "GET", f"{CONFIGMAPS}/k0", bytes, 200, accept=METADATA)
    yield Sent("a list as a table", "GET", CONFIGMAPS, bytes, 200, accept=TABLE)
    yield Sent("a list's metadata", "GET", CONFIGMAPS, bytes, 200, accept=METADATA)
    yield Sent("a list", "GET", CONFIGMAPS, bytes, 200)
    yield Sent("a selection", "GET", CONFIGMAPS, bytes, 200, query={"labelSelector": "k0=x"})
    yield Sent("a watch", "GET", CONFIGMAPS, bytes, 200, query={"watch": "true", "timeoutSeconds": "0"}, accept=TABLE)
    yield Sent("a deletion", "DELETE", f"{CONFIGMAPS}/k0", bytes, 200)
    yield Sent("deletions that are not done", "DELETE", CONFIGMAPS, bytes, 200, query={"dryRun": "All"})
    yield Sent("all deletions", "DELETE", CONFIGMAPS, bytes, 200)


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                          "items": {"type": "object", "required": ["name"], "properties": {
                              "name": {"type": "string", "pattern": "^[a-z0-9]+$"},
                              "size": {"type": "integer", "default": 3}}}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set",
                         "items": {"x-kubernetes-preserve-unknown-fields": True}},
                "bag": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
            }}},
        }}}],
    },
}  # fmt: skip
