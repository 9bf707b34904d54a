"""OpenAPI v3 of what is served now: an index, and one document per group and version.

kubectl reads these for `apply`, `diff`, `edit`, `create --validate` and `explain`. It looks for a PATCH operation that
carries the kind and takes `fieldValidation` (else it refuses to apply), for the strategic-merge content type (else it
sends merge patches), and for schemas with merge keys and descriptions. Client generators and fuzzers get operations
with parameters and answers besides. Documents are built when asked for and kept until their kinds change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

import paddlecloud
from paddlecloud.kube.errors import NotFound
from paddlecloud.local.apiserver.builtin.kinds import SUBRESOURCE_KINDS
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS, list_type, type_name
from paddlecloud.local.apiserver.registry import KindInfo, Registry, Schema
from paddlecloud.local.apiserver.schema.node import LENIENT, REF

ROOT = "/openapi/v3"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_JSON = "application/json"
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STRATEGIC = "application/strategic-merge-patch+json"

Json = dict[str, Any]


def index(registry: Registry) -> Json:
    """Where the document of each group and version is; the hash in its address changes with its content."""
    paths = {}
    for group, versions in registry.group_versions().items():
        for version, kinds in versions.items():
            place = _place(group, version)
            paths[place] = {"serverRelativeURL": f"{ROOT}/{place}?hash={_fingerprint(kinds)}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> Json:
    """The OpenAPI document of one group and version; `NotFound` when nothing of it is served."""
    kinds = registry.group_versions().get(group, {}).get(version)
    if not kinds:
        raise NotFound(f"no kind of {_place(group, version)} is served")
    return document_of(kinds)


def document_of(kinds: list[KindInfo]) -> Json:
    """The document of these kinds, which are all of one group and version."""
    schemas: dict[str, Schema] = {}
    paths: Json = {}
    for info in kinds:
        paths.update(_paths(info))
        if info.custom or _type_of(info) not in DEFINITIONS:  # kinds that are answered, not stored, have no fields here
            schemas.update(_custom_types(info))
    return {
        "openapi": "3.0.0",
        "info": {"title": "PaddleCloud embedded Kubernetes API", "version": paddlecloud.__version__},
        "paths": paths,
        "components": {"schemas": _with_referenced([paths, *schemas.values()], schemas)},
    }


class OpenApi:
    """The same as encoded bytes by request path, each encoded once per change of its kinds."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._index: tuple[int, bytes] = (-1, b"")
        self._documents: dict[str, tuple[list[KindInfo], bytes]] = {}

    def body(self, path: str) -> bytes:
        place = path.removeprefix(ROOT).strip("/")
        return self._document(place) if place else self._whole_index()

    def _whole_index(self) -> bytes:
        if self._index[0] != self._registry.generation:
            self._index = (self._registry.generation, msgspec.json.encode(index(self._registry)))
            served = set(msgspec.json.decode(self._index[1])["paths"])
            self._documents = {place: kept for place, kept in self._documents.items() if place in served}
        return self._index[1]

    def _document(self, place: str) -> bytes:
        match place.split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                raise NotFound(f"there is no OpenAPI document {place!r}; {ROOT} lists them")
        kinds = self._registry.group_versions().get(group, {}).get(version, [])
        kept = self._documents.get(place)
        if kept is None or kept[0] != kinds:  # kinds compare by identity
            kept = (kinds, msgspec.json.encode(document(self._registry, group, version)))
            self._documents[place] = kept
        return kept[1]


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _fingerprint(kinds: list[KindInfo]) -> str:
    """Changes whenever the document would. Built-in types change only with the program."""
    digest = hashlib.sha256(paddlecloud.__version__.encode())
    for info in kinds:
        marks = [info.resource, info.verbs, sorted(info.subresources), info.schema if info.custom else None]
        digest.update(json.dumps(marks, sort_keys=True, default=str).encode())
    return digest.hexdigest().upper()


# --- schemas --------------------------------------------------------------------------------------------------------


def _type_of(info: KindInfo) -> str:
    """The name of the kind's schema; a custom kind's group is turned round, as Java packages are."""
    resource = info.resource
    if not info.custom:
        return type_name(resource.group, resource.version, resource.kind)
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _custom_types(info: KindInfo) -> dict[str, Schema]:
    name = _type_of(info)
    whole = {**(info.schema or {}), "x-kubernetes-group-version-kind": [_gvk(info)]}
    return {name: whole, f"{name}List": list_type(name, _gvk(info), kind=info.list_kind)}


def _with_referenced(start: list[Any], own: Mapping[str, Schema]) -> dict[str, Schema]:
    """`own` and every built-in type that is referred to, directly or not."""
    found: dict[str, Schema] = dict(own)
    todo = list(start)
    while todo:
        for name in _references(todo.pop()):
            if name not in found:
                found[name] = {key: value for key, value in DEFINITIONS[name].items() if key != LENIENT}
                todo.append(found[name])
    return dict(sorted(found.items()))


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        ref = part.get("$ref")
        if isinstance(ref, str) and ref.startswith(REF):
            yield ref[len(REF) :]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


