"""The caches that scheduler and nodes share, so that each change is decoded once."""

from __future__ import annotations

import asyncio

from paddlecloud.kube.cache import by_field
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import NODES, PODGROUPS, PODS, QUEUES, Resource

PRIORITYCLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
COSCHEDULING_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")


ON_NODE = "node"
"""Index of pods by the node they are bound to."""


class Watches:
    """`run` keeps the caches until cancelled; `synced` returns when all of them are filled."""

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        def informer(resource: Resource, *, optional: bool = False) -> Informer:
            return Informer(client, resource, clock=clock, optional=optional)

        self.pods = Informer(client, PODS, clock=clock, indexers={ON_NODE: by_field("spec.nodeName")})
        self.nodes = informer(NODES)
        self.groups = informer(PODGROUPS, optional=True)
        self.queues = informer(QUEUES, optional=True)
        self.coscheduling_groups = informer(COSCHEDULING_GROUPS, optional=True)
        self.priority_classes = informer(PRIORITYCLASSES)
        self.budgets = informer(BUDGETS)

    @property
    def _all(self) -> tuple[Informer, ...]:
        return (
            self.priority_classes,
            self.groups,
            self.coscheduling_groups,
            self.queues,
            self.budgets,
            self.nodes,
            self.pods,
        )

    async def run(self) -> None:
        tasks = [asyncio.ensure_future(informer.run()) for informer in self._all]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def synced(self) -> None:
        for informer in self._all:
            await informer.wait_synced()
