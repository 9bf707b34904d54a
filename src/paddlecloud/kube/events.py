"""Writes core/v1 Events: what happened to an object, for the people who look at it.

Best effort: an event that cannot be written is logged and dropped, never a reason to fail. An event that happens again
is the same object with a higher count. Its name is derived from what it says, so a restarted controller goes on
counting where its predecessor stopped.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock, rfc3339
from paddlecloud.kube.errors import AlreadyExists, ApiError, NotFound
from paddlecloud.kube.rate_limit import RateLimits
from paddlecloud.kube.resource import EVENTS, Object

log = logging.getLogger(__name__)

REMEMBERED = 4096  # events whose count is kept in memory; forgetting one costs a request, not a count
BURST = 25  # events about one object before it is slowed down
REFILL = 300.0  # seconds for one more
MESSAGE_LIMIT = 1024  # of the API


class EventRecorder:
    """`component` is the source of the events; it also keeps the events of two controllers about one object apart."""

    def __init__(self, client: Client, *, component: str, host: str = "", clock: Clock | None = None) -> None:
        self._client = client
        self._component = component
        self._host = host
        self._clock = clock or SystemClock()
        self._counts: OrderedDict[str, int] = OrderedDict()  # by event name, least recently used first
        self._last_step = 0
        self._limits: RateLimits[str] = RateLimits(self._clock, burst=BURST, rate=1 / REFILL, kept=REMEMBERED)
        """By uid of the object they are about: a controller with a fault must not fill the store with events."""

    async def record(self, about: Object, reason: str, message: str, *, type: str = "Normal") -> bool:
        """Whether it was written, for callers that report a thing once."""
        meta = about["metadata"]
        if not self._limits.take(meta.get("uid", meta["name"])):
            log.debug("too many events about %s %s: %s %s", about["kind"], meta["name"], reason, message)
            return False
        event = self._event(about, reason, message[:MESSAGE_LIMIT], type)
        try:
            await self._write(event)
        except ApiError as error:
            log.debug("event %s about %s %s was not written: %s", reason, about["kind"], meta["name"], error)
            return False
        return True

    async def step(self, about: Object, reason: str, message: str) -> bool:
        """Record one step of many, such as Scheduled or Started. Each is a separate object.

        Named by its time, as client-go does: what lists events by name lists steps in their order.
        """
        self._last_step = max(self._last_step + 1, int(self._clock.now() * 1e9))
        meta = about["metadata"]
        if not self._limits.take(meta.get("uid", meta["name"])):
            return False
        event = self._event(about, reason, message[:MESSAGE_LIMIT], "Normal")
        event["metadata"]["name"] = f"{meta['name'][:236]}.{self._last_step:x}"
        try:
            await self._client.create(EVENTS, event)
        except ApiError as error:
            log.debug("event %s about %s %s was not written: %s", reason, about["kind"], meta["name"], error)
            return False
        return True

    async def _write(self, event: Object) -> None:
        name, namespace = event["metadata"]["name"], event["metadata"]["namespace"]
        count = self._counts.get(name)
        if count is None:
            try:
                await self._client.create(EVENTS, event)
                return self._remember(name, 1)
            except AlreadyExists:
                existing = await self._client.find(EVENTS, name, namespace) or {}
                count = int(existing.get("count") or 1)
        change = {"count": count + 1, "lastTimestamp": event["lastTimestamp"]}
        try:
            await self._client.patch(EVENTS, name, change, namespace=namespace)
            self._remember(name, count + 1)
        except NotFound:  # events live for an hour; this one's predecessor has passed away
            await self._client.create(EVENTS, event)
            self._remember(name, 1)

    def _event(self, about: Object, reason: str, message: str, type: str) -> Object:
        meta = about["metadata"]
        namespace = meta.get("namespace") or "default"  # where Kubernetes keeps events about cluster-wide objects
        said = "\0".join((self._component, meta.get("uid", ""), type, reason, message))
        digest = hashlib.sha256(said.encode()).hexdigest()[:16]
        now = rfc3339(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name'][:236]}.{digest}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": meta["name"],
                **{field: meta[field] for field in ("namespace", "uid", "resourceVersion") if meta.get(field)},
            },
            "type": type,
            "reason": reason,
            "message": message,
            "source": {"component": self._component, **({"host": self._host} if self._host else {})},
            "reportingComponent": self._component,
            "reportingInstance": self._host or self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    def _remember(self, name: str, count: int) -> None:
        self._counts[name] = count
        self._counts.move_to_end(name)
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)
