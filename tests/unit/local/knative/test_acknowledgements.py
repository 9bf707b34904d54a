"""A route is ready when every gateway has its traffic: played with a gateway that acknowledges on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.api import crd
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.knative.acknowledgements import LATE
from paddlecloud.local.knative.gateway.sockets import connect_unix
from paddlecloud.local.knative.knative import Knative
from paddlecloud.local.knative.names import REVISION, REVISIONS, ROUTES, SERVICES
from paddlecloud.local.knative.supervisor import Gateways

NOBODY = 1 << 23
"""A number that no process has."""
HOST = {"host:a.example.com": [["default/a", 100]]}


class Process:
    """The line of a gateway process that serves no requests.

    Of the messages that contain `holds`, and of those after them, it acknowledges none before `release`.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, holds: str) -> None:
        self._reader, self._writer = reader, writer
        self.holds = holds
        self.held: list[int] = []
        self.connected = asyncio.Event()

    def send(self, message: Any) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def follow(self) -> None:
        while line := await self._reader.readline():
            message = json.loads(line)
            self.connected.set()
            if self.held or self.holds in line.decode():
                self.held.append(message["version"])
                continue
            self.send({"applied": message["version"]})
            if "all" in message:
                self.send({"ready": True})

    def release(self) -> None:
        self.send({"applied": self.held[-1]})
        self.held = []

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def process(
    gateways: Gateways, folder: Path, *, holds: str = "a.example.com", **hello: Any
) -> AsyncIterator[Process]:
    reader, writer = await connect_unix(str(folder / "control"))
    made = Process(reader, writer, holds)
    following = asyncio.ensure_future(made.follow())
    made.send({"hello": {"pid": NOBODY, "number": 7, "port": gateways.port, **hello}})
    try:
        await made.connected.wait()
        yield made
    finally:
        following.cancel()
        made.close()


