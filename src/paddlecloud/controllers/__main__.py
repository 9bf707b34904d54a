"""A controller as a process of its own, which is what a Deployment runs: `python -m paddlecloud.controllers NAME`.

Of several replicas one leads, by a Lease named after the controller in the namespace of the process; the others wait
with nothing done. Only the leader's writes pass. /healthz, /readyz and /metrics are served on the port given. Ended
with SIGTERM it finishes the pass it is in and gives the lease back, so that the next replica takes over at once.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence

from paddlecloud.controllers import paddleservice
from paddlecloud.controllers.paddlejob import PaddleJobController
from paddlecloud.controllers.paddlejob.controller import served_kinds
from paddlecloud.controllers.paddlejob.kubeflow import KubeflowPaddleJobController
from paddlecloud.controllers.samplejob import SampleJobController
from paddlecloud.controllers.sampleset import SampleSetController
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import ConfigError
from paddlecloud.kube.fence import Fence, FencedTransport
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.lease import Elector, LeadershipLost
from paddlecloud.kube.manager import Manager, Service

Maker = Callable[[Client, Hooks], Awaitable[Service]]


async def _paddlejob(client: Client, hooks: Hooks) -> Service:
    return PaddleJobController(client, served=await served_kinds(client), hooks=hooks).run


async def _kubeflow(client: Client, hooks: Hooks) -> Service:
    return KubeflowPaddleJobController(client, hooks=hooks).run


async def _sampleset(client: Client, hooks: Hooks) -> Service:
    return SampleSetController(client, hooks=hooks).run


async def _samplejob(client: Client, hooks: Hooks) -> Service:
    return SampleJobController(client, hooks=hooks).run


async def _paddleservice(client: Client, hooks: Hooks) -> Service:
    served = await paddleservice.served_kinds(client)
    return paddleservice.PaddleServiceController(client, served=served, hooks=hooks).run


CONTROLLERS: dict[str, Maker] = {
    "paddlejob": _paddlejob,
    "kubeflow-paddlejob": _kubeflow,
    "sampleset": _sampleset,
    "samplejob": _samplejob,
    "paddleservice": _paddleservice,
}


async def run(name: str, settings: config.Config, *, identity: str, health: tuple[str, int]) -> None:
    """Work until cancelled. Raises `LeadershipLost` when another replica may lead: end the process then."""
    agent = f"{name}-controller"
    fence = Fence()
    transport = HttpTransport(settings, user_agent=agent)
    elector = Elector(Client(transport), name=agent, namespace=settings.namespace, identity=identity, fence=fence)
    client = Client(FencedTransport(transport, fence))
    manager = Manager(client, elector=elector, health=health)
    try:
        manager.add_service(name, await CONTROLLERS[name](client, manager.hooks))
        await manager.run()
    finally:
        await client.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.controllers", description="Run one controller.")
    parser.add_argument("name", choices=tuple(CONTROLLERS))
    parser.add_argument("--kubeconfig", help="default: KUBECONFIG, ~/.kube/config, or the pod's own account")
    parser.add_argument("--health-port", type=int, default=8080, help="/healthz, /readyz, /metrics (default 8080)")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = config.load(chosen.kubeconfig)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}-{os.getpid()}"
    try:
        asyncio.run(_until_told(run(chosen.name, settings, identity=identity, health=("", chosen.health_port))))
    except LeadershipLost as lost:
        print(f"error: {lost}", file=sys.stderr)
        return 1
    return 0


async def _until_told(work: Awaitable[None]) -> None:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        logging.getLogger(__name__).info("told to end")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
