"""What the controllers of this project share: a client and a clock, events and expectations, caches that run with them.

An operator declares its caches with `informer`, tells `controller` what each of them wakes, and implements `reconcile`.
What it decides is not here: that is the `decide` of each kind.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.controller import Controller, Hooks
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.expectations import Expectations
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import Key, Resource


class Operator(ABC):
    """`run` works until cancelled. `component` is who speaks in events; without a namespace it serves all of them."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        component: str,
        namespace: str | None,
        clock: Clock | None,
        workers: int,
        hooks: Hooks | None,
        backoff_cap: float = 60.0,
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._namespace = namespace
        self._recorder = EventRecorder(client, component=component, clock=self._clock)
        self._expectations = Expectations(clock=self._clock)
        self.informers: list[Informer] = []
        self.controller = Controller(
            name, self.reconcile, clock=self._clock, workers=workers, hooks=hooks, backoff_cap=backoff_cap
        )

    def informer(self, resource: Resource, *, everywhere: bool = False, **options: Any) -> Informer:
        """A cache of what is in the operator's namespace, or everywhere; it runs as long as the operator does."""
        namespace = None if everywhere else self._namespace
        informer = Informer(self._client, resource, namespace=namespace, clock=self._clock, **options)
        self.informers.append(informer)
        return informer

    @abstractmethod
    async def reconcile(self, key: Key) -> float | None:
        """Look at one object and do what is due; returns the seconds until it wants to be looked at again."""

    async def run(self) -> None:
        caches = [asyncio.ensure_future(informer.run()) for informer in self.informers]
        try:
            await self.controller.run()
        finally:
            for task in caches:
                task.cancel()
            await asyncio.gather(*caches, return_exceptions=True)