class OneGateway:
    """One real gateway process; `receive` counts what the supervisor has reported."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder = folder
        self.clock = clock
        self.receive = 0
        self.gateways = Gateways(
            folder,
            changed=lambda: None,
            report=lambda report: None,
            wake=lambda name: None,
            acknowledged=self._acknowledged,
            count=1,
            clock=clock,
        )

    def _acknowledged(self) -> None:
        self.receive += 1

    def has(self, version: int) -> bool:
        assert self.gateways.port is not None
        return self.gateways.has(version, self.gateways.port)

    async def held(self, process: Process) -> int:
        """A version that the real process has acknowledged, and this one has received and not acknowledged."""
        await eventually(lambda: self.has(0), what="both processes have the table of before")
        before = self.receive
        version = self.gateways.publish(HOST)
        await eventually(lambda: process.held[-1:] == [version] and self.receive > before)
        return version


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[OneGateway]:
    made = OneGateway(tmp_path / "gateway", FakeClock())
    await made.gateways.ensure()
    await eventually(lambda: made.gateways.ready, what="a gateway takes connections")
    yield made
    await made.gateways.stop(processes=True)


@pytest.mark.parametrize(
    "goes", [Process.release, Process.close], ids=["the last gateway acknowledges", "the last gateway dies"]
)
async def test_a_table_is_followed_when_no_gateway_is_waited_for_any_more(
    world: OneGateway, goes: Callable[[Process], None]
) -> None:
    async with process(world.gateways, world.folder, listening=True) as slow:
        version = await world.held(slow)
        assert not world.has(version)
        assert world.has(version - 1), "what was there before is followed all the time"
        before = world.receive
        goes(slow)
        await eventually(lambda: world.receive > before, what="routes that wait are looked at again")
        assert world.has(version)


async def test_a_gateway_that_hangs_is_waited_for_a_while_and_then_no_more(world: OneGateway) -> None:
    async with process(world.gateways, world.folder, listening=True) as hung:
        version = await world.held(hung)
        await world.clock.advance(LATE - 0.1)
        assert not world.has(version)
        await world.clock.advance(0.1)
        assert world.has(version)
        before = world.receive
        later = world.gateways.publish({"host:b.example.com": [["default/b", 100]]})
        await eventually(lambda: world.receive > before)
        assert world.has(later), "other routes do not wait for it again"
        before = world.receive
        hung.release()
        await eventually(lambda: world.receive > before)
        before = world.receive
        again = world.gateways.publish({"host:a.example.com": [["default/c", 100]]})
        await eventually(lambda: hung.held == [again] and world.receive > before)
        assert not world.has(again), "one that goes on counts again"


async def test_a_gateway_that_joins_delays_no_route_that_is_served(world: OneGateway) -> None:
    """It takes no connections before it has the whole table; the one after that it must acknowledge like the others."""
    version = world.gateways.publish(HOST)
    await eventually(lambda: world.has(version))
    async with process(world.gateways, world.folder, listening=False) as starting:
        await eventually(lambda: starting.held == [version])
        assert world.has(version)
        before = world.receive
        later = world.gateways.publish({"host:b.example.com": [["default/b", 100]]})
        await eventually(lambda: starting.held == [version, later] and world.receive > before)
        assert not world.has(later)


async def test_a_gateway_of_an_earlier_release_does_not_hold_routes_back(world: OneGateway) -> None:
    async with process(world.gateways, world.folder, holds="version") as old:  # it acknowledges nothing, ever
        assert world.has(await world.held(old))


# Routes


class Served:
    """A platform with Knative and no kubelet: the test plays the pods."""

    def __init__(self, platform: ControlPlane, knative: Knative, clock: FakeClock) -> None:
        self.client = platform.client(user_agent="test")
        self.gateways, self.folder = knative.gateways, platform.data / "gateway"
        self._clock = clock

    async def ingress(self) -> Object:
        route = await self.client.get(ROUTES, "s", "default")
        return next((c for c in (route.get("status") or {}).get("conditions") or () if c["type"] == "IngressReady"), {})

    async def until(self, **wanted: str) -> None:
        async def look() -> Object:
            await self._clock.advance(0.001)
            return await self.ingress()

        await eventually(look, lambda found: wanted.items() <= found.items())

    async def pass_by(self, seconds: float) -> None:
        await self._clock.advance(seconds)

    async def create(self) -> str:
        """A Service that has no pod yet; the name of its revision."""
        template = {"spec": {"containers": [{"image": "i"}]}}
        service = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": {"template": template}}
        await self.client.create(SERVICES, {**service, "metadata": {"name": "s", "namespace": "default"}})

        async def revision() -> list[Object]:
            await self._clock.advance(0.001)
            return list((await self.client.list(REVISIONS, "default")).items)

        (made,) = await eventually(revision)
        return str(made["metadata"]["name"])

    async def answer(self, revision: str) -> None:
        """The first pod of the revision is ready."""
        pod = {"name": "p", "namespace": "default", "labels": {REVISION: revision}}
        containers = [{"name": "user-container", "image": "i"}]
        await self.client.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {"containers": containers}}
        )
        status = {"phase": "Running", "podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
        await self.client.patch(PODS, "p", {"status": status}, namespace="default", subresource="status")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    clock = FakeClock()
    platform = ControlPlane(tmp_path / "data", clock=clock, seed=1)
    await platform.start(objects=crd.generate())
    knative = Knative(platform, gateways=1)
    task = platform.spawn(knative.run())
    yield Served(platform, knative, clock)
    await knative.stop(gateways=True)
    task.cancel()
    await platform.stop()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_route_waits_for_the_acknowledgement_of_every_gateway_that_does_not_hang(
    served: Served, hangs: bool
) -> None:
    revision = await served.create()
    await eventually(lambda: served.gateways.port, what="the first route has the gateways started")
    async with process(served.gateways, served.folder, holds="host:s.default.", listening=True) as slow:
        await served.answer(revision)
        await served.until(status="Unknown", reason="IngressNotConfigured")
        await eventually(lambda: slow.held, what="the traffic is published")
        await served.pass_by(LATE - 1)
        assert (await served.ingress())["status"] == "Unknown"
        if hangs:
            await served.pass_by(2)
        else:
            slow.release()
        await served.until(status="True")
