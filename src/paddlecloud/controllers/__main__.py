"""Controllers as a separate process, which is what a Deployment runs: `python -m paddlecloud.controllers NAME…`.

Of several replicas one leads, by a Lease named after the first controller in the namespace of the process; the others
wait with nothing done. Only the leader's writes pass. /healthz, /readyz and /metrics are served on the port given.
Ended with SIGTERM it finishes the pass it is in and gives the lease back, so that the next replica takes over at once.

Where `REPORT_URL` says how pods reach it, the paddlejob controller listens to their reports. That URL is a Service in
front of all replicas, so the one that leads says so by a label on its own pod, which the Service selects.

The paddleservice controller reads `SERVING_IMAGE`, the inference server's image, and `PADDLECLOUD_MODEL_ENDPOINT`, the
model store that `model: NAME:VERSION` is looked up in where the ModelHub has no such model. `PADDLECLOUD_MODEL_HUB` is
the URL by which pods reach the hub, `PADDLECLOUD_MODEL_FOLDER` the root of the folders of nodes that they share. The
model controller reads `PADDLECLOUD_MODEL_STORE`, the address of the store of versions, and its keys; without it no
version is kept or removed. The tenant controller reads `PADDLECLOUD_TENANT_POD_SECURITY`, the level that PodSecurity
enforces in namespaces of tenants, and `PADDLECLOUD_TENANT_REACHED_FROM`, the namespaces that may open connections to
theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from paddlecloud.controllers import engines, paddleservice
from paddlecloud.controllers.model import ModelController, ModelStore
from paddlecloud.controllers.paddlejob import JobOptions, ListenAddress, PaddleJobController
from paddlecloud.controllers.paddlejob.controller import served_kinds
from paddlecloud.controllers.paddlejob.kubeflow import KubeflowPaddleJobController
from paddlecloud.controllers.sampledata.samplejob import SampleJobController
from paddlecloud.controllers.sampledata.sampleset import SampleSetController, SampleSetOptions
from paddlecloud.controllers.tenant import TenantController, TenantSettings
from paddlecloud.controllers.tenant import served_kinds as tenant_kinds
from paddlecloud.kube import config, garbage, logs
from paddlecloud.kube.backoff import Backoff
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import ApiError, ConfigError, NotFound
from paddlecloud.kube.fence import Fence, FencedTransport
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.lease import Elector, LeadershipLost
from paddlecloud.kube.manager import Manager, Service
from paddlecloud.kube.metered import MeteredTransport
from paddlecloud.kube.metrics import Registry
from paddlecloud.kube.resource import PODS
from paddlecloud.kube.watchdog import LoopWatchdog
from paddlecloud.modelhub.names import STORE_VARIABLE as MODEL_STORE
from paddlecloud.storage.stores import open_store

log = logging.getLogger(__name__)

REPORT_PORT = 8082
LEADS = "paddlecloud.org/leads"
"""Label of the pod whose controllers work; its value is the name of the lease's controller."""


class Setting(NamedTuple):
    client: Client
    hooks: Hooks
    namespace: str | None
    """Where objects are served; None for everywhere."""
    own_namespace: str


Maker = Callable[[Setting], Service]


def _paddlejob(given: Setting) -> Service:
    url = os.environ.get("REPORT_URL", "")
    options = JobOptions.of(os.environ)
    place = (
        ListenAddress(host=_address(), port=REPORT_PORT, url=url, key_namespace=given.own_namespace) if url else None
    )

    def make(served: engines.Served) -> Service:
        return PaddleJobController(
            given.client,
            options=options,
            namespace=given.namespace,
            served=served,
            hooks=given.hooks,
            reports=place,
        ).run

    return lambda: engines.follow(lambda: served_kinds(given.client), make)


def _kubeflow(given: Setting) -> Service:
    return KubeflowPaddleJobController(given.client, namespace=given.namespace, hooks=given.hooks).run


def _sampleset(given: Setting) -> Service:
    options = SampleSetOptions.of(os.environ)
    return SampleSetController(given.client, options=options, namespace=given.namespace, hooks=given.hooks).run


def _samplejob(given: Setting) -> Service:
    options = SampleSetOptions.of(os.environ)
    return SampleJobController(given.client, options=options, namespace=given.namespace, hooks=given.hooks).run


def _paddleservice(given: Setting) -> Service:
    site = paddleservice.Site.from_environment(os.environ)

    def make(served: engines.Served) -> Service:
        return paddleservice.PaddleServiceController(
            given.client,
            namespace=given.namespace,
            served=served,
            hooks=given.hooks,
            site=site,
            key_namespace=given.own_namespace,
        ).run

    return lambda: engines.follow(lambda: paddleservice.served_kinds(given.client), make)


