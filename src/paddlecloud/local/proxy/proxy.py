"""Keeps the proxy's listeners equal to what Services and their EndpointSlices ask for."""

from __future__ import annotations

import asyncio
import errno

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import SERVICES, Key, Object
from paddlecloud.local.proxy.listener import Listener
from paddlecloud.local.proxy.routes import Address, routes_of, unsupported
from paddlecloud.local.workloads.endpoint_controller import by_service, service_of
from paddlecloud.local.workloads.endpoints import SERVICE_LABEL, SLICES

RETRY = 2.0
_HINTS = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "ports below 1024 need root, or `sysctl -w net.ipv4.ip_unprivileged_port_start=0`",
}


class ServiceProxy:
    """Adds its controller to a manager; `close` ends all that it listens on."""

    def __init__(self, manager: Manager, clock: Clock) -> None:
        self._clock = clock
        self._recorder = EventRecorder(manager.client, component="service-proxy", clock=clock)
        self._services = manager.informer(SERVICES)
        self._slices = manager.informer(SLICES, label_selector=SERVICE_LABEL, indexers={"service": by_service})
        self._listeners: dict[Address, tuple[Key, Listener]] = {}
        self._told: dict[Key, set[str]] = {}
        # One worker: an address that moves from one Service to another must be let go before it is taken.
        controller = manager.controller("service-proxy", self._reconcile, workers=1)
        controller.watch(self._services)
        controller.watch(self._slices, map=service_of)

    @property
    def addresses(self) -> list[Address]:
        return sorted(self._listeners)

    async def close(self) -> None:
        await asyncio.gather(*(listener.abort() for _, listener in self._listeners.values()))
        self._listeners.clear()

    async def _reconcile(self, key: Key) -> float | None:
        service = self._services.cache.get(key)
        routes = routes_of(service, self._slices.cache.by_index("service", str(key))) if service else {}
        for address in [a for a, (owner, _) in self._listeners.items() if owner == key and a not in routes]:
            await self._listeners.pop(address)[1].close()
        if service is None:
            self._told.pop(key, None)
            return None
        problems = set(unsupported(service))
        retry = None
        for address, route in routes.items():
            held = self._listeners.get(address)
            if held is not None and held[0] == key:
                held[1].update(route)
                continue
            listener = Listener(address, route, self._clock)
            try:
                await listener.open()
            except OSError as error:
                why = _HINTS.get(error.errno or 0, error.strerror or str(error))
                problems.add(f"cannot listen on {address}: {why}")
                retry = RETRY
                continue
            self._listeners[address] = (key, listener)
        await self._tell(key, service, problems)
        return retry

    async def _tell(self, key: Key, service: Object, problems: set[str]) -> None:
        """Each problem once, until it has gone and come back."""
        for text in sorted(problems - self._told.get(key, set())):
            await self._recorder.record(service, "PortUnavailable", text, type="Warning")
        self._told[key] = problems
