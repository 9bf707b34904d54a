"""Keeps a `Cache` equal to one collection of the API, and reports to handlers what changed.

List once, then watch from there. A watch that breaks is resumed where it stopped; a version that is gone (410) leads to
a new list, whose difference to the cache is reported as ordinary changes, deletions that were missed included. Handlers
therefore see every object's last state, in order, but not every state in between.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping

from paddlecloud.kube.backoff import Backoff
from paddlecloud.kube.cache import Cache, Change, Indexer
from paddlecloud.kube.client import Client, ObjectList, WatchEvent
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import ApiError, Expired, Gone, NotFound
from paddlecloud.kube.resource import Object, Resource, key_of

log = logging.getLogger(__name__)

Handler = Callable[[Object | None, Object | None], None]
"""(old, new): old is None for a new object, new is None for a deleted one. Called in the event loop; must not block."""

Transform = Callable[[Object], Object]

PAGE = 500
BURST = 100  # events taken in one go before other tasks get their turn
ABSENT = 5.0  # how long an optional kind may be served before we notice; asking costs next to nothing
SHORT_WATCH = 1.0  # a watch that ends sooner counts as a failure, or a broken server would be hammered


def drop_managed_fields(obj: Object) -> Object:
    """Field ownership can be half of an object and no controller reads it."""
    obj["metadata"].pop("managedFields", None)
    return obj


class Informer:
    """`run` works until cancelled and survives every error of the server; `wait_synced` returns after the first list.

    `transform` sees each object before it is cached and may change it in place: it is ours alone at that moment.
    An `optional` kind counts as empty, and as synced, while the server does not serve it (its CRD is not installed).
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        indexers: Mapping[str, Indexer] | None = None,
        transform: Transform = drop_managed_fields,
        optional: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        self.cache = Cache(indexers)
        self.restarts = 0  # lists after the first one
        self.failure: Exception | None = None  # of the last attempt; None while all is well
        self._client = client
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._transform = transform
        self._optional = optional
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, keeps no secret
        self._handlers: list[Handler] = []
        self._version: str | None = None  # where to resume; None asks for a list
        self._synced = asyncio.Event()

    def on_change(self, handler: Handler) -> None:
        """Call `handler` for every change from now on; first for all that is cached already, as if just created."""
        self._handlers.append(handler)
        for obj in self.cache.list():
            self._notify(handler, Change(None, obj))

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    @property
    def missing(self) -> str:
        """The collection that is not listed and why: one word, since readers of it have no rights."""
        what = f"{self.resource.plural} to be listed"
        if self.failure is None:
            return what
        return f"{what} ({getattr(self.failure, 'reason', type(self.failure).__name__)})"

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        backoff = Backoff(self._rng)
        while True:
            started = self._clock.monotonic()
            resuming = self._version is not None
            try:
                if not resuming:
                    await self._list()
                await self._watch(backoff)
                if self._clock.monotonic() - started >= SHORT_WATCH:
                    backoff.reset()
                    continue  # the server ended it as agreed
                failure: Exception = RuntimeError("the watch ended at once")
            except (Expired, Gone, NotFound) as error:
                self._version = None
                if resuming:
                    continue  # what we missed should not wait; only a list that is stale at once is worth a pause
                if self._optional and isinstance(error, NotFound):
                    await self._clock.sleep(ABSENT)
                    continue
                failure = error
            except ApiError as error:
                failure = error
            except Exception as error:  # a malformed answer must not end the informer: nobody would notice
                log.exception("informer of %s failed", self.resource.plural)
                self._version = None
                failure = error
            self.failure = failure
            reason = failure.message if isinstance(failure, ApiError) else str(failure)
            wait = backoff.next()
            log.warning("informer of %s tries again in %.1f s: %s", self.resource.plural, wait, reason)
            await self._clock.sleep(wait)

    async def _list(self) -> None:
        try:
            listed = await self._fetch()
        except NotFound:
            if self._optional:
                await self._replace(ObjectList([], ""))
            raise
        await self._replace(listed)
        self._version = listed.resource_version

    async def _fetch(self) -> ObjectList:
        listed = await self._client.list(
            self.resource,
            self.namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            limit=PAGE,
        )
        return ObjectList([self._transformed(item) for item in listed.items], listed.resource_version)

    async def _replace(self, listed: ObjectList) -> None:
        if self.synced:
            self.restarts += 1
        for count, change in enumerate(self.cache.replace(*listed), start=1):
            self._tell_all(change)
            if count % BURST == 0:
                await asyncio.sleep(0)
        self.failure = None
        self._synced.set()

    async def _watch(self, backoff: Backoff) -> None:
        events = self._client.watch(
            self.resource,
            self.namespace,
            resource_version=self._version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout=self._rng.randint(300, 600),  # spread, so that not all watches of a fleet end together
        )
        count = 0
        try:
            async for event in events:
                backoff.reset()
                self._take(event)
                count += 1
                if count % BURST == 0:
                    await asyncio.sleep(0)
        finally:
            await events.aclose()

    def _take(self, event: WatchEvent) -> None:
        version = event.object["metadata"]["resourceVersion"]
        if event.type == "BOOKMARK":
            self.cache.bookmark(version)
            self._advance(version)
            return
        obj = self._transformed(event.object)
        change = self.cache.remove(obj) if event.type == "DELETED" else self.cache.upsert(obj)
        self._advance(version)
        if change is not None:
            self._tell_all(change)

    def _transformed(self, obj: Object) -> Object:
        """As it is where `transform` cannot read it: one object must not keep the others from being seen."""
        try:
            return self._transform(obj)
        except Exception as error:
            log.warning("%s %s is kept as it is: %r", obj.get("kind"), key_of(obj), error)
            return obj

    def _advance(self, version: str) -> None:
        """Resume from the newest version seen: a late event must not move the resume point back."""
        if self._version and self._version.isdecimal() and version.isdecimal():
            version = max(self._version, version, key=int)
        self._version = version

    def _tell_all(self, change: Change) -> None:
        for handler in self._handlers:
            self._notify(handler, change)

    def _notify(self, handler: Handler, change: Change) -> None:
        try:
            handler(change.old, change.new)
        except Exception:  # one handler's mistake must not cost the others their events
            log.exception("a handler of %s failed", self.resource.plural)