def _model(given: Setting) -> Service:
    address = os.environ.get(MODEL_STORE, "").rstrip("/")
    store = ModelStore(open_store(address), (address, "")) if address else None
    return ModelController(given.client, store=store, namespace=given.namespace, hooks=given.hooks).run


def _tenant(given: Setting) -> Service:
    """Profiles and their namespaces belong to the whole cluster, so there is no `namespace` to keep to."""

    def make(served: engines.Served) -> Service:
        settings = TenantSettings.of(os.environ)
        return TenantController(given.client, served=served, settings=settings, hooks=given.hooks).run

    return lambda: engines.follow(lambda: tenant_kinds(given.client), make)


CONTROLLERS: dict[str, Maker] = {
    "paddlejob": _paddlejob,
    "kubeflow-paddlejob": _kubeflow,
    "sampleset": _sampleset,
    "samplejob": _samplejob,
    "paddleservice": _paddleservice,
    "model": _model,
    "tenant": _tenant,
}


async def run(
    names: Sequence[str],
    settings: config.Config,
    *,
    identity: str,
    health: tuple[str, int],
    namespace: str | None = None,
) -> None:
    """Work until cancelled. Raises `LeadershipLost` when another replica may lead: end the process then."""
    agent = f"{names[0]}-controller"
    fence = Fence()
    metrics = Registry()
    transport = MeteredTransport(HttpTransport(settings, user_agent=agent), metrics)
    elector = Elector(Client(transport), name=agent, namespace=settings.namespace, identity=identity, fence=fence)
    client = Client(FencedTransport(transport, fence))
    manager = Manager(client, elector=elector, metrics=metrics, health=health)
    given = Setting(client, manager.hooks, namespace, settings.namespace)
    unmarked = asyncio.ensure_future(_mark(Client(transport), settings.namespace, None))  # of a life before this one

    async def lead() -> None:
        await unmarked
        await _mark(client, settings.namespace, names[0])
        await asyncio.Event().wait()

    try:
        manager.add_service("leader", lead)
        for name in names:
            manager.add_service(name, CONTROLLERS[name](given))
        await manager.run()
    finally:
        unmarked.cancel()
        await client.close()


async def _mark(client: Client, namespace: str, leads: str | None, *, clock: Clock | None = None) -> None:
    """Nothing where the process is in no pod: then no Service depends on the mark.

    A refused request is repeated: a process that starts in an outage waits for its end, and an API server that has just
    come up does not know yet what accounts may do.
    """
    pod = os.environ.get("POD_NAME")
    clock = clock or SystemClock()
    backoff = Backoff(random.Random(), base=0.5)  # noqa: S311 - spreads load, keeps no secret
    while pod is not None:
        try:
            await client.patch(PODS, pod, {"metadata": {"labels": {LEADS: leads}}}, namespace=namespace)
            return
        except NotFound:
            return  # in no pod of this cluster
        except ApiError as error:
            wait = backoff.next()
            log.warning("the pod is not marked, next try in %.1f s: %s", wait, error)
            await clock.sleep(wait)


def _address() -> str:
    """Where to listen: the pod's own address where it is given, every one elsewhere."""
    return os.environ.get("POD_IP", "")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.controllers", description="Run controllers.")
    parser.add_argument("names", nargs="+", choices=tuple(CONTROLLERS), metavar="NAME", help=", ".join(CONTROLLERS))
    parser.add_argument("--namespace", help="serve the objects of this namespace only (default: all)")
    parser.add_argument("--kubeconfig", help="default: KUBECONFIG, ~/.kube/config, or the pod's own account")
    parser.add_argument("--health-port", type=int, default=8080, help="/healthz, /readyz, /metrics (default 8080)")
    chosen = parser.parse_args(arguments)
    logs.configure()
    try:
        settings = config.load(chosen.kubeconfig)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    garbage.collect_seldom()
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}-{os.getpid()}"
    try:
        work = run(
            chosen.names,
            settings,
            identity=identity,
            health=(_address(), chosen.health_port),
            namespace=chosen.namespace,
        )
        asyncio.run(_until_terminated(work))
    except (LeadershipLost, ApiError) as ended:  # the process ends; its Deployment or the platform starts it again
        print(f"error: {ended}", file=sys.stderr)
        return 1
    return 0


async def _until_terminated(work: Awaitable[None]) -> None:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        with LoopWatchdog(loop):
            await task
    except asyncio.CancelledError:
        log.info("received a signal; shutting down")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
