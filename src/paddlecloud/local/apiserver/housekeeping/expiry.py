"""Events expire: those not repeated for an hour are deleted, as by kube-apiserver (`--event-ttl`, 1h by default)."""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, parse_rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.apiserver.objects.verbs import DeleteOptions, Verbs
from paddlecloud.local.apiserver.registry import Registry
from paddlecloud.local.store.store import Store

KEEP = 3600.0
EVERY = 60.0


def last_seen(event: Object, now: float) -> float:
    """When an event last happened, by whichever of its many timestamps is filled in.

    Its author writes all of them but the time of creation. One that lies in the future does not keep the event.
    """
    series = event.get("series") or {}
    for text in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        if text and (seen := parse_rfc3339(text)) <= now:
            return seen
    return parse_rfc3339(event["metadata"]["creationTimestamp"])


class EventExpiry:
    def __init__(self, store: Store, registry: Registry, verbs: Verbs, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._verbs = verbs
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(EVERY)
            await self.sweep()

    async def sweep(self) -> None:
        kind = self._registry.find("", "v1", "events")
        assert kind is not None, "events are always served"
        now = self._clock.now()
        slice_ = TimeSlice()
        for record in self._store.list("/events"):
            await slice_.checkpoint()
            if last_seen(record.object, now) >= now - KEEP:
                continue
            try:
                await self._verbs.delete(kind, record.address.namespace, record.address.name, DeleteOptions())
            except errors.ApiError:
                continue  # gone already, or the disk is full: the next sweep sees
