"""Discovery: which groups, versions and kinds there are to ask for.

Two forms of the same facts, both made from the registry alone: the legacy documents (`/api`, `/apis`, `/apis/GROUP`,
`/apis/GROUP/VERSION`) and the aggregated one that modern clients ask for in `Accept`. Documents are encoded once per
generation of the registry, so a CRD that comes or goes shows at once and everything else is a dictionary look-up.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.kube.transport import JSON
from paddlecloud.local.apiserver.registry import KindInfo, Registry

_AGGREGATED_VERSIONS = ("v2", "v2beta1")


class Document(NamedTuple):
    """An encoded answer. The tag is strong: equal tags mean equal bytes."""

    body: bytes
    content_type: str
    etag: str


class Subresource(NamedTuple):
    verbs: tuple[str, ...]
    kind: str = ""  # empty: that of the parent, in the parent's group and version
    group: str = ""
    version: str = ""


_READ_WRITE = ("get", "patch", "update")
_CONNECT = ("create", "get")
SUBRESOURCES: dict[str, Subresource] = {
    "approval": Subresource(_READ_WRITE),
    "attach": Subresource(_CONNECT, "PodAttachOptions", "", "v1"),
    "binding": Subresource(("create",), "Binding", "", "v1"),
    "ephemeralcontainers": Subresource(_READ_WRITE),
    "eviction": Subresource(("create",), "Eviction", "policy", "v1"),
    "exec": Subresource(_CONNECT, "PodExecOptions", "", "v1"),
    "finalize": Subresource(("update",)),
    "log": Subresource(("get",)),
    "portforward": Subresource(_CONNECT, "PodPortForwardOptions", "", "v1"),
    "proxy": Subresource(("create", "delete", "get", "patch", "update")),
    "resize": Subresource(_READ_WRITE),
    "scale": Subresource(_READ_WRITE, "Scale", "autoscaling", "v1"),
    "status": Subresource(_READ_WRITE),
    "token": Subresource(("create",), "TokenRequest", "authentication.k8s.io", "v1"),
}

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}


def version_priority(version: str) -> tuple[Any, ...]:
    """Sorts the version clients should prefer first: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, version)
    return (0, -_STABILITY[match[2]], -int(match[1]), -int(match[3] or 0))


def negotiate(accept: str) -> str | None:
    """The version of aggregated discovery the client prefers among those served here; None for the legacy form."""
    for offer in accept.split(","):
        media_type, *parameters = (part.strip() for part in offer.split(";"))
        wanted = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media_type not in (JSON, "application/*", "*/*"):
            continue
        if wanted.get("as") == "APIGroupDiscoveryList" and wanted.get("g") == "apidiscovery.k8s.io":
            if wanted.get("v") in _AGGREGATED_VERSIONS:
                return wanted["v"]
        elif "as" not in wanted:
            return None
    return None


class Discovery:
    """Answers the paths of discovery. Knows nothing of requests: the caller passes path and Accept."""

    def __init__(self, registry: Registry, *, server_address: str = "") -> None:
        self._registry = registry
        self._server_address = server_address
        self._generation = -1
        self._documents: dict[tuple[str, str | None], Document] = {}

    def find(self, path: str, accept: str = JSON) -> Document | None:
        """The document at `path`, None if there is none (the group or version is not served)."""
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation
        path = path.rstrip("/")
        form = negotiate(accept) if path in ("/api", "/apis") else None
        document = self._documents.get((path, form))
        if document is None:
            content = (
                self._legacy(path) if form is None else aggregated(self._registry, core=path == "/api", version=form)
            )
            if content is None:
                return None
            media_type = JSON if form is None else f"{JSON};g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"
            body = msgspec.json.encode(content)
            document = Document(body, media_type, f'"{hashlib.sha256(body).hexdigest()}"')
            self._documents[path, form] = document
        return document

    def _legacy(self, path: str) -> Object | None:
        if path == "/api":
            return api_versions(self._registry, server_address=self._server_address)
        if path == "/apis":
            return group_list(self._registry)
        prefix, *rest = path.removeprefix("/").split("/")
        if prefix == "api" and len(rest) == 1:
            return resource_list(self._registry, group="", version=rest[0])
        if prefix == "apis" and len(rest) == 1 and rest[0]:
            return api_group(self._registry, rest[0])
        if prefix == "apis" and len(rest) == 2 and rest[0]:
            return resource_list(self._registry, group=rest[0], version=rest[1])
        return None


