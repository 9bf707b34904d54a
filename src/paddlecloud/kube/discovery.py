"""What a server serves, and how people's names for it (`pdj`, `deploy`, `PaddleJob`, `pods.v1.`) are resolved.

Two requests where the server has aggregated discovery (Kubernetes 1.26 and later), one per group version where it
does not. A group whose own server is down is left out: its absence must not hide all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from paddlecloud.kube.errors import ApiError, NotFound, ServiceUnavailable
from paddlecloud.kube.nearest import nearest, question
from paddlecloud.kube.resource import Resource

if TYPE_CHECKING:
    from paddlecloud.kube.client import Client

AGGREGATED = ",".join(
    [f"application/json;g=apidiscovery.k8s.io;v={v};as=APIGroupDiscoveryList" for v in ("v2", "v2beta1")]
    + ["application/json"]
)


class UnknownKind(ApiError):
    """No collection of that name is served."""

    code, reason = 404, "UnknownKind"


class Entry(NamedTuple):
    """One collection with what discovery says about it beyond its address."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    def rank(self, name: str) -> int | None:
        """How well a lower-case name fits: 0 is best, None not at all."""
        names = ((self.resource.plural,), (self.singular,), (self.resource.kind.lower(),), self.short_names)
        return next((rank for rank, known in enumerate(names) if name in known), None)


class Discovery:
    """`entries` keep the server's order, core group first and each group's preferred version first; both break ties."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = list(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def find(self, name: str) -> Resource:
        return self.entry(name).resource

    def entry(self, name: str) -> Entry:
        """By plural, singular, kind or short name, in any case, optionally with `.group` or `.version.group`."""
        short, _, suffix = name.strip().lower().partition(".")
        ranked = [
            (rank, index)
            for index, entry in enumerate(self.entries)
            if _in_group(entry.resource, suffix) and (rank := entry.rank(short)) is not None
        ]
        if not ranked:
            raise self._unknown(name, short)
        return self.entries[min(ranked)[1]]

    def for_kind(self, api_version: str, kind: str) -> Resource:
        """The collection of an object's own words; what `apply` needs."""
        for entry in self.entries:
            if entry.resource.kind == kind and entry.resource.api_version == api_version:
                return entry.resource
        raise UnknownKind(f'no matches for kind "{kind}" in version "{api_version}"; {self._meant(api_version, kind)}')

    def _unknown(self, name: str, short: str) -> UnknownKind:
        known = {n for e in self.entries for n in (e.resource.plural, e.singular, *e.short_names) if n}
        hint = question(short, known) or "list them with `pdc api-resources`"
        return UnknownKind(f'the server has no resource type "{name}"; {hint}', details={"kind": name})

    def _meant(self, api_version: str, kind: str) -> str:
        """What an object with a misspelt kind or apiVersion was to be."""
        served = [entry.resource for entry in self.entries]
        versions = {resource.api_version for resource in served if resource.kind == kind}
        if versions:
            found = nearest(api_version, versions) or min(versions)
            return f'did you mean apiVersion "{found}"?'
        same = {resource.kind for resource in served if resource.api_version == api_version}
        return question(kind, same or {resource.kind for resource in served}) or (
            "if it is a custom kind, install its CRD first (`pdc crds` prints those of this project)"
        )


async def fetch(client: Client) -> Discovery:
    entries: list[Entry] = []
    for root in ("/api", "/apis"):
        response = await client.raw("GET", root, accept=AGGREGATED)
        document = msgspec.json.decode(response.body)
        if document.get("kind") == "APIGroupDiscoveryList":
            entries += _aggregated(document)
        else:
            entries += await _legacy(client, document)
    return Discovery(entries)


def _aggregated(document: Mapping[str, Any]) -> Iterator[Entry]:
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            for item in version.get("resources") or ():
                kind = (item.get("responseKind") or {}).get("kind", "")
                yield Entry(
                    Resource(
                        group.get("metadata", {}).get("name") or "",
                        version["version"],
                        item["resource"],
                        kind,
                        item.get("scope") != "Cluster",
                    ),
                    item.get("singularResource") or kind.lower(),
                    tuple(item.get("shortNames") or ()),
                    tuple(item.get("categories") or ()),
                    tuple(item.get("verbs") or ()),
                    tuple(s["subresource"] for s in item.get("subresources") or ()),
                )


async def _legacy(client: Client, document: Mapping[str, Any]) -> list[Entry]:
    group_versions = [("", str(v)) for v in document.get("versions") or ()]
    for group in document.get("groups") or ():
        versions = [str(v["version"]) for v in group.get("versions") or ()]
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions.sort(key=lambda version: version != preferred)  # stable: the server's order stays behind it
        group_versions += [(str(group["name"]), version) for version in versions]
    entries: list[Entry] = []
    for group_name, version in group_versions:
        path = f"/apis/{group_name}/{version}" if group_name else f"/api/{version}"
        try:
            response = await client.raw("GET", path)
        except (NotFound, ServiceUnavailable):
            continue  # an aggregated API whose server is away, or a CRD removed since the first request
        entries += _resource_list(group_name, version, msgspec.json.decode(response.body))
    return entries


def _resource_list(group: str, version: str, document: Mapping[str, Any]) -> Iterator[Entry]:
    items = document.get("resources") or ()
    subresources: dict[str, list[str]] = {}
    for item in items:
        plural, _, subresource = item["name"].partition("/")
        if subresource:
            subresources.setdefault(plural, []).append(subresource)
    for item in items:
        plural = item["name"]
        if "/" in plural:
            continue
        yield Entry(
            Resource(group, version, plural, item["kind"], bool(item.get("namespaced"))),
            item.get("singularName") or item["kind"].lower(),
            tuple(item.get("shortNames") or ()),
            tuple(item.get("categories") or ()),
            tuple(item.get("verbs") or ()),
            tuple(subresources.get(plural, ())),
        )


def _in_group(resource: Resource, suffix: str) -> bool:
    if not suffix:
        return True
    return suffix in (resource.group, f"{resource.version}.{resource.group}")
