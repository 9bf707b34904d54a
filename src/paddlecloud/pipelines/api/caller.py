"""On whose behalf a request is carried out: a client with the caller's credentials, and what is the same for all.

The server has no rights of its own. Every read and write is the caller's, and RBAC decides about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import msgspec

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import identifiers
from paddlecloud.pipelines.api.replies import RequestRefused

PAGE = 100
"""Objects: of each one up to 256 KiB of annotations are read."""
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")
_ANNOTATIONS = (names.DISPLAY_NAME, names.DESCRIPTION, names.DEFAULT_VERSION, names.RUN_NAME)
MAX_OBJECTS = 20_000
"""Of one kind in a namespace that a list goes through; beyond it the answer would cost memory in proportion."""
MAX_READ = 256 * 1024 * 1024
"""Bytes that one list reads, page by page."""


class Caller(NamedTuple):
    client: Client
    namespace: str
    """Where things are that name no namespace."""
    new_id: Callable[[], str]
    """A UUID."""
    suffix: Callable[[], str]
    """Five characters for names of objects, as Kubernetes generates them."""

    def shown_id(self, namespace: str, own: str) -> str:
        return identifiers.shown(namespace, own, self.namespace)

    def read_id(self, text: str, what: str) -> identifiers.Identifier:
        return identifiers.read(text, self.namespace, what)

    def namespace_named(self, text: str) -> str:
        return identifiers.namespace_named(text, self.namespace)

    async def metadata(self, resource: Resource, namespace: str, selector: str = "") -> list[Object]:
        """All objects that match, as far as their metadata: names, labels, times, and annotations that are shown."""
        found: list[Object] = []
        async for page in self.pages(resource, namespace, selector, size=PAGE, accept=METADATA_ONLY):
            found += [{"metadata": _kept(item["metadata"])} for item in page]
        return found

    async def first(self, resource: Resource, namespace: str, selector: str) -> Object | None:
        """One object that matches: labels are the users', and many large objects may have the same."""
        answer = await self.client.raw("GET", resource.path(namespace), query={"limit": "1", "labelSelector": selector})
        items = (await asyncio.to_thread(_decoded, answer.body)).get("items") or ()
        return {"apiVersion": resource.api_version, "kind": resource.kind, **items[0]} if items else None

    async def pages(
        self, resource: Resource, namespace: str, selector: str, *, size: int, accept: str = "application/json"
    ) -> AsyncIterator[list[Object]]:
        """One page of objects after the other; only the caller keeps anything of them."""
        query = {"limit": str(size), **({"labelSelector": selector} if selector else {})}
        objects = read = 0
        while True:
            answer = await self.client.raw("GET", resource.path(namespace), query=query, accept=accept)
            body = await asyncio.to_thread(_decoded, answer.body)
            items = body.get("items") or []
            objects, read = objects + len(items), read + len(answer.body)
            if objects > MAX_OBJECTS or read > MAX_READ:
                raise RequestRefused(
                    400,
                    f"namespace {namespace} has more than {MAX_OBJECTS} {resource.plural}, or more than "
                    f"{MAX_READ >> 20} MiB of them; delete some",
                )
            yield items
            more = (body.get("metadata") or {}).get("continue")
            if not more:
                return
            query["continue"] = more


def _kept(meta: Object) -> Object:
    """What lists are made of: users may write a quarter of a megabyte to annotations of each object."""
    annotations = meta.get("annotations") or {}
    made = {key: meta[key] for key in _FIELDS if key in meta}
    return {**made, "annotations": {key: annotations[key] for key in _ANNOTATIONS if key in annotations}}


def _decoded(body: bytes) -> Object:
    """In a thread: a page may have megabytes."""
    found: Object = msgspec.json.decode(body)
    return found
