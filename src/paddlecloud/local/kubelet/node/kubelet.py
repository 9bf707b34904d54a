"""The kubelet of one machine: takes up the pods bound to its nodes and gives each a worker.

Several virtual nodes may share the machine; they differ in name and capacity only. When it stops, pods go on; when it
starts, it finds them again by their directories, and ends what no longer has an object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import ENDPOINTSLICES, PODS, SERVICES, Object, Resource
from paddlecloud.local import loopback
from paddlecloud.local.kubelet.node.addresses import Addresses
from paddlecloud.local.kubelet.node.admission import rejected
from paddlecloud.local.kubelet.node.config_objects import WatchedObjects
from paddlecloud.local.kubelet.node.devices import Devices, find_gpus
from paddlecloud.local.kubelet.node.limits import ANNOTATION, PodCgroups, find
from paddlecloud.local.kubelet.node.node import NodeConfig, NodeRegistration, machine_capacity
from paddlecloud.local.kubelet.node.periodic import PeriodicChecks
from paddlecloud.local.kubelet.node.warmparents import WarmParents
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.pod.container_order import image_env
from paddlecloud.local.kubelet.pod.files import remove_pod_dir
from paddlecloud.local.kubelet.pod.hosts import HostsWriter, names_of
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.service_account import api_env, api_tokens, service_env
from paddlecloud.local.kubelet.pod.services import PIDS_LIMIT, Images, NodeServices
from paddlecloud.local.kubelet.pod.supervised import SupervisedPod
from paddlecloud.local.kubelet.pod.worker import PodWorker
from paddlecloud.local.kubelet.shim import wire
from paddlecloud.local.kubelet.streams.archive import LogArchive
from paddlecloud.local.volumes.drivers import Driver
from paddlecloud.local.volumes.tokens import TokenSource
from paddlecloud.local.volumes.volume_types import VolumeManager

log = logging.getLogger(__name__)

NAMES_DELAY = 0.02
"""Seconds over which changes of Services are gathered before pods' hosts files are rewritten."""


