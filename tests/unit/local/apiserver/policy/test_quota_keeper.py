"""Quotas on a store: exact totals, no double booking, nothing lost to failures or dry runs."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.quantity import written
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.objects.admission import Admission, WriteOptions
from paddlecloud.local.apiserver.objects.verbs import DeleteOptions, Verbs
from paddlecloud.local.apiserver.policy.quota_keeper import QuotaKeeper
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store


class QuotaServer:
    """Verbs on a store with quota admission and nothing else."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.registry = Registry(builtin_kinds())
        clock = FakeClock()
        admission = Admission(clock, random.Random(1))
        self.verbs = Verbs(self.store, admission, clock)
        self.keeper = QuotaKeeper(self.store, self.registry, self.verbs)
        admission.mutators.append(self.keeper.default)
        admission.policies.append(self.keeper.admit)

    def kind(self, plural: str) -> KindInfo:
        info = self.registry.find("", "v1", plural)
        assert info is not None
        return info

    async def create(self, plural: str, obj: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        options = WriteOptions(manager="test", dry_run=dry_run)
        return await self.verbs.create(self.kind(plural), obj, namespace="ns", options=options)

    async def configmap(self, name: str, **options: Any) -> dict[str, Any]:
        return await self.create("configmaps", {"metadata": {"name": name}}, **options)

    async def delete(self, plural: str, name: str) -> None:
        await self.verbs.delete(self.kind(plural), "ns", name, DeleteOptions())

    async def quota(self, name: str = "q", **hard: Any) -> None:
        spec = {"hard": {key.replace("__", "."): str(value) for key, value in hard.items()}}
        await self.create("resourcequotas", {"metadata": {"name": name}, "spec": spec})

    def used(self, name: str = "q") -> dict[str, str]:
        return {key: value for key, value in written(self.keeper.used("ns", name)).items() if value != "0"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[QuotaServer]:
    world = QuotaServer(tmp_path / "state.db")
    yield world
    await world.store.close()


def pod(name: str, **requests: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


async def test_what_was_there_before_the_quota_counts(world: QuotaServer) -> None:
    await world.configmap("a")
    await world.quota(configmaps=2)
    assert world.used() == {"configmaps": "1"}
    await world.configmap("b")
    with pytest.raises(errors.Forbidden, match="exceeded quota: q, requested: configmaps=1, used: configmaps=2"):
        await world.configmap("c")


async def test_deleting_makes_room(world: QuotaServer) -> None:
    await world.quota(configmaps=1)
    await world.configmap("a")
    await world.delete("configmaps", "a")
    assert world.used() == {}
    await world.configmap("b")


async def test_a_burst_cannot_pass_where_only_some_fit(world: QuotaServer) -> None:
    await world.quota(configmaps=5)
    results = await asyncio.gather(*(world.configmap(f"m{n}") for n in range(20)), return_exceptions=True)
    assert sum(isinstance(result, errors.Forbidden) for result in results) == 15
    assert world.used() == {"configmaps": "5"}


async def test_dry_runs_and_failures_take_no_room(world: QuotaServer) -> None:
    await world.quota(configmaps=1)
    for _ in range(5):
        await world.configmap("dry", dry_run=True)
    await world.configmap("real")
    with pytest.raises(errors.Forbidden):
        await world.configmap("real")  # refused before its name is looked at, as in Kubernetes
    await world.delete("configmaps", "real")
    await world.configmap("again")


async def test_a_finished_pod_frees_its_cpu(world: QuotaServer) -> None:
    await world.quota("q", requests__cpu=1, **{"count/pods": 5})
    await world.create("pods", pod("a", cpu="1"))
    with pytest.raises(errors.Forbidden, match=r"requested: requests\.cpu=1, used: requests\.cpu=1"):
        await world.create("pods", pod("b", cpu="1"))

    def finish(obj: dict[str, Any]) -> dict[str, Any]:
        obj["status"] = {"phase": "Succeeded"}
        return obj

    await world.verbs.update(
        world.kind("pods"), "ns", "a", finish, options=WriteOptions(manager="test"), subresource="status"
    )
    assert world.used() == {"count/pods": "1"}
    await world.create("pods", pod("b", cpu="1"))


async def test_a_changed_quota_counts_anew_and_itself(world: QuotaServer) -> None:
    await world.configmap("a")
    await world.quota(resourcequotas=5)
    assert world.used() == {"resourcequotas": "1"}

    def widen(obj: dict[str, Any]) -> dict[str, Any]:
        obj["spec"]["hard"] = {"configmaps": "5", "resourcequotas": "5"}
        return obj

    await world.verbs.update(world.kind("resourcequotas"), "ns", "q", widen, options=WriteOptions(manager="test"))
    assert world.used() == {"configmaps": "1", "resourcequotas": "1"}


async def test_other_namespaces_and_deleted_quotas_do_not_count(world: QuotaServer) -> None:
    await world.quota(configmaps=0)
    options = WriteOptions(manager="test")
    await world.verbs.create(world.kind("configmaps"), {"metadata": {"name": "a"}}, namespace="other", options=options)
    await world.delete("resourcequotas", "q")
    await world.configmap("a")


async def test_a_restart_finds_the_same_totals(world: QuotaServer) -> None:
    await world.quota(configmaps=3)
    await world.configmap("a")
    again = QuotaKeeper(world.store, world.registry, world.verbs)
    assert again.used("ns", "q") == world.keeper.used("ns", "q")


async def test_status_is_written_when_it_changed_and_only_then(world: QuotaServer) -> None:
    await world.quota(configmaps=3)
    await world.configmap("a")
    await world.keeper.write_status(("ns", "q"))
    record = world.store.get(ObjectAddress("/resourcequotas", "ns", "q"))
    assert record is not None
    assert record.object["status"] == {"hard": {"configmaps": "3"}, "used": {"configmaps": "1"}}
    revision = world.store.revision
    await world.keeper.write_status(("ns", "q"))
    await world.keeper.write_status(("ns", "q"))
    assert world.store.revision == revision


async def test_status_follows_by_itself(world: QuotaServer) -> None:
    task = asyncio.get_running_loop().create_task(world.keeper.run())
    watch = world.store.watch("/resourcequotas", "ns", since=world.store.revision)
    await world.quota(configmaps=3)
    seen: list[Any] = []
    while not seen or "used" not in seen[-1].get("status", {}):
        changes = await watch.next_batch(timeout=5)
        assert changes, "the status was not written"
        seen += [change.record.object for change in changes]
    assert seen[-1]["status"]["used"] == {"configmaps": "0"}
    task.cancel()


async def test_limit_ranges_default_and_bound_new_pods(world: QuotaServer) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "100m"}, "max": {"memory": "1Gi"}}]
    await world.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    made = await world.create("pods", pod("a"))
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"
    large = pod("b")
    large["spec"]["containers"][0]["resources"] = {"limits": {"memory": "2Gi"}}
    with pytest.raises(errors.Forbidden, match="maximum memory usage per Container is 1Gi, but limit is 2Gi"):
        await world.create("pods", copy.deepcopy(large))
    await world.delete("limitranges", "l")
    await world.create("pods", large)


async def test_random_histories_keep_the_totals_exact(world: QuotaServer) -> None:
    """Creates, deletes and refusals in bursts: at rest the total is the number of objects, never above the limit."""
    await world.quota(configmaps=8)
    rng = random.Random(7)
    for _ in range(30):
        names = [f"m{rng.randrange(14)}" for _ in range(rng.randrange(1, 10))]
        work = [world.configmap(n, dry_run=rng.random() < 0.2) if rng.random() < 0.6 else world.delete("configmaps", n)
                for n in names]  # fmt: skip
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        assert all(o is None or isinstance(o, dict | errors.ApiError) for o in outcomes)
        count = world.store.count("/configmaps", "ns")
        assert count <= 8
        assert world.used() == ({"configmaps": str(count)} if count else {})
