"""Keeps the machine's kubelet and the Node objects that `pdc` made in step, in both directions.

A virtual node is an object first: creating one with the label `paddlecloud.org/node: virtual` starts a kubelet
for it, a restart of the platform finds it again, and `pdc node fail` takes the kubelet from it and its processes away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import NODES, Object
from paddlecloud.kube.worker import Worker
from paddlecloud.local.kubelet.node.kubelet import Kubelet
from paddlecloud.local.kubelet.node.node import NodeConfig
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.supervised import SupervisedPod
from paddlecloud.local.nodes.marks import NODE_KIND, SIMULATED, VIRTUAL
from paddlecloud.local.nodes.node_loss import failed
from paddlecloud.local.nodes.objects import declared_capacity, new_node, simulated_name
from paddlecloud.local.scheduler.controller.watches import ON_NODE, Watches

CONCURRENCY = 32


class NodeKeeper:
    """`own` are the nodes the kubelet was started with: those of the machine itself. `run` works until cancelled."""

    def __init__(
        self, client: Client, watches: Watches, kubelet: Kubelet, *, own: Sequence[NodeConfig], clock: Clock
    ) -> None:
        self._client = client
        self._watches = watches
        self._kubelet = kubelet
        self._clock = clock
        self._configs = {config.name: config for config in own}
        self._serving = set(self._configs)
        self._worker: Worker[str] = Worker("kubelet of node", self._follow)
        watches.nodes.on_change(self._on_node)

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        node = new or old
        assert node is not None
        name = node["metadata"]["name"]
        if name in self._configs or _kind(node) == VIRTUAL:
            self._worker.add(name)

    async def run(self) -> None:
        await self._watches.synced()
        await self._forget_former()
        await self._worker.run()

    async def _forget_former(self) -> None:
        """Nodes of an earlier start that this one does not have: nobody serves them any more."""
        for node in self._watches.nodes.cache.list():
            name = node["metadata"]["name"]
            if _is_the_machines(node) and name not in self._configs:
                await self._delete(name)

    async def _follow(self, name: str) -> None:
        """What fails half-way is retried: both calls may be repeated."""
        node = next((n for n in self._watches.nodes.cache.list() if n["metadata"]["name"] == name), None)
        wanted = node is not None and not failed(node)
        if wanted and name not in self._serving:
            await self._kubelet.add_node(self._configs.get(name) or _config(node or {}))
            self._serving.add(name)
        elif not wanted and name in self._serving:
            await self._kubelet.remove_node(name)
            await self._switch_off(name)
            self._serving.discard(name)

    async def _switch_off(self, name: str) -> None:
        """End the processes of a lost node's pods, as its loss would have."""
        for pod in self._watches.pods.cache.by_index(ON_NODE, name):
            folder = self._kubelet.machine.pod_dir(pod["metadata"]["uid"])
            if folder.exists():
                supervised = SupervisedPod(PodPaths(folder), self._clock, on_change=lambda: None)
                await supervised.recover()
                await supervised.shutdown()

    # Simulated nodes

    async def simulate(self, count: int, capacity: Mapping[str, str]) -> None:
        """Have exactly the simulated nodes 1 to `count` of those that are numbered."""
        listed = await self._client.list(NODES, label_selector=f"{NODE_KIND}={SIMULATED}")
        known = {node["metadata"]["name"]: node for node in listed.items}
        wanted = {simulated_name(number) for number in range(1, count + 1)}
        numbered = {name for name in known if name.removeprefix("simulated-").isdigit()}
        limit = asyncio.Semaphore(CONCURRENCY)

        async def make(name: str) -> None:
            async with limit:
                await self._make(name, capacity, exists=name in known)

        async def drop(name: str) -> None:
            async with limit:
                await self._delete(name)

        changed = {name for name in wanted & numbered if not _has(known[name], capacity)}
        await asyncio.gather(
            *(make(name) for name in sorted((wanted - numbered) | changed, key=_number)),
            *(drop(name) for name in numbered - wanted),
        )

    async def _make(self, name: str, capacity: Mapping[str, str], *, exists: bool) -> None:
        node = new_node(name, SIMULATED, capacity=capacity, now=self._clock.now())
        if not exists:
            await self._client.create(NODES, node)
        await self._client.patch(NODES, name, {"status": node["status"]}, subresource="status")

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(NODES, name)
        except errors.NotFound:
            pass  # somebody else was faster


async def nodes_before(client: Client) -> int:
    """Among how many nodes an earlier start divided the machine; 0 if there was none."""
    return sum(map(_is_the_machines, (await client.list(NODES)).items))


def _is_the_machines(node: Object) -> bool:
    """The machine or a part of it, and none that `pdc node add` made."""
    runtime = ((node.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion", "")
    return runtime.startswith("process://") and not _kind(node)


def _kind(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(NODE_KIND) or "")


def _config(node: Object) -> NodeConfig:
    """What the object declares, for the kubelet to repeat."""
    meta = node["metadata"]
    return NodeConfig(
        meta["name"],
        capacity=declared_capacity(node),
        labels=dict(meta.get("labels") or {}),
        taints=tuple((node.get("spec") or {}).get("taints") or ()),
        declared=True,
    )


def _has(node: Object, capacity: Mapping[str, str]) -> bool:
    declared = (node.get("status") or {}).get("capacity") or {}
    return all(declared.get(name) == amount for name, amount in capacity.items())


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
