"""Everything about nodes that runs beside the kubelet, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.local.kubelet.node.kubelet import Kubelet
from paddlecloud.local.kubelet.node.node import NodeConfig
from paddlecloud.local.nodes.keeper import NodeKeeper
from paddlecloud.local.nodes.lifecycle import NodeLifecycle
from paddlecloud.local.nodes.simulated import SimulatedKubelet
from paddlecloud.local.scheduler.controller.watches import Watches


class Nodes:
    """`run` works until cancelled. Each part has its own client, so that the audit log shows who wrote what."""

    def __init__(
        self,
        keeper: Client,
        kubelet_of_simulated: Client,
        watches: Watches,
        kubelet: Kubelet,
        *,
        own: Sequence[NodeConfig],
        clock: Clock,
    ) -> None:
        self._keeper = NodeKeeper(keeper, watches, kubelet, own=own, clock=clock)
        self._lifecycle = NodeLifecycle(keeper, watches, clock=clock)
        self._simulated = SimulatedKubelet(kubelet_of_simulated, watches, clock=clock)

    async def simulate(self, count: int, capacity: Mapping[str, str]) -> None:
        await self._keeper.simulate(count, capacity)

    async def run(self) -> None:
        parts = [asyncio.ensure_future(p.run()) for p in (self._keeper, self._lifecycle, self._simulated)]
        try:
            await asyncio.gather(*parts)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
