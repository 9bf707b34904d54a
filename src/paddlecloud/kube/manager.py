"""Runs the parts of a controller process together: shared informers, controllers, election, health.

Informers run in every replica, so that a new leader decides on a warm cache; controllers run only while leading. If any
part ends that should not have, everything is stopped and the error raised: a half-dead controller is worse than none.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from paddlecloud.kube.cache import Indexer
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.controller import Controller, Reconcile
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.lease import Elector
from paddlecloud.kube.metrics import ControllerMetrics, Labels, Registry
from paddlecloud.kube.resource import Resource

log = logging.getLogger(__name__)

Service = Callable[[], Awaitable[None]]
InformerKey = tuple[Resource, str | None, str | None, str | None]


class Manager:
    """Declare informers and controllers, then `run` until cancelled; or `start` and `stop` from other code.

    Both may also be declared while running: they start at once.
    """

    def __init__(
        self,
        client: Client,
        *,
        elector: Elector | None = None,
        metrics: Registry | None = None,
        health: tuple[str, int] | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.client = client
        self.metrics = metrics or Registry()
        self.health_address: tuple[str, int] | None = None  # where the health server listens, once it does
        self._elector = elector
        self._health = health
        self._clock = clock or SystemClock()
        self._rng = rng
        self.hooks = ControllerMetrics(self.metrics)
        self._informers: dict[InformerKey, Informer] = {}
        self._controllers: list[Controller] = []
        self._services: list[tuple[str, Service]] = []
        self._tending: set[asyncio.Task[None]] = set()  # informers
        self._working: set[asyncio.Task[None]] = set()  # controllers and services: only while leading
        self._failed: asyncio.Future[None] | None = None  # resolved by the first part that ends by itself
        self._began = asyncio.Event()
        self._leading = False
        self._background: asyncio.Task[None] | None = None
        self._register_metrics()

    def informer(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        indexers: Mapping[str, Indexer] | None = None,
        optional: bool = False,
    ) -> Informer:
        """The informer of that collection, shared by all who ask for the same; indexes are added to what it has."""
        key = (resource, namespace, label_selector, field_selector)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(
                self.client,
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                optional=optional,
                clock=self._clock,
                rng=self._rng,
            )
            self._informers[key] = informer
            if self._began.is_set():
                self._launch(self._tending, f"informer of {resource.plural}", informer.run)
        for name, indexer in (indexers or {}).items():
            informer.cache.add_index(name, indexer)
        return informer

    def controller(self, name: str, reconcile: Reconcile, *, workers: int = 4) -> Controller:
        """A new controller with this manager's clock and metrics."""
        controller = Controller(name, reconcile, clock=self._clock, workers=workers, hooks=self.hooks)
        self.add(controller)
        return controller

    def add(self, controller: Controller) -> None:
        self._controllers.append(controller)
        if self._leading:
            self._launch(self._working, f"controller {controller.name}", controller.run)

    def add_service(self, name: str, service: Service) -> None:
        """Anything else that runs while leading, such as an endpoint that pods report to."""
        self._services.append((name, service))
        if self._leading:
            self._launch(self._working, name, service)

    def not_ready(self) -> list[str]:
        """What a caller of /readyz waits for; a replica that does not lead is ready when its caches are."""
        if not self._began.is_set():
            return ["the manager to start"]
        own = [informer.missing for informer in self._informers.values() if not informer.synced]
        return own + [f"{name}: {what}" for name, missing in self.hooks.missing.items() for what in missing]

    async def wait_ready(self) -> None:
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    async def run(self) -> None:
        """Work until cancelled, or until a part fails, whose error is raised. A manager runs once."""
        self._failed = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as stack:
            if self._health is not None:
                from paddlecloud.kube.server.health import serve

                serving = serve(*self._health, not_ready=self.not_ready, registry=self.metrics)
                self.health_address = await stack.enter_async_context(serving)
            leading: set[asyncio.Task[None]] = set()
            try:
                for informer in self._informers.values():
                    self._launch(self._tending, f"informer of {informer.resource.plural}", informer.run)
                elector = self._elector
                lead = self._lead if elector is None else lambda: elector.run(self._lead)
                self._launch(leading, "leadership", lead)
                self._began.set()
                await self._failed
            finally:
                self._failed.cancel()  # from here on parts end because they are cancelled
                await _end(leading)  # drains the controllers and gives the lease back while caches still follow
                await _end(self._tending)

    async def start(self) -> None:
        """Run in the background; returns when every cache is filled."""
        self._background = asyncio.ensure_future(self.run())
        ready = asyncio.ensure_future(self._until_ready())
        try:
            await asyncio.wait({self._background, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._background.done():
            self._background.result()

    async def stop(self) -> None:
        """End what `start` began. An error that ended it before is raised here."""
        if self._background is None:
            return
        task, self._background = self._background, None
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def __aenter__(self) -> Manager:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _until_ready(self) -> None:
        await self._began.wait()
        await self.wait_ready()

    async def _lead(self) -> None:
        """Run everything that only a leader may, until cancelled."""
        self._leading = True
        try:
            for controller in self._controllers:
                self._launch(self._working, f"controller {controller.name}", controller.run)
            for name, service in self._services:
                self._launch(self._working, name, service)
            await asyncio.Event().wait()
        finally:
            self._leading = False
            await _end(self._working)

    def _launch(self, group: set[asyncio.Task[None]], what: str, service: Service) -> None:
        async def serve() -> None:
            await service()
            raise RuntimeError(f"{what} ended by itself")

        task = asyncio.get_running_loop().create_task(serve(), name=what)
        group.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        log.error("%s failed: %s", task.get_name(), error)
        if error is not None and self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    def _register_metrics(self) -> None:
        def by_resource(measure: Callable[[Informer], float]) -> Callable[[], Mapping[Labels, float]]:
            return lambda: {(i.resource.plural,): measure(i) for i in self._informers.values()}

        gauge, labels = self.metrics.gauge, ("resource",)
        gauge("paddlecloud_cached_objects", "Objects held", labels, source=by_resource(lambda i: len(i.cache)))
        gauge(
            "paddlecloud_relists", "Lists made again after the first", labels, source=by_resource(lambda i: i.restarts)
        )
        elector = self._elector
        if elector is not None:
            gauge("paddlecloud_leader", "1 while this replica leads", source=lambda: {(): float(elector.is_leader)})


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
    tasks.difference_update(ending)
