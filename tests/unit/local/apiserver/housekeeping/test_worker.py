"""Housekeeping that fails is tried again until it is done, whatever the moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.kube import errors
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.worker import Worker
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.housekeeping import namespaces
from paddlecloud.local.apiserver.housekeeping.own_service import OwnService
from paddlecloud.local.apiserver.objects.admission import Admission, WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.policy.quota_keeper import QuotaKeeper
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store


class Unavailable(Verbs):
    """The first writes of some kinds fail as they do while the disk is full."""

    failures: dict[str, int]

    def _fail(self, kind: KindInfo) -> None:
        left = self.failures.get(kind.kind, 0)
        if left:
            self.failures[kind.kind] = left - 1
            raise errors.ServiceUnavailable("the disk is full")

    def create(self, kind: KindInfo, *args: Any, **options: Any) -> Awaitable[Any]:  # type: ignore[override]
        self._fail(kind)
        return super().create(kind, *args, **options)

    def update(self, kind: KindInfo, *args: Any, **options: Any) -> Awaitable[Any]:  # type: ignore[override]
        self._fail(kind)
        return super().update(kind, *args, **options)


class HousekeepingServer:
    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.registry = Registry(builtin_kinds())
        clock = FakeClock()
        self.admission = Admission(clock, random.Random(1))
        self.verbs = Unavailable(self.store, self.admission, clock)
        self.verbs.failures = {}
        self.tasks: list[asyncio.Task[None]] = []

    def run(self, part: Any) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(part.run()))

    async def create(self, plural: str, name: str, *, namespace: str = "", **fields: Any) -> None:
        info = self.registry.find("", "v1", plural)
        assert info is not None
        obj = {"apiVersion": "v1", "kind": info.kind, "metadata": {"name": name}, **fields}
        await self.verbs.create(info, obj, namespace=namespace, options=WriteOptions(manager="test"))

    def has(self, collection: str, namespace: str, name: str) -> bool:
        return self.store.get(ObjectAddress(collection, namespace, name)) is not None


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[HousekeepingServer]:
    world = HousekeepingServer(tmp_path / "state.db")
    yield world
    for task in world.tasks:
        task.cancel()
    await asyncio.gather(*world.tasks, return_exceptions=True)
    await world.store.close()


@pytest.mark.parametrize("kind", ["ServiceAccount", "ConfigMap"])
async def test_a_namespace_gets_its_default_objects_although_the_disk_is_full_at_that_moment(
    world: HousekeepingServer, kind: str
) -> None:
    world.run(namespaces.NamespaceInitializer(world.store, world.registry, world.verbs, ca="the certificate"))
    world.verbs.failures[kind] = 3
    await world.create("namespaces", "team")
    await eventually(lambda: all(world.has(c, "team", name) for c, name in namespaces.DEFAULT_OBJECTS))


async def test_a_quota_that_forbids_the_default_objects_is_awaited(world: HousekeepingServer) -> None:
    refused: list[str] = []

    def forbid(info: KindInfo, obj: Any, old: Any, _: WriteOptions) -> None:
        if info.kind == "ConfigMap" and len(refused) < 3:
            refused.append(info.kind)
            raise errors.forbidden("configmaps", obj["metadata"]["name"], "exceeded quota")

    world.admission.policies.append(forbid)
    world.run(namespaces.NamespaceInitializer(world.store, world.registry, world.verbs, ca="the certificate"))
    await world.create("namespaces", "team")
    await eventually(lambda: world.has("/configmaps", "team", "kube-root-ca.crt"))


async def test_the_servers_own_service_is_published_although_the_disk_is_full_at_that_moment(
    world: HousekeepingServer,
) -> None:
    service = OwnService(world.store, world.registry, world.verbs, cluster_ip="127.1.0.1")
    world.verbs.failures = {"Service": 3, "EndpointSlice": 3, "Endpoints": 3}
    world.run(service)
    service.serve("127.0.0.1", 6443)
    await eventually(
        lambda: (
            world.has("/services", "default", "kubernetes")
            and world.has("discovery.k8s.io/endpointslices", "default", "kubernetes")
            and world.has("/endpoints", "default", "kubernetes")
        )
    )


async def test_the_status_of_a_quota_is_written_although_the_disk_is_full_at_that_moment(
    world: HousekeepingServer,
) -> None:
    world.run(QuotaKeeper(world.store, world.registry, world.verbs))
    await world.create("resourcequotas", "q", namespace="ns", spec={"hard": {"configmaps": "3"}})
    world.verbs.failures["ResourceQuota"] = 3

    def has_status() -> bool:
        record = world.store.get(ObjectAddress("/resourcequotas", "ns", "q"))
        return record is not None and "used" in record.object.get("status", {})

    await eventually(has_status)


async def test_one_key_that_fails_does_not_hold_up_the_others() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        if key == "bad":
            raise RuntimeError("a mistake")
        done.append(key)

    worker: Worker[str] = Worker("work on", work)
    for key in ("bad", "good"):
        worker.add(key)
    task = asyncio.get_running_loop().create_task(worker.run())
    await eventually(lambda: done == ["good"])
    worker.add("late")
    await eventually(lambda: done == ["good", "late"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_changes_that_come_together_share_one_run() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        done.append(key)

    worker: Worker[str] = Worker("work on", work, settle=0.05)
    task = asyncio.get_running_loop().create_task(worker.run())
    await asyncio.sleep(0)
    for _ in range(100):
        worker.add("a")
        worker.add("b")
    await eventually(lambda: len(done) >= 2)
    assert done == ["a", "b"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
