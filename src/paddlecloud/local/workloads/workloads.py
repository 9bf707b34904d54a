"""All workload controllers of a platform, put together on one manager and one set of caches."""

from __future__ import annotations

from collections.abc import Callable

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.local.apiserver.auth.identities import CONTROLLER_MANAGER
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.proxy.node_ports import NodePorts
from paddlecloud.local.proxy.proxy import ServiceProxy
from paddlecloud.local.volumes.binder import VolumeBinder
from paddlecloud.local.workloads.cronjob.controller import cron_job_controller
from paddlecloud.local.workloads.daemonset.controller import daemon_set_controller
from paddlecloud.local.workloads.deployment.controller import deployment_controller
from paddlecloud.local.workloads.disruption import budget_controller
from paddlecloud.local.workloads.endpoint_controller import EndpointReconciler
from paddlecloud.local.workloads.endpoint_mirroring import MirroringReconciler
from paddlecloud.local.workloads.eviction import guard
from paddlecloud.local.workloads.job.controller import job_controller
from paddlecloud.local.workloads.metrics.api import serve_metrics
from paddlecloud.local.workloads.protection import default_class, protect, protection_controllers
from paddlecloud.local.workloads.refusals import refuse_unserved
from paddlecloud.local.workloads.replicaset import replica_set_controller, replication_controller
from paddlecloud.local.workloads.statefulset.controller import stateful_set_controller

CONTROLLERS: tuple[Callable[[Manager, Clock], object], ...] = (
    EndpointReconciler,
    MirroringReconciler,
    replica_set_controller,
    replication_controller,
    deployment_controller,
    job_controller,
    cron_job_controller,
    daemon_set_controller,
    stateful_set_controller,
    protection_controllers,
    budget_controller,
)
EVICTION = ("", "pods", "eviction")


class Workloads:
    """`run` works until cancelled."""

    def __init__(self, control_plane: ControlPlane) -> None:
        clock = control_plane.clock
        self.manager = Manager(control_plane.client(CONTROLLER_MANAGER, user_agent="workloads"), clock=clock)
        self._binder = VolumeBinder(self.manager, folder=control_plane.data / "volumes")
        self._proxy = ServiceProxy(self.manager, clock)
        for declare in CONTROLLERS:
            declare(self.manager, clock)
        _plug_in(control_plane)

    async def run(self) -> None:
        await self._binder.install()
        try:
            await self.manager.run()
        finally:
            await self._proxy.close()

    async def wait_listening(self) -> None:
        """Until the Services that there are take connections."""
        await self._proxy.wait_listening()


def _plug_in(control_plane: ControlPlane) -> None:
    """What the API server does on behalf of the workloads."""
    ports = NodePorts(control_plane.store, str(control_plane.data))
    control_plane.admission.mutators += [protect, default_class(control_plane.store), ports.assign]
    control_plane.admission.policies += [refuse_unserved, ports.confirm]
    handlers = control_plane.extensions.handlers
    handlers[EVICTION] = guard(
        handlers[EVICTION],
        store=control_plane.store,
        registry=control_plane.registry,
        verbs=control_plane.verbs,
        clock=control_plane.clock,
    )
    serve_metrics(control_plane)
