"""The kubelet of one machine: takes up the pods bound to its nodes and gives each a worker.

Several virtual nodes may share the machine; they differ in name and capacity only. When it stops, pods go on; when it
starts, it finds them again by their directories, and ends what no longer has an object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import PODS, SERVICES, Object
from paddlecloud.local.kubelet.hosts import ENDPOINTSLICES
from paddlecloud.local.kubelet.node import NodeConfig, NodeRegistration
from paddlecloud.local.kubelet.services import Machine
from paddlecloud.local.kubelet.worker import PodWorker

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Node:
    informer: Informer
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Kubelet:
    """`start` returns when the nodes are registered and their pods known; `stop` leaves the pods running."""

    def __init__(self, machine: Machine, nodes: Sequence[NodeConfig]) -> None:
        self._machine = machine
        self._configs = list(nodes)
        self._nodes: dict[str, _Node] = {}
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._background: list[asyncio.Task[None]] = []
        self._services = Informer(machine.client, SERVICES, clock=machine.clock)
        self._slices = Informer(machine.client, ENDPOINTSLICES, clock=machine.clock)

    async def start(self) -> None:
        await self._machine.launcher.start()
        for config in self._configs:
            await self.add_node(config)

    async def add_node(self, config: NodeConfig) -> None:
        machine = self._machine
        registration = NodeRegistration(machine.client, machine.clock, config, host_ip=machine.host_ip)
        await registration.register()
        informer = Informer(machine.client, PODS, field_selector=f"spec.nodeName={config.name}", clock=machine.clock)
        informer.on_change(self._on_pod)
        node = _Node(informer)
        self._nodes[config.name] = node
        node.tasks = [
            asyncio.create_task(registration.keep_alive(), name=f"heartbeat {config.name}"),
            asyncio.create_task(informer.run(), name=f"pods of {config.name}"),
        ]
        await informer.wait_synced()

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        uid = pod["metadata"]["uid"]
        if old is not None and old["metadata"]["uid"] != uid and (former := self._workers.get(old["metadata"]["uid"])):
            former.update(None)  # deleted and created again between two looks
        worker = self._workers.get(uid)
        if worker is not None:
            worker.update(new)
        elif new is not None:
            self._take_up(new)

    def _take_up(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        worker = PodWorker(pod, self._machine, on_gone=lambda: self._forget(uid))
        self._workers[uid] = worker
        meta = pod["metadata"]
        task = asyncio.create_task(worker.run(), name=f"pod {meta.get('namespace')}/{meta['name']}")
        task.add_done_callback(_report)
        self._tasks[uid] = task

    def _forget(self, uid: str) -> None:
        self._workers.pop(uid, None)
        self._tasks.pop(uid, None)

    async def stop(self) -> None:
        tasks = [*self._background, *(task for node in self._nodes.values() for task in node.tasks)]
        workers = list(self._workers.values())
        tasks += self._tasks.values()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in workers:
            await worker.leave()
        await self._machine.launcher.stop()


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("%s ended by an error", task.get_name(), exc_info=error)
