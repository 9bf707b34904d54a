"""The caches that scheduler and nodes read.

They come from a manager whose other controllers read the same ones: each change of a pod is decoded and kept once.
"""

from __future__ import annotations

from paddlecloud.kube.cache import by_field
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import (
    COSCHEDULING_PODGROUPS,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    QUEUES,
)

ON_NODE = "node"
"""Index of pods by the node they are bound to."""


class Watches:
    """Declared on a manager, which runs them; `synced` returns when all of them are filled."""

    def __init__(self, manager: Manager) -> None:
        self.priority_classes = manager.informer(PRIORITYCLASSES)
        self.groups = manager.informer(PODGROUPS, optional=True)
        self.coscheduling_groups = manager.informer(COSCHEDULING_PODGROUPS, optional=True)
        self.queues = manager.informer(QUEUES, optional=True)
        self.budgets = manager.informer(PODDISRUPTIONBUDGETS)
        self.nodes = manager.informer(NODES)
        self.pods = manager.informer(PODS, indexers={ON_NODE: by_field("spec.nodeName")})

    async def synced(self) -> None:
        for informer in (
            self.priority_classes,
            self.groups,
            self.coscheduling_groups,
            self.queues,
            self.budgets,
            self.nodes,
            self.pods,
        ):
            await informer.wait_synced()
