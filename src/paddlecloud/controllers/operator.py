"""A reconciler of this project with its own caches: it runs by itself, in a process or beside the embedded platform.

A kind declares its caches with `informer`, says with `controller.watch` which objects each of them requeues, and
implements `kube.reconciler.Reconciler`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Controller, Hooks
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.reconciler import P, Reconciler, T
from paddlecloud.kube.resource import Resource


class MakeInformer(Protocol):
    """`Operator.informer`, for what holds the caches of a kind."""

    def __call__(self, resource: Resource, *, everywhere: bool = False, **options: object) -> Informer: ...


class Operator(Reconciler[T, P]):
    """`run` works until cancelled. Without a namespace it serves all of them."""

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
        super().__init__(client, component=component, clock=clock)
        self._namespace = namespace
        self.informers: list[Informer] = []
        self.controller = Controller(
            name, self.reconcile, clock=self.clock, workers=workers, hooks=hooks, backoff_cap=backoff_cap
        )

    def informer(self, resource: Resource, *, everywhere: bool = False, **options: Any) -> Informer:
        """A cache of what is in the operator's namespace, or everywhere; it runs as long as the operator does."""
        namespace = None if everywhere else self._namespace
        informer = Informer(self.client, resource, namespace=namespace, clock=self.clock, **options)
        self.informers.append(informer)
        return informer

    async def run(self) -> None:
        caches = [asyncio.ensure_future(informer.run()) for informer in self.informers]
        try:
            await self.controller.run()
        finally:
            for task in caches:
                task.cancel()
            await asyncio.gather(*caches, return_exceptions=True)
