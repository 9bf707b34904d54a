"""What runs beside the API server on one machine: scheduler, kubelet, and the controllers of this project.

Each part has a client of its own under its own name, so that the audit log tells who wrote what.
"""

from __future__ import annotations

import re
import socket

from paddlecloud.controllers.paddlejob.controller import PaddleJobController
from paddlecloud.local.images.store import ImageStore
from paddlecloud.local.kubelet.kubelet import Kubelet
from paddlecloud.local.kubelet.node import NodeConfig
from paddlecloud.local.kubelet.streams import PodStreams
from paddlecloud.local.platform import Platform
from paddlecloud.local.scheduler.scheduler import Scheduler
from paddlecloud.local.workloads.workloads import Workloads


class Machine:
    """Made once the platform listens: pods are told where."""

    def __init__(self, platform: Platform, *, nodes: int = 1) -> None:
        clock = platform.clock
        self._platform = platform
        self._workloads = Workloads(platform)
        self._scheduler = Scheduler(platform.client(user_agent="scheduler"), clock=clock)
        self._jobs = PaddleJobController(platform.client(user_agent="paddlejob-controller"), clock=clock)
        self._kubelet = Kubelet(
            platform.client(user_agent="kubelet"),
            data=platform.data,
            nodes=[NodeConfig(name) for name in node_names(nodes)],
            images=ImageStore(folders=[platform.data / "images"]),
            clock=clock,
            api_address=("127.0.0.1", platform.port),
        )
        platform.serve_streams(PodStreams(self._kubelet, clock))

    async def start(self) -> None:
        for part in (self._workloads, self._scheduler, self._jobs):
            self._platform.spawn(part.run())
        await self._kubelet.start()

    async def stop(self, *, pods: bool) -> None:
        """With `pods` this is the machine switched off (`pdc down`); without, only its control plane goes."""
        await self._kubelet.stop(pods=pods)


def node_names(count: int) -> list[str]:
    """One node is called after the machine; several are numbered."""
    host = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower()).strip("-.") or "localhost"
    return [host] if count == 1 else [f"{host}-{number}" for number in range(1, count + 1)]
