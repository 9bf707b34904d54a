"""An API server, workloads, a scheduler and simulated nodes in this process, by a fake clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import NODES, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.nodes.lifecycle import NodeLifecycle
from paddlecloud.local.nodes.marks import SIMULATED
from paddlecloud.local.nodes.objects import new_node
from paddlecloud.local.nodes.simulated import SimulatedKubelet
from paddlecloud.local.scheduler.controller.scheduler import Scheduler
from paddlecloud.local.scheduler.controller.watches import Watches
from paddlecloud.local.workloads.workloads import Workloads


class SimulatedPlatform(NamedTuple):
    control_plane: ControlPlane
    clock: FakeClock
    client: Client

    async def add_node(self, name: str) -> None:
        node = new_node(name, SIMULATED, capacity={}, now=self.clock.now())
        await self.client.create(NODES, node)
        await self.client.patch(NODES, name, {"status": node["status"]}, subresource="status")


@asynccontextmanager
async def simulated_platform(folder: Path, objects: Sequence[Object] = ()) -> AsyncIterator[SimulatedPlatform]:
    """It starts with these objects; nodes are added as a test needs them."""
    clock = FakeClock()
    control_plane = ControlPlane(folder, clock=clock, seed=1)
    await control_plane.start(objects=list(objects))
    client = control_plane.client(user_agent="machine")
    workloads = Workloads(control_plane)
    watches = Watches(workloads.manager)
    parts = (
        workloads,
        Scheduler(client, watches, clock=clock),
        NodeLifecycle(client, watches, clock=clock),
        SimulatedKubelet(client, watches, clock=clock),
    )
    for part in parts:
        control_plane.spawn(part.run())
    yield SimulatedPlatform(control_plane, clock, client)
    await control_plane.stop()