class Kubelet:
    """`start` returns when the nodes are registered and their pods known; `stop` leaves the pods running.

    `api_address` is where pods reach the API server; `token` replaces the tokens that it issues for them; `gpus` are
    the machine's, found by themselves unless given; `keep_logs_of` are kinds whose pods' logs outlive the pods.
    """

    def __init__(
        self,
        client: Client,
        *,
        data: Path,
        nodes: Sequence[NodeConfig],
        images: Images,
        clock: Clock | None = None,
        token: TokenSource | None = None,
        api_address: tuple[str, int] | None = None,
        drivers: Mapping[str, Driver] | None = None,
        gpus: Sequence[str] | None = None,
        pids_limit: int = PIDS_LIMIT,
        keep_logs_of: Sequence[Resource] = (),
        forbid: str = "",
    ) -> None:
        clock = clock or SystemClock()
        self._configs = list(nodes)
        gpus = find_gpus() if gpus is None else gpus
        network = loopback.network_for(str(data), loopback.PODS)
        self._objects = WatchedObjects(client, clock, on_change=self._on_objects)
        self._hosts = HostsWriter()
        self._services = Informer(client, SERVICES, clock=clock)
        self._slices = Informer(client, ENDPOINTSLICES, clock=clock)
        self._api_env = api_env(api_address) if api_address else {}
        capacity = machine_capacity()
        self.machine = NodeServices(
            client=client,
            clock=clock,
            data=data,
            zygote=ZygoteClient(),
            addresses=Addresses(network, start=loopback.start_in(network, str(data))),
            images=images,
            objects=self._objects,
            volumes=VolumeManager(
                self._objects,
                drivers=drivers,
                token=token or api_tokens(client),
                clock=clock,
                shares=data / "nfs",
                host_ip=lambda node: self.machine.host_ip(node),
                allocatable=capacity,
            ),
            hosts=self._hosts,
            recorder=EventRecorder(client, component="kubelet", clock=clock),
            devices=Devices(
                gpus,
                taken={uid: spec.get("gpus") or {} for uid, spec in pod_specs(data)},
                on_release=self._poke_all,
            ),
            warm=WarmParents(clock),
            cgroups=PodCgroups(find(forbid=forbid), data=str(data)),
            archive=LogArchive(data / "logs", client, owners=keep_logs_of),
            service_env=self._service_env,
            allocatable=capacity,
            pids_limit=pids_limit,
            forbid=forbid,
            own_node=self._configs[0].name if self._configs else "",
        )
        self._informers: dict[str, Informer] = {}
        self._workers: dict[str, PodWorker] = {}
        self._worker_tasks: dict[str, asyncio.Task[None]] = {}
        self._node_tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._background: list[asyncio.Task[None]] = []
        self._names_timer: asyncio.TimerHandle | None = None

    def keep_warm(self, image: str) -> None:
        """Pods of this image are expected: have its warm parent ready, if it asks for one and is built already."""
        environment = self.machine.images.resolve(image)
        if environment is not None:
            command = (*environment.entrypoint, *environment.cmd)
            self.machine.warm.find(environment, command, image_env(environment))

    async def start(self) -> None:
        (self.machine.data / "pods").mkdir(parents=True, exist_ok=True)
        self._reserve_addresses()
        await asyncio.to_thread(self.machine.cgroups.start)
        for informer in (self._services, self._slices):
            informer.on_change(lambda old, new: self._names_changed())
        self._background = [
            asyncio.create_task(self._objects.run(), name="objects of pods"),
            asyncio.create_task(self._services.run(), name="services for names"),
            asyncio.create_task(self._slices.run(), name="endpoints for names"),
        ]
        await asyncio.gather(self.machine.zygote.start(), *(self.add_node(config) for config in self._configs))
        checks = PeriodicChecks(self.machine, workers=self._workers.values, tidy=self._tidy)
        self._background.append(asyncio.create_task(checks.run(), name="periodic checks of pods"))

    def _poke_all(self) -> None:
        for worker in self._workers.values():
            worker.poke()

    def _reserve_addresses(self) -> None:
        for _, spec in pod_specs(self.machine.data):
            if spec.get("ip"):
                self.machine.addresses.reserve(spec["ip"])

    async def add_node(self, config: NodeConfig) -> None:
        machine = self.machine
        if config.declared:
            machine.devices.only_declared_by(config.name)
        config = replace(
            config,
            capacity={**({} if config.declared else machine.devices.capacity), **config.capacity},
            annotations={ANNOTATION: machine.cgroups.enforcement.describe(), **config.annotations},
        )
        registration = NodeRegistration(machine.client, machine.clock, config, host_ip=machine.host_ip(config.name))
        await registration.register()
        informer = Informer(machine.client, PODS, field_selector=f"spec.nodeName={config.name}", clock=machine.clock)
        informer.on_change(self._on_pod)
        self._informers[config.name] = informer
        self._node_tasks[config.name] = [
            asyncio.create_task(registration.keep_alive(), name=f"heartbeat {config.name}"),
            asyncio.create_task(informer.run(), name=f"pods of {config.name}"),
        ]
        await informer.wait_synced()

    async def remove_node(self, name: str) -> None:
        """Stop serving a node, as if it were lost: no heartbeat, no status of its pods, which run on.

        They are taken up again when the node comes back, and ended when their objects are gone.
        """
        self._informers.pop(name, None)
        leaving = {uid: worker for uid, worker in self._workers.items() if worker.pod["spec"].get("nodeName") == name}
        tasks = [*self._node_tasks.pop(name, ()), *(self._worker_tasks[uid] for uid in leaving)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(worker.leave() for worker in leaving.values()))

    async def stop(self, *, pods: bool = False) -> None:
        """End the kubelet. Pods and their shims live on, unless `pods` asks to switch the machine off.

        Then their objects stay. The next start restarts them by their policy; those that may not be restarted have
        failed as Kubernetes lets pods fail at a graceful node shutdown, and their owners replace them.
        """
        workers = list(self._workers.values())
        tasks = [*self._background, *self._worker_tasks.values()]
        for node_tasks in self._node_tasks.values():
            tasks += node_tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(worker.leave(end=pods) for worker in workers))
        if pods:
            await self.machine.volumes.keep_only(())
        await self.machine.warm.stop()
        await self.machine.zygote.stop()
        self.machine.cgroups.stop()

    # News

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        replaced = old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"])
        if replaced and old is not None and (former := self._workers.get(old["metadata"]["uid"])):
            former.update(None)
        if new is None:
            return
        if worker := self._workers.get(new["metadata"]["uid"]):
            worker.update(new)
        else:
            self._take_up(new)

    def _take_up(self, pod: Object) -> None:
        meta = pod["metadata"]
        uid = meta["uid"]
        worker = PodWorker(pod, self.machine)
        there = (other.pod for other in self._workers.values() if not other.vanished)
        if (rejection := rejected(pod, there)) is not None:
            worker.reject(rejection)
        self._workers[uid] = worker
        task = asyncio.create_task(worker.run(), name=f"pod {meta.get('namespace')}/{meta['name']}")
        self._worker_tasks[uid] = task

        def done(task: asyncio.Task[None]) -> None:
            self._workers.pop(uid, None)
            self._worker_tasks.pop(uid, None)
            if not task.cancelled() and (error := task.exception()):
                log.error("%s ended by an error", task.get_name(), exc_info=error)

        task.add_done_callback(done)

    def _on_objects(self, namespace: str) -> None:
        for worker in self._workers.values():
            if worker.pod["metadata"].get("namespace", "") == namespace:
                worker.objects_changed()

    def _names_changed(self) -> None:
        if self._names_timer is None:
            self._names_timer = asyncio.get_running_loop().call_later(NAMES_DELAY, self._write_names)

    def _write_names(self) -> None:
        self._names_timer = None
        self._hosts.set_names(names_of(self._services.cache.list(), self._slices.cache.list()))

    def _service_env(self, pod: Object) -> dict[str, str]:
        namespace = pod["metadata"].get("namespace", "")
        services = {service["metadata"]["name"]: service for service in self._services.cache.list(namespace)}
        links = pod["spec"].get("enableServiceLinks", True) is not False
        return {**service_env(services, links=links), **self._api_env}

    # What was left behind

    async def _tidy(self) -> None:
        await self._end_forgotten()
        await self.machine.archive.tidy()

    async def _end_forgotten(self) -> None:
        """Pods whose objects went while nobody looked: their processes and directories go."""
        for uid, spec in list(pod_specs(self.machine.data)):
            if uid in self._workers or await self._has_object(uid, spec):
                continue
            pod = SupervisedPod(PodPaths(self.machine.pod_dir(uid)), self.machine.clock, on_change=lambda: None)
            await pod.recover()
            await pod.shutdown()
            await remove_pod_dir(self.machine.pod_dir(uid))
        await self.machine.volumes.keep_only({*self._workers, *(uid for uid, _ in pod_specs(self.machine.data))})

    async def _has_object(self, uid: str, spec: Mapping[str, Any]) -> bool:
        try:
            pod = await self.machine.client.get(PODS, spec["name"], spec["namespace"])
        except NotFound:
            return False
        except ApiError:
            return True  # while the API cannot be asked, nobody is ended
        return bool(pod["metadata"]["uid"] == uid)

    @property
    def archive(self) -> LogArchive:
        return self.machine.archive

    def worker(self, namespace: str, name: str) -> PodWorker | None:
        """The newest pod of that name: its predecessor may still be on its way out."""
        for worker in reversed(self._workers.values()):
            meta = worker.pod["metadata"]
            if meta["name"] == name and meta.get("namespace", "") == namespace:
                return worker
        return None


def pod_specs(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What earlier kubelets left on record, by pod uid."""
    if not (data / "pods").is_dir():
        return
    for folder in (data / "pods").iterdir():
        if spec := wire.read_json(str(folder / wire.SPEC)):
            yield folder.name, spec
