"""The embedded platform put together: control plane, scheduler, kubelet, and the controllers of this project.

Each part has its own client under its own account, so that RBAC binds it and the audit log shows who wrote what.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from paddlecloud.cache.retained import SetFolders
from paddlecloud.controllers.model import ModelController, ModelStore
from paddlecloud.controllers.node_folders import NodeFolders
from paddlecloud.controllers.paddlejob import JobOptions, ListenAddress, PaddleJobController
from paddlecloud.controllers.paddlejob.kubeflow import KubeflowPaddleJobController
from paddlecloud.controllers.paddleservice import PaddleServiceController, Site
from paddlecloud.controllers.paddleservice.hub_pods import HubAccess
from paddlecloud.controllers.sampledata.samplejob import SampleJobController
from paddlecloud.controllers.sampledata.sampleset import SampleSetController, SampleSetOptions
from paddlecloud.controllers.tenant import TenantController, TenantSettings
from paddlecloud.drivers import drivers_of
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PADDLEJOBS
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.apiserver.auth.identities import NODE_CONTROLLER, SCHEDULER, node
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.images import library
from paddlecloud.local.images.garbage import ImageGarbageCollector
from paddlecloud.local.images.store import ImageStore, default_cache
from paddlecloud.local.knative.knative import Knative
from paddlecloud.local.kubelet.node.devices import Devices, find_gpus
from paddlecloud.local.kubelet.node.kubelet import Kubelet
from paddlecloud.local.kubelet.node.node import NodeConfig, machine_capacity
from paddlecloud.local.kubelet.streams.streams import PodStreams
from paddlecloud.local.nodes.nodes import Nodes
from paddlecloud.local.nodes.objects import share_of
from paddlecloud.local.scheduler.controller.scheduler import Scheduler
from paddlecloud.local.scheduler.controller.watches import Watches
from paddlecloud.local.scheduler.namespace_queue import namespace_queue
from paddlecloud.local.workflow.artifacts import driver as artifact_volumes
from paddlecloud.local.workflow.artifacts.driver import ArtifactDriver
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.controller import Workflows
from paddlecloud.local.workflow.names import WORKFLOWS
from paddlecloud.local.workflow.validation.images import judge_images
from paddlecloud.local.workloads.workloads import Workloads
from paddlecloud.modelhub.names import STORE_FOLDER
from paddlecloud.notebooks import names as notebooks
from paddlecloud.platform import chart, fingerprint, modelhub
from paddlecloud.platform.dashboard import DashboardProcess
from paddlecloud.platform.modelhub import model_hub
from paddlecloud.platform.pipelines import pipelines_api
from paddlecloud.storage.stores import open_store

log = logging.getLogger(__name__)

_SHARED_FOLDERS = ("/data", "/mnt", "/srv", "/var/lib/paddle", "/var/lib/paddlecloud", "/usr/share", "/etc/default")
"""Folders that sets and services may name here by default, hidden ones below them excepted: keys lie in those."""


def own_folders(home: Path, started_in: Path) -> tuple[str, ...]:
    """Where the owner keeps things: the home folder, and the one that `pdc up` was started in.

    Not where that is `/`, as the home of some accounts of services is: it would be every file.
    """
    temporary = ("/tmp", "/var/tmp")  # noqa: S108 - shared by all of one machine
    return (*(str(folder) for folder in (home, started_in) if folder != Path("/")), *temporary)


_TENANTS = TenantSettings(hub=(notebooks.NAMESPACE, notebooks.HUB))
"""Notebooks come with `pdc notebooks up`; until then the account does not exist."""
LISTENING = 10.0
"""Seconds that the start waits for the addresses of services at most."""


class Part(Protocol):
    async def run(self) -> None: ...


class EmbeddedPlatform:
    """Made once the control plane listens: pods get its address."""

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        nodes: int = 1,
        simulated: int | None = None,
        simulated_capacity: Mapping[str, str] | None = None,
        controllers: bool = True,
        started_in: Path = Path("/"),
    ) -> None:
        """`simulated` None keeps the simulated nodes there are; a number makes there be so many. Without `controllers`
        those of this project do not run: somebody installs them as pods."""
        self._control_plane = control_plane
        self._clock = control_plane.clock
        self._recipes = [control_plane.data / "images"]
        self._simulated = simulated
        self._simulated_capacity = simulated_capacity or {}
        self._workloads = Workloads(control_plane)
        self._knative = Knative(control_plane, warm=lambda image: self._kubelet.keep_warm(image))
        self._artifacts = Repository(control_plane.data / "artifacts")
        images = ImageStore(folders=self._recipes)
        self._workflows = Workflows(control_plane, self._artifacts, images.program)
        control_plane.admission.policies.append(functools.partial(judge_images, obstacle=images.obstacle))
        control_plane.admission.mutators.append(namespace_queue(control_plane.store))
        self._watches = Watches(self._workloads.manager)
        self._scheduler = Scheduler(
            control_plane.client(SCHEDULER, user_agent="scheduler"), self._watches, clock=self._clock
        )
        self._controllers = self._make_controllers(started_in) if controllers else ()
        self.pipelines = pipelines_api(control_plane) if controllers else None
        self.hub = model_hub(control_plane) if controllers else None
        self.dashboard = DashboardProcess(control_plane.data)
        self._images = ImageGarbageCollector(ImageStore(folders=self._recipes), clock=self._clock)
        own = node_configs(nodes)
        self._kubelet = self._make_kubelet(own)
        self._serve_streams()
        self._nodes = self._make_nodes(own)

    def _make_controllers(self, started_in: Path) -> tuple[Part, ...]:
        data, clock = self._control_plane.data, self._clock
        closed, sets = (str(data.resolve()),), str(data / "samplesets")
        usual = own_folders(Path.home().resolve(), started_in.resolve())
        caches = NodeFolders.for_caches(os.environ, *usual, closed=closed)
        reading = NodeFolders.for_reading(os.environ, *usual, *_SHARED_FOLDERS, closed=closed)
        for_jobs = JobOptions(
            python_path=str(library.folder(default_cache())), hosts_files=False, caches=caches, local_root=sets
        )
        for_sets = replace(
            SampleSetOptions.of(os.environ),
            local_root=sets,
            caches=caches,
            sources=reading,
            retained=SetFolders(Path(sets)).source_of,
        )
        return (
            PaddleJobController(
                self._client("paddlejob", "paddlejob-controller"),
                clock=clock,
                options=for_jobs,
                reports=ListenAddress(remember=data / "report.port"),
            ),
            KubeflowPaddleJobController(self._client("paddlejob", "kubeflow-paddlejob-controller"), clock=clock),
            PaddleServiceController(
                self._client("serving", "paddleservice-controller"),
                clock=clock,
                site=Site.from_environment(os.environ)._replace(
                    models=reading,
                    fingerprint=fingerprint.of_folder,
                    hub=HubAccess(modelhub.URL, node_root=str(data.resolve() / "served-models")),
                ),
                key_namespace=chart.NAMESPACE,
            ),
            SampleSetController(self._client("sampleset", "sampleset-controller"), clock=clock, options=for_sets),
            SampleJobController(self._client("sampleset", "samplejob-controller"), clock=clock, options=for_sets),
            ModelController(self._client("models", "model-controller"), clock=clock, store=_model_store(data)),
            TenantController(self._client("tenants", "tenant-controller"), clock=clock, settings=_TENANTS),
        )

    def _client(self, controller: str, user_agent: str) -> Client:
        """Under the account that the chart gives to this controller."""
        account = service_account(chart.NAMESPACE, chart.ACCOUNTS[controller])
        return self._control_plane.client(account, user_agent=user_agent)

    def _make_kubelet(self, own: list[NodeConfig]) -> Kubelet:
        return Kubelet(
            self._control_plane.client(node(own[0].name), user_agent="kubelet"),
            data=self._control_plane.data,
            nodes=own,
            images=ImageStore(folders=self._recipes),
            clock=self._clock,
            api_address=("127.0.0.1", self._control_plane.port),
            keep_logs_of=[PADDLEJOBS, WORKFLOWS],
            drivers={**drivers_of(self._control_plane.data), artifact_volumes.NAME: ArtifactDriver(self._artifacts)},
        )

    def _serve_streams(self) -> None:
        streams = PodStreams(self._kubelet, self._clock)
        self._control_plane.serve_streams(streams)
        self._control_plane.serve_kept_logs(streams, [PADDLEJOBS, WORKFLOWS])

    def _make_nodes(self, own: list[NodeConfig]) -> Nodes:
        return Nodes(
            self._control_plane.client(NODE_CONTROLLER, user_agent="node-controller"),
            self._control_plane.client(node("simulated"), user_agent="simulated-kubelet"),
            self._watches,
            self._kubelet,
            own=own,
            clock=self._clock,
        )

    async def start(self) -> None:
        parts: list[Part] = [
            self._workloads,
            self._scheduler,
            self._knative,
            self._workflows,
            self._images,
            *self._controllers,
        ]
        for part in parts:
            self._control_plane.spawn(part.run())
        await self._kubelet.start()
        if self._simulated is not None:
            await self._nodes.simulate(self._simulated, self._simulated_capacity)
        self._control_plane.spawn(self._nodes.run())
        for server in (self.pipelines, self.hub):
            if server is not None:
                await server.start()
        self.dashboard.start()
        await self._listening()

    async def _listening(self) -> None:
        """Addresses of services that were there before take connections: who reads `ready` may call them."""
        try:
            waits = self._workloads.wait_listening(), self._knative.wait_listening()
            await asyncio.wait_for(asyncio.gather(*waits), LISTENING)
        except asyncio.TimeoutError:
            log.warning("services do not take connections after %g s; see the log of the gateways", LISTENING)

    async def stop(self, *, pods: bool) -> None:
        """With `pods` this is the machine switched off (`pdc down`); without, only its control plane goes."""
        for server in (self.pipelines, self.hub):
            if server is not None:
                await server.stop()
        await self.dashboard.stop()
        await self._knative.stop(gateways=pods)
        await self._kubelet.stop(pods=pods)


def _model_store(data: Path) -> ModelStore:
    """The folder that `pdc model` and the SDK push to."""
    return ModelStore(open_store(f"file://{data.resolve() / STORE_FOLDER}"))


def node_configs(count: int) -> list[NodeConfig]:
    """The machine as one node, or divided among several."""
    names = node_names(count)
    if count == 1:
        return [NodeConfig(names[0])]
    whole = {**machine_capacity(), **Devices(find_gpus()).capacity}
    return [NodeConfig(name, capacity=share_of(whole, count, index)) for index, name in enumerate(names)]


def node_names(count: int) -> list[str]:
    """One node is called after the machine; several are numbered."""
    host = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower()).strip("-.") or "localhost"
    return [host] if count == 1 else [f"{host}-{number}" for number in range(1, count + 1)]