# --- legacy documents ---


def api_versions(registry: Registry, *, server_address: str = "") -> Object:
    """`/api`: the versions of the core group."""
    versions = sorted(registry.group_versions().get("", {}), key=version_priority)
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": addresses}


def group_list(registry: Registry) -> Object:
    """`/apis`: every named group."""
    groups = [_group(name, versions) for name, versions in sorted(registry.group_versions().items()) if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(registry: Registry, name: str) -> Object | None:
    """`/apis/GROUP`."""
    versions = registry.group_versions().get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: dict[str, list[KindInfo]]) -> Object:
    entries = [{"groupVersion": f"{name}/{v}", "version": v} for v in sorted(versions, key=version_priority)]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def resource_list(registry: Registry, *, group: str, version: str) -> Object | None:
    """`/api/v1` and `/apis/GROUP/VERSION`: kinds and, as entries of their own, their subresources."""
    kinds = registry.group_versions().get(group, {}).get(version)
    if kinds is None:
        return None
    resources: list[Object] = []
    for info in sorted(kinds, key=_plural):
        resources.append(_legacy_resource(info))
        resources += [_legacy_subresource(info, name) for name in sorted(info.subresources)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def _plural(info: KindInfo) -> str:
    return info.resource.plural


def _legacy_resource(info: KindInfo) -> Object:
    resource: Object = {
        "name": info.resource.plural,
        "singularName": info.singular,
        "namespaced": info.resource.namespaced,
        "kind": info.kind,
        "verbs": sorted(info.verbs),
    }
    return {**resource, **_names(info)}


def _names(info: KindInfo) -> Object:
    """Short names and categories, absent rather than empty."""
    names = {"shortNames": list(info.short_names), "categories": list(info.categories)}
    return {key: value for key, value in names.items() if value}


def _legacy_subresource(info: KindInfo, name: str) -> Object:
    group, version, kind = _subresource_kind(info, name)
    entry: Object = {
        "name": f"{info.resource.plural}/{name}",
        "singularName": "",
        "namespaced": info.resource.namespaced,
        "kind": kind,
        "verbs": list(_subresource(name).verbs),
    }
    if (group, version) != (info.resource.group, info.resource.version):
        entry |= {"group": group, "version": version}
    return entry


def _subresource(name: str) -> Subresource:
    return SUBRESOURCES.get(name, Subresource(_CONNECT))


def _subresource_kind(info: KindInfo, name: str) -> tuple[str, str, str]:
    subresource = _subresource(name)
    if name == "proxy":
        return "", "v1", f"{info.kind}ProxyOptions"
    if subresource.kind:
        return subresource.group, subresource.version, subresource.kind
    return info.resource.group, info.resource.version, info.kind


# --- aggregated documents ---


def aggregated(registry: Registry, *, core: bool, version: str = "v2") -> Object:
    """All groups of `/api` (core) or of `/apis` with everything in them: one request instead of one per version."""
    items = [
        {
            "metadata": {"name": name},
            "versions": [
                {
                    "version": group_version,
                    "resources": [_aggregated_resource(info) for info in sorted(versions[group_version], key=_plural)],
                    "freshness": "Current",
                }
                for group_version in sorted(versions, key=version_priority)
            ],
        }
        for name, versions in sorted(registry.group_versions().items())
        if (name == "") is core
    ]
    api_version = f"apidiscovery.k8s.io/{version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _aggregated_resource(info: KindInfo) -> Object:
    resource = info.resource
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, info.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": sorted(info.verbs),
        **_names(info),
    }
    if info.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(*_subresource_kind(info, name)),
                "verbs": list(_subresource(name).verbs),
            }
            for name in sorted(info.subresources)
        ]
    return entry


def _kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}
