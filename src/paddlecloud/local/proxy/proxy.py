"""Keeps the proxy's listeners equal to what Services and their EndpointSlices ask for."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from typing import NamedTuple

from paddlecloud.kube import descriptors
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import ENDPOINTSLICES, SERVICES, Key, Object
from paddlecloud.local import lowports
from paddlecloud.local.proxy.connections import DESCRIPTORS, Connections
from paddlecloud.local.proxy.listener import Listener
from paddlecloud.local.proxy.routes import SocketAddress, routes_of, unsupported
from paddlecloud.local.workloads.endpoint_controller import by_service, service_of
from paddlecloud.local.workloads.endpoints import SERVICE_LABEL

RETRY = 2.0
RETRY_FULL = 30.0
"""Seconds until a Service that has as many addresses as it may, or finds them all in use, tries again."""
_HINTS = {errno.EADDRINUSE: "another program listens there"}


class Note(NamedTuple):
    """Events about a Service."""

    reason: str
    type: str


UNAVAILABLE, MOVED = Note("PortUnavailable", "Warning"), Note("PortMoved", "Normal")


class ServiceProxy:
    """Adds its controller to a manager; `close` ends all that it listens on.

    Each address is a descriptor of the control plane, and a Service may have thousands of ports: all Services together
    have half of the descriptors, those of one namespace half of that, one Service a quarter. Connections through them
    have another quarter of the descriptors, those of one namespace half of it.
    """

    def __init__(self, manager: Manager, clock: Clock) -> None:
        self._clock = clock
        self._recorder = EventRecorder(manager.client, component="service-proxy", clock=clock)
        self._services = manager.informer(SERVICES)
        self._slices = manager.informer(ENDPOINTSLICES, label_selector=SERVICE_LABEL, indexers={"service": by_service})
        self._listeners: dict[SocketAddress, tuple[Key, Listener]] = {}
        self._most = descriptors.share(one_of=2)
        self._most_of_one = self._most // 4
        self._connections = Connections(descriptors.share(one_of=4) // DESCRIPTORS)
        self._recorded: dict[Key, set[str]] = {}
        self._progress = asyncio.Event()
        # One worker: an address that moves from one Service to another must be let go before it is taken.
        controller = manager.controller("service-proxy", self._reconcile, workers=1)
        controller.watch(self._services)
        controller.watch(self._slices, map=service_of)

    @property
    def addresses(self) -> list[SocketAddress]:
        return sorted(self._listeners)

    async def wait_listening(self) -> None:
        """Until the Services that there are have been gone through once: their addresses take connections."""
        await asyncio.gather(self._services.wait_synced(), self._slices.wait_synced())
        while any(key not in self._recorded for key in self._services.cache):
            self._progress.clear()
            await self._progress.wait()

    async def close(self) -> None:
        await asyncio.gather(*(listener.abort() for _, listener in self._listeners.values()))
        self._listeners.clear()

    async def _reconcile(self, key: Key) -> float | None:
        service = self._services.cache.get(key)
        routes = routes_of(service, self._slices.cache.by_index("service", str(key))) if service else {}
        for address in [a for a, (owner, _) in self._listeners.items() if owner == key and a not in routes]:
            await self._listeners.pop(address)[1].close()
        if service is None:
            self._recorded.pop(key, None)
            self._progress.set()
            return None
        notes = dict.fromkeys(unsupported(service), UNAVAILABLE)
        retry = None
        mine = sum(owner == key for owner, _ in self._listeners.values())
        ours = sum(owner.namespace == key.namespace for owner, _ in self._listeners.values())
        for address, route in routes.items():
            held = self._listeners.get(address)
            if held is not None and held[0] == key:
                held[1].update(route)
                continue
            if mine >= self._most_of_one or ours >= self._most // 2 or len(self._listeners) >= self._most:
                notes[self._full()] = UNAVAILABLE
                retry = RETRY_FULL
                continue
            listener = Listener(address, route, self._clock, partial(self._connections.place, key.namespace))
            try:
                await listener.open()
            except OSError as error:
                why = _HINTS.get(error.errno or 0, error.strerror or str(error))
                notes[f"cannot listen on {address}: {why}"] = UNAVAILABLE
                retry = RETRY
                continue
            self._listeners[address] = (key, listener)
            mine, ours = mine + 1, ours + 1
        notes |= {text: MOVED for address in routes if (text := _moved(address))}
        await self._record(key, service, notes)
        self._progress.set()
        return retry

    def _full(self) -> str:
        return (
            f"some ports are not served: this machine listens on at most {self._most_of_one} addresses for one "
            f"Service, {self._most // 2} for one namespace and {self._most} for all; have fewer ports, or a higher "
            "limit of open files (ulimit -n) for pdc up"
        )

    async def _record(self, key: Key, service: Object, notes: dict[str, Note]) -> None:
        """Each once, until it has gone and come back; an Event that could not be written is tried again."""
        recorded = self._recorded[key] = self._recorded.get(key, set()) & set(notes)
        for text in sorted(set(notes) - recorded):
            if await self._recorder.record(service, notes[text].reason, text, type=notes[text].type):
                recorded.add(text)


def _moved(address: SocketAddress) -> str:
    port = lowports.used_for(*address)
    if port == address.port:
        return ""
    return f"outside of pods {address} is reached at port {port}: low ports need root, or {lowports.FIX}"
