"""What runs beside the API server on one machine: scheduler, kubelet, and the controllers of this project."""

from __future__ import annotations

from paddlecloud.local.platform import Platform
from paddlecloud.local.scheduler.scheduler import Scheduler


class Machine:
    def __init__(self, platform: Platform, *, nodes: int = 1) -> None:
        self._platform = platform
        self._nodes = nodes

    async def start(self) -> None:
        platform = self._platform
        platform.spawn(Scheduler(platform.client(user_agent="scheduler"), clock=platform.clock).run())

    async def stop(self) -> None:
        """Stop the pods too: `pdc down` is the machine switched off, not the control plane killed."""
