"""A cluster on paper: a real API server, scheduler, StatefulSets, volume binder and simulated nodes in this process.

Only the cache servers are played: `Played` answers what they would, by pod. Time moves when `until` waits.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlecloud.api import crd
from paddlecloud.controllers.sampledata.samplejob import SampleJobController
from paddlecloud.controllers.sampledata.sampleset import SampleSetController, SampleSetOptions
from paddlecloud.controllers.sampledata.servers.requests import ServerAddress, Servers, ServerSilent, Work
from paddlecloud.controllers.sampledata.servers.responses import Figures, JobReport
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import EVENTS, NODES, PADDLEJOBS, SAMPLEJOBS, SAMPLESETS, SECRETS, Object, Resource
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.nodes.marks import FAILED, SIMULATED_TAINT
from unit.local.nodes.simulated_platform import simulated_platform

NAMESPACE = "default"
TOLERATIONS = [{"key": SIMULATED_TAINT, "operator": "Exists"}]
GIB = 1 << 30


@dataclass
class Played(Servers):
    """The cache servers. `ends` says how jobs of a type end; a type without an end runs on."""

    ends: dict[str, JobReport] = field(default_factory=lambda: {t: done() for t in ("sync", "warmup", "rmr", "clear")})
    figures_of: dict[str, Figures] = field(default_factory=dict)
    orders: dict[tuple[str, str], Work] = field(default_factory=dict)
    cancelled: list[tuple[str, str]] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    puts: int = 0

    async def close(self) -> None:
        return None

    def _record(self, server: ServerAddress) -> None:
        self.tokens.add(server.access.token)
        if server.pod in self.silent:
            raise ServerSilent(f"{server.pod} does not answer: played")

    async def figures(self, server: ServerAddress) -> Figures:
        self._record(server)
        return self.figures_of.get(server.pod) or Figures(
            total_bytes=4 * GIB, total_files=128660, cached_bytes=GIB, disk_bytes=20 * GIB, disk_avail_bytes=12 * GIB
        )

    async def job(self, server: ServerAddress, id: str) -> JobReport | None:
        self._record(server)
        work = self.orders.get((server.pod, id))
        return None if work is None else self.ends.get(work.type) or JobReport(id=id, state="Running")

    async def jobs(self, server: ServerAddress) -> list[JobReport]:
        self._record(server)
        return [JobReport(id=id, state="Running") for pod, id in self.orders if pod == server.pod]

    async def submit(self, server: ServerAddress, work: Work) -> JobReport:
        self._record(server)
        self.puts += 1
        self.orders.setdefault((server.pod, work.id), work)
        return JobReport(id=work.id)

    async def cancel(self, server: ServerAddress, id: str) -> None:
        self._record(server)
        self.cancelled.append((server.pod, id))

    def asked(self, type: str) -> dict[str, Work]:
        """The last order of a type, by pod."""
        return {pod: work for (pod, _), work in self.orders.items() if work.type == type}


def condition(status: Object, name: str) -> tuple[str, str]:
    found = next((c for c in status.get("conditions") or () if c["type"] == name), {})
    return found.get("status", ""), found.get("message", "")


def done() -> JobReport:
    return JobReport(state="Succeeded")


def failed(why: str) -> JobReport:
    return JobReport(state="Failed", message=why)


@dataclass
class SampleDataCluster:
    platform: ControlPlane
    clock: FakeClock
    servers: Played = field(default_factory=Played)
    options: SampleSetOptions = field(
        default_factory=lambda: SampleSetOptions(image="runtime", local_root="/var/lib/sets")
    )

    def __post_init__(self) -> None:
        self.client = self.platform.client(user_agent="test")
        self._controllers: list[asyncio.Task[Any]] = []
        self.history: dict[str, list[str]] = {}
        """The phases that sets and jobs went through, by name."""

    async def watch(self, resource: Resource, note: Callable[[Object | None, Object | None], None]) -> None:
        """Call `note` with every change from now on."""
        informer = Informer(self.platform.client(user_agent="history"), resource, clock=self.clock)
        self.platform.spawn(informer.run())
        await informer.wait_synced()
        informer.on_change(note)

    async def watch_phases(self) -> None:
        for resource in (SAMPLESETS, SAMPLEJOBS):
            await self.watch(resource, self._note)

    def _note(self, old: Object | None, new: Object | None) -> None:
        before, after = (((obj or {}).get("status") or {}).get("phase") for obj in (old, new))
        if new is not None and after and before != after:
            self.history.setdefault(new["metadata"]["name"], []).append(after)

    def start_controllers(self) -> None:
        for make in (SampleSetController, SampleJobController):
            client = self.platform.client(user_agent=make.__name__)
            controller = make(client, options=self.options, clock=self.clock, servers=self.servers)
            self._controllers.append(self.platform.spawn(controller.run()))

    async def stop_controllers(self) -> None:
        for task in self._controllers:
            task.cancel()
        await asyncio.gather(*self._controllers, return_exceptions=True)
        self._controllers.clear()

    async def until(self, check: Callable[[], Awaitable[Any]], *, seconds: float = 300) -> Any:
        """Let time pass until an async function gives something true."""
        for _ in range(int(seconds / 0.25)):
            if value := await check():
                return value
            await self.clock.advance(0.25)
            await asyncio.sleep(0.002)
        raise AssertionError(f"did not happen within {seconds} s: {check.__doc__ or check}")

    async def pass_time(self, seconds: float) -> None:
        """Long times pass in longer steps."""
        steps = int(min(seconds / 0.25, 120))
        for _ in range(steps):
            await self.clock.advance(seconds / steps)
            await asyncio.sleep(0.002)

    # Making and reading

    async def create_set(self, name: str = "imagenet", *, namespace: str = NAMESPACE, **spec: Any) -> Object:
        spec = {"source": {"uri": "bos://bucket.endpoint/imagenet"}, "tolerations": TOLERATIONS, **spec}
        return await self._create(SAMPLESETS, name, namespace, spec)

    async def create_job(self, name: str, type: str, *, set: str = "imagenet", **spec: Any) -> Object:
        return await self._create(SAMPLEJOBS, name, NAMESPACE, {"type": type, "sampleSetRef": {"name": set}, **spec})

    async def _create(self, resource: Resource, name: str, namespace: str, spec: Object) -> Object:
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
        return await self.client.create(resource, body)

    async def create_reader(self, name: str, *, namespace: str = NAMESPACE, of: str | None = None) -> Object:
        """A PaddleJob that names the set, `of` a namespace or its own."""
        ref = {"name": "imagenet", "mountPath": "/data", **({"namespace": of} if of else {})}
        spec = {"sampleSetRef": ref, "worker": {"replicas": 1, "template": {}}}
        return await self._create(PADDLEJOBS, name, namespace, spec)

    async def create_secret(self, called: str, /, *, namespace: str = NAMESPACE, **values: str) -> None:
        data = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in values.items()}
        meta = {"name": called, "namespace": namespace}
        await self.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})

    async def get(self, resource: Resource, name: str, namespace: str | None = NAMESPACE) -> Object | None:
        try:
            return await self.client.get(resource, name, namespace)
        except NotFound:
            return None

    async def status(self, resource: Resource, name: str, namespace: str = NAMESPACE) -> Object:
        found = await self.get(resource, name, namespace)
        return dict((found or {}).get("status") or {})

    async def phase(
        self, wanted: str, name: str = "imagenet", *, of: Resource = SAMPLESETS, namespace: str = NAMESPACE
    ) -> Object:
        """Wait for a phase; the status that has it."""

        async def reached() -> Object | None:
            status = await self.status(of, name, namespace)
            return status if status.get("phase") == wanted else None

        try:
            found: Object = await self.until(reached)
        except AssertionError:
            raise AssertionError(f"not {wanted}: {await self.status(of, name, namespace)}") from None
        return found

    async def gone(self, resource: Resource, name: str, namespace: str | None = NAMESPACE) -> None:
        async def is_gone() -> bool:
            return await self.get(resource, name, namespace) is None

        await self.until(is_gone)

    async def edit(self, resource: Resource, name: str, spec: Object, namespace: str = NAMESPACE) -> None:
        await self.client.patch(resource, name, {"spec": spec}, namespace=namespace)

    async def reasons(self, name: str) -> list[str]:
        events = (await self.client.list(EVENTS, NAMESPACE)).items
        return [event["reason"] for event in events if event["involvedObject"]["name"] == name]

    async def said(self, name: str, *reasons: str) -> None:
        """Wait for events: they are written a moment after the status."""

        async def there() -> bool:
            return set(reasons) <= set(await self.reasons(name))

        await self.until(there, seconds=20)

    async def labels(self, key: str) -> dict[str, str]:
        """Nodes that carry a label, with its value."""
        nodes = (await self.client.list(NODES)).items
        found = {node["metadata"]["name"]: node["metadata"].get("labels", {}).get(key) for node in nodes}
        return {node: value for node, value in found.items() if value}

    async def lose_node(self, name: str) -> None:
        await self.client.patch(NODES, name, {"metadata": {"annotations": {FAILED: "now"}}})


@asynccontextmanager
async def world(folder: Path, *, nodes: int = 3) -> AsyncIterator[SampleDataCluster]:
    async with simulated_platform(folder, crd.generate()) as platform:
        for number in range(nodes):
            await platform.add_node(f"node-{number}")
        found = SampleDataCluster(platform.control_plane, platform.clock)
        await found.watch_phases()
        found.start_controllers()
        yield found
        await found.stop_controllers()