# --- operations -----------------------------------------------------------------------------------------------------

_DOCUMENTED_SUBRESOURCES = ("status", "scale", "eviction", "binding", "token", "finalize", "ephemeralcontainers")
"""Those that take and give objects; log, exec, attach and portforward are streams."""


def _paths(info: KindInfo) -> Json:
    resource, name = info.resource, _type_of(info)
    collection = resource.path("{namespace}" if resource.namespaced else None)
    one = f"{collection}/{{name}}"
    found: Json = {collection: _item(info, name, _COLLECTION_VERBS, namespaced=resource.namespaced)}
    if resource.namespaced and "list" in info.verbs:
        found[resource.path()] = _item(info, name, {"get": "list"}, namespaced=False)
    if "get" in info.verbs:
        found[one] = _item(info, name, _OBJECT_VERBS, namespaced=resource.namespaced, named=True)
    for subresource in sorted(info.subresources & set(_DOCUMENTED_SUBRESOURCES)):
        kind = SUBRESOURCE_KINDS.get(subresource)
        verbs = _SUBRESOURCE_VERBS.get(subresource, _READ_AND_WRITE)
        found[f"{one}/{subresource}"] = _item(
            info,
            type_name(*kind) if kind else name,
            verbs,
            namespaced=resource.namespaced,
            named=True,
            gvk=kind._asdict() if kind else None,
        )
    return {path: item for path, item in found.items() if any(verb in item for verb in _METHODS)}


_METHODS = ("get", "post", "put", "patch", "delete")
_COLLECTION_VERBS = {"get": "list", "post": "create", "delete": "deletecollection"}
_OBJECT_VERBS = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
_READ_AND_WRITE = {"get": "get", "put": "update", "patch": "patch"}
_SUBRESOURCE_VERBS = {
    "eviction": {"post": "create"},
    "binding": {"post": "create"},
    "token": {"post": "create"},
    "finalize": {"put": "update"},
}


def _item(
    info: KindInfo,
    type_: str,
    verbs: Mapping[str, str],
    *,
    namespaced: bool,
    named: bool = False,
    gvk: Json | None = None,
) -> Json:
    places = [name for name, wanted in (("namespace", namespaced), ("name", named)) if wanted]
    item: Json = {"parameters": [_parameter(name, "path") for name in places]} if places else {}
    for method, verb in verbs.items():
        if gvk is None and verb not in info.verbs:
            continue
        item[method] = _operation(info, type_, verb, gvk=gvk or _gvk(info))
    return item


def _operation(info: KindInfo, type_: str, verb: str, *, gvk: Json) -> Json:
    answer = f"{type_}List" if verb == "list" else f"{_META}Status" if verb.startswith("delete") else type_
    operation: Json = {
        "tags": [f"{info.resource.group or 'core'}_{info.resource.version}"],
        "description": f"{verb} {gvk['kind']}",
        "parameters": [_parameter(name, "query") for name in _QUERIES.get(verb, ())],
        "responses": {
            "200": {"description": "OK", "content": _content(_JSON, answer)},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": dict(gvk),
    }
    if verb in ("create", "update"):
        operation["requestBody"] = {"required": True, "content": _content(_JSON, type_)}
    elif verb == "patch":
        kinds = _PATCHES if info.custom else (*_PATCHES, _STRATEGIC)
        operation["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": {"type": "object"}} for kind in kinds},
        }
    elif verb == "delete":
        operation["requestBody"] = {"content": _content(_JSON, f"{_META}DeleteOptions")}
    return operation


_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_SELECT = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "timeoutSeconds")
_QUERIES: dict[str, tuple[str, ...]] = {
    "list": (*_SELECT, "watch", "allowWatchBookmarks", "resourceVersionMatch", "sendInitialEvents"),
    "create": _WRITE,
    "update": _WRITE,
    "patch": (*_WRITE, "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
    "deletecollection": (*_SELECT, "dryRun", "gracePeriodSeconds", "propagationPolicy"),
}
_INTEGERS = ("limit", "timeoutSeconds", "gracePeriodSeconds")
_BOOLEANS = ("watch", "allowWatchBookmarks", "sendInitialEvents", "force")


def _parameter(name: str, place: str) -> Json:
    kind = "integer" if name in _INTEGERS else "boolean" if name in _BOOLEANS else "string"
    found: Json = {"name": name, "in": place, "schema": {"type": kind}}
    return {**found, "required": True} if place == "path" else found


def _content(media: str, type_: str) -> Json:
    return {media: {"schema": {"$ref": REF + type_}}}


def _gvk(info: KindInfo) -> dict[str, str]:
    resource = info.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}
