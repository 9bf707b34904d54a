"""What runs beside the API server on one machine: scheduler, kubelet, and the controllers of this project.

Each part has a client of its own under its own name, so that the audit log tells who wrote what.
"""

from __future__ import annotations

from paddlecloud.controllers.paddlejob.controller import PaddleJobController
from paddlecloud.kube.manager import Manager
from paddlecloud.local.platform import Platform
from paddlecloud.local.scheduler.scheduler import Scheduler
from paddlecloud.local.workloads.endpoints import endpoint_controller


class Machine:
    def __init__(self, platform: Platform, *, nodes: int = 1) -> None:
        self._platform = platform
        self._nodes = nodes
        self._workloads = Manager(platform.client(user_agent="workloads"), clock=platform.clock)

    async def start(self) -> None:
        platform, manager = self._platform, self._workloads
        endpoint_controller(manager)
        platform.spawn(manager.run())
        platform.spawn(Scheduler(platform.client(user_agent="scheduler"), clock=platform.clock).run())
        jobs = PaddleJobController(platform.client(user_agent="paddlejob-controller"), clock=platform.clock)
        platform.spawn(jobs.run())

    async def stop(self) -> None:
        """Stop the pods too: `pdc down` is the machine switched off, not the control plane killed."""
