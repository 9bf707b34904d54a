"""The manager: parts start and stop together, informers are shared, only a leader works, health tells the truth."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from kube_mini import MiniServer

from harness import PATIENCE
from paddlecloud.kube.cache import by_label, by_owner
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import ServiceUnavailable, Unreachable
from paddlecloud.kube.lease import Elector, LeadershipLost
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import CONFIGMAPS, PODS, Key

NS = "/api/v1/namespaces/ns/pods"


class Story:
    def __init__(self, server: MiniServer, clock: FakeClock, *, identity: str | None = None) -> None:
        self.server, self.clock = server, clock
        client = Client(server)
        elector = Elector(client, name="op", namespace="system", identity=identity, clock=clock) if identity else None
        self.manager = Manager(client, clock=clock, elector=elector, health=None)
        self.runs: list[Key] = []
        self.controller = self.manager.controller("pods", self.reconcile)
        self.controller.watch(self.manager.informer(PODS))

    async def reconcile(self, key: Key) -> float | None:
        self.runs.append(key)
        return None


async def test_it_runs_informers_and_controllers_and_stops_them() -> None:
    story = Story(MiniServer(), FakeClock())
    story.server.put(NS, "a")
    async with story.manager:
        await story.clock.settle()
        assert story.runs == [Key("ns", "a")]
        assert story.manager.not_ready() == []
    story.server.put(NS, "b")
    await story.clock.settle()
    assert story.runs == [Key("ns", "a")]
    assert len(asyncio.all_tasks()) == 1, "something was left running"


async def test_an_informer_is_shared_and_gets_every_index_asked_for() -> None:
    manager = Manager(Client(MiniServer()), clock=FakeClock())
    first = manager.informer(PODS, indexers={"owner": by_owner})
    app = by_label("app")
    assert manager.informer(PODS, indexers={"owner": by_owner, "app": app}) is first
    assert first.cache.by_index("app", "x") == []
    assert manager.informer(PODS, namespace="ns") is not first
    assert manager.informer(PODS, label_selector="a=b") is not first


async def test_what_is_declared_while_running_starts_at_once() -> None:
    story = Story(MiniServer(), FakeClock())
    story.server.put("/api/v1/namespaces/ns/configmaps", "c")
    served: list[str] = []

    async def service() -> None:
        served.append("yes")
        await asyncio.Event().wait()

    async with story.manager:
        late: list[Key] = []

        async def reconcile(key: Key) -> float | None:
            late.append(key)
            return None

        informer = story.manager.informer(CONFIGMAPS)
        controller = story.manager.controller("late", reconcile)
        controller.watch(informer)
        story.manager.add_service("reports", service)
        await story.clock.settle()
        assert late == [Key("ns", "c")]
        assert served == ["yes"]


async def test_a_part_that_fails_stops_the_whole_with_its_error() -> None:
    story = Story(MiniServer(), FakeClock())

    async def broken() -> None:
        raise RuntimeError("port in use")

    story.manager.add_service("reports", broken)
    with pytest.raises(RuntimeError, match="port in use"):
        await asyncio.wait_for(story.manager.run(), PATIENCE)
    assert len(asyncio.all_tasks()) == 1


async def test_an_error_of_one_started_in_the_background_is_raised_on_stopping() -> None:
    story = Story(MiniServer(), FakeClock())
    fail = asyncio.Event()

    async def breaking() -> None:
        await fail.wait()
        raise RuntimeError("lost its port")

    story.manager.add_service("reports", breaking)
    await story.manager.start()
    fail.set()
    await story.clock.settle()
    with pytest.raises(RuntimeError, match="lost its port"):
        await story.manager.stop()


async def test_a_part_that_just_ends_is_an_error_too() -> None:
    story = Story(MiniServer(), FakeClock())

    async def brief() -> None:
        return

    story.manager.add_service("reports", brief)
    with pytest.raises(RuntimeError, match="reports ended by itself"):
        await asyncio.wait_for(story.manager.run(), PATIENCE)


async def test_a_second_replica_keeps_its_caches_warm_and_takes_over() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "a")
    first, second = Story(server, clock, identity="one"), Story(server, clock, identity="two")
    await first.manager.start()
    await clock.settle()
    await second.manager.start()
    await clock.advance(30)
    assert first.runs == [Key("ns", "a")]
    assert second.runs == []
    assert second.manager.not_ready() == []
    await first.manager.stop()
    await clock.advance(5)
    assert second.runs == [Key("ns", "a")]
    await second.manager.stop()


async def test_a_lost_lease_ends_the_manager() -> None:
    server, clock = MiniServer(), FakeClock()
    story = Story(server, clock, identity="one")
    task = asyncio.ensure_future(story.manager.run())
    await clock.settle()
    server.refuse = lambda method, path: Unreachable("gone") if "/leases" in path else None
    await clock.advance(20)
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(task, PATIENCE)


async def test_health_ready_and_metrics_are_served() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "a")
    server.refuse = lambda method, path: ServiceUnavailable("starting")
    manager = Manager(Client(server), clock=clock, health=("127.0.0.1", 0))
    manager.informer(PODS)
    task = asyncio.ensure_future(manager.run())
    try:
        while manager.health_address is None:
            await asyncio.sleep(0)
        host, port = manager.health_address

        async def get(path: str) -> tuple[int, str]:
            async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}") as answer:
                return answer.status, await answer.text()

        assert await get("/healthz") == (200, "ok\n")
        assert await get("/readyz") == (503, "waiting for pods to be listed (ServiceUnavailable)\n")
        server.refuse = lambda method, path: None
        await clock.advance(60)
        assert await get("/readyz") == (200, "ok\n")
        status, text = await get("/metrics")
        assert status == 200
        assert 'paddlecloud_cached_objects{resource="pods"} 1' in text
        assert (await get("/else"))[0] == 404
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
