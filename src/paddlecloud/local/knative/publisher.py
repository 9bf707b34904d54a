"""Keeps the gateways' table true: one controller publishes routes, another revisions and their pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from paddlecloud.kube.informer import Informer
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import Key, Object, key_of
from paddlecloud.local.knative.gateway.table import REVISION
from paddlecloud.local.knative.revision import uses_h2c
from paddlecloud.local.knative.routing import (
    OF_REVISION,
    Entries,
    labels_of,
    path_of,
    revision_entry,
    revision_keys,
    revisions_of,
    route_entries,
)
from paddlecloud.local.knative.supervisor import Gateways

SOON = 0.1
"""Seconds after which a revision looks again whether the first route has had the gateways started."""


class TablePublisher:
    """`asleep` is called for revisions without pods, `gone` with the path of one that was deleted.

    `envoy` is the program for HTTP/2, if there is one; the first revision that uses it has it started.
    """

    def __init__(
        self,
        manager: Manager,
        gateways: Gateways,
        *,
        routes: Informer,
        revisions: Informer,
        pods: Informer,
        envoy: str | None,
        asleep: Callable[[Object], None],
        gone: Callable[[str], None],
    ) -> None:
        self._gateways = gateways
        self._routes, self._revisions, self._pods = routes, revisions, pods
        self._envoy = envoy
        self._asleep = asleep
        self._gone = gone
        self._published: dict[Key, Entries] = {}
        self._versions: dict[Key, int] = {}
        """Of the table since which a route has its present entries, and since which a revision is in it."""
        self._labels: dict[Key, set[str]] = {}
        """Of the hosts that a route has had, each with a port that is released when the route has it no longer."""
        manager.controller("gateway-routes", self._publish_route, workers=1).watch(routes)
        self._controller = manager.controller("gateway-pods", self._publish_revision, workers=1)
        self._controller.watch(revisions)
        self._controller.watch(pods, map=revision_keys)

    def look_again(self) -> None:
        """The gateways' table of pods may change now."""
        for key in self._revisions.cache:
            self._controller.queue.add(key)

    def follows(self, route: Object, port: int) -> bool:
        """Whether all gateways on `port` route by the route's present status."""
        key, entries = key_of(route), self._entries_of(route)
        led_to = {revision for targets in entries.values() for revision, _ in targets}
        places = [key, *(_place(Key(*path.split("/", 1))) for path in led_to)]
        if self._published.get(key) != entries or not all(self._published.get(place) for place in places[1:]):
            return False
        return self._gateways.has(max(self._versions.get(place, 0) for place in places), port)

    async def _publish_route(self, key: Key) -> float | None:
        found = self._routes.cache.get(key)
        if found is not None:
            await asyncio.gather(self._revisions.wait_synced(), self._pods.wait_synced())
            await self._gateways.ensure(self._publish_everything)
        self._replace(key, self._entries_of(found) if found else {})
        self._release_ports(key, found)
        return None

    def _release_ports(self, key: Key, route: Object | None) -> None:
        """Those of tags that the route no longer has, or of all that it had."""
        kept = {f"{key.namespace}/{label}" for label in labels_of(route)} if route else set()
        self._gateways.release_ports(self._labels.get(key, set()) - kept)
        if kept:
            self._labels[key] = kept
        else:
            self._labels.pop(key, None)

    async def _publish_revision(self, key: Key) -> float | None:
        found = self._revisions.cache.get(key)
        if found is None:
            self._replace(_place(key), {})
            self._gone(path_of(key))
            return None
        if self._gateways.port is None:
            return SOON
        self._replace(_place(key), self._entry_of(found))
        if self._envoy is not None and uses_h2c(found):
            self._gateways.ensure_h2c(self._envoy)
        if not self._pods.cache.by_index(OF_REVISION, path_of(key)):
            self._asleep(found)
        return None

    def _publish_everything(self) -> None:
        labels = set()
        for led in self._routes.cache.list():
            self._replace(key_of(led), self._entries_of(led))
            labels |= {f"{led['metadata']['namespace']}/{label}" for label in labels_of(led)}
        self._gateways.release_ports(self._gateways.ports.keys() - labels)  # deleted while no control plane ran
        for found in self._revisions.cache.list():
            self._replace(_place(key_of(found)), self._entry_of(found))

    def _entries_of(self, route: Object) -> Entries:
        led_to = [self._revisions.cache.get(Key(*path.split("/", 1))) for path in revisions_of(route)]
        if not (route.get("status") or {}).get("traffic") and None in led_to:
            return {}  # which gateway has its port depends on the protocol of the revision
        h2c = self._envoy is not None and any(found is not None and uses_h2c(found) for found in led_to)
        return route_entries(route, self._gateways.ports, h2c=h2c)

    def _entry_of(self, found: Object) -> Entries:
        pods = self._pods.cache.by_index(OF_REVISION, path_of(key_of(found)))
        return revision_entry(found, pods, self._gateways.slots)

    def _replace(self, place: Key, entries: Entries) -> None:
        before = self._published.get(place, {})
        version = self._gateways.publish({**dict.fromkeys(before), **entries})
        self._published[place] = entries
        if _without_pods(before) != _without_pods(entries):
            self._versions[place] = version


def _without_pods(entries: Entries) -> Entries:
    """What routes depend on: a request waits in the gateway for the pods of a revision that has an entry."""
    return {name: None if name.startswith(REVISION) else value for name, value in entries.items()}


def _place(revision: Key) -> Key:
    """Under which a revision's entry is kept: a route may have the same name."""
    return Key(f"revision {revision.namespace}", revision.name)
