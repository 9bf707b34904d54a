"""What one page reads: objects of the shared watches that its viewer may see, with a record of what was read.

There is no other way from the watches to a page. By the record a page is drawn anew when something of it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from paddlecloud.kube.resource import PADDLEJOBS, Key, Object, Resource
from paddlecloud.ui.curves import Series
from paddlecloud.ui.feed import Collection, Dependency, Feed, Measure, Totals, explain_failure
from paddlecloud.ui.rights import Rights

T = TypeVar("T")


class Reader:
    def __init__(self, feed: Feed, rights: Rights) -> None:
        self._feed, self._rights = feed, rights
        self.reads: set[Dependency] = set()
        self.problems: dict[str, str] = {}
        """Kind → why it is missing on the page, or is not complete."""

    async def objects(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Of one namespace, or of all in which the viewer may list the kind."""
        found = await self._collection(resource)
        self.reads.add(Dependency(resource.full_name, namespace))
        if namespace:
            return found.objects(namespace) if await self._rights.sees(resource, namespace) else []
        objects = found.objects()
        allowed = await self._allowed(resource, (obj["metadata"].get("namespace", "") for obj in objects))
        return [obj for obj in objects if allowed is None or obj["metadata"].get("namespace") in allowed]

    async def rows(self, resource: Resource, derive: Callable[[Object], T]) -> list[tuple[Key, T]]:
        """What `derive` makes of each object that the viewer may see, made once for all pages."""
        rows = (await self._collection(resource)).rows(derive).all()
        self.reads.add(Dependency(resource.full_name))
        allowed = await self._allowed(resource, (key.namespace for key, _ in rows))
        return rows if allowed is None else [row for row in rows if row[0].namespace in allowed]

    async def totals(self, resource: Resource, measure: Measure) -> Totals | None:
        """Sums over all objects of a kind; None for a viewer who may not list all of them."""
        self.reads.add(Dependency(resource.full_name))
        if not await self._rights.may("list", resource):
            return None
        return (await self._collection(resource)).totals(measure)

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """None for what is not there, and for what the viewer may not see."""
        found = await self._collection(resource)
        self.reads.add(Dependency(resource.full_name, namespace, name))
        if await self._rights.sees(resource, namespace) or await self._rights.may("get", resource, namespace, name):
            return found.get(namespace, name)
        return None

    async def by_index(self, resource: Resource, index: str, value: str) -> list[Object]:
        """Objects under a value of one of `feed.INDEXES`."""
        found = (await self._collection(resource)).by_index(index, value)
        self.reads.add(Dependency(resource.full_name, indexed_by=index, value=value))
        allowed = await self._allowed(resource, (obj["metadata"].get("namespace", "") for obj in found))
        return [obj for obj in found if allowed is None or obj["metadata"].get("namespace") in allowed]

    async def reported(self, job: Object) -> Series:
        """What a job, which was read, has reported of its progress."""
        return (await self._collection(PADDLEJOBS)).history().of(job)

    async def sees_all(self, resource: Resource) -> bool:
        """Whether the viewer may list a kind in all namespaces."""
        return await self._rights.may("list", resource)

    async def sees(self, resource: Resource, namespace: str) -> bool:
        """Whether the viewer may list a kind in a namespace."""
        return await self._rights.sees(resource, namespace)

    async def may(self, verb: str, resource: Resource, namespace: str = "", name: str = "") -> bool:
        return await self._rights.may(verb, resource, namespace, name)

    async def server_version(self) -> Object:
        return await self._feed.version()

    async def _allowed(self, resource: Resource, namespaces: Iterable[str]) -> frozenset[str] | None:
        if not resource.namespaced:
            return None if await self._rights.may("list", resource) else frozenset()
        return await self._rights.among(resource, {*namespaces})

    async def _collection(self, resource: Resource) -> Collection:
        found = await self._feed.collection(resource)
        if found.failure is not None:
            self.problems[resource.kind] = explain_failure(found.failure)
        elif not found.synced:
            self.problems[resource.kind] = "still being read"
        return found
