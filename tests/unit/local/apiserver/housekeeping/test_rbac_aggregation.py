"""Aggregated ClusterRoles show the rules they stand for."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.apiserver.auth.authorization import Authorizer, bootstrap_objects
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.housekeeping.role_aggregation import RoleAggregator
from paddlecloud.local.apiserver.objects.admission import Admission, WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import Registry
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

GROUP = "rbac.authorization.k8s.io"


class AggregationServer:
    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.registry = Registry(builtin_kinds())
        clock = FakeClock()
        self.verbs = Verbs(self.store, Admission(clock, random.Random(1)), clock)
        index = Authorizer(self.store).index
        self.aggregator = RoleAggregator(self.store, self.registry, self.verbs, index)

    async def create(self, obj: dict[str, Any]) -> None:
        info = self.registry.by_kind(GROUP, "v1", obj["kind"])
        assert info is not None
        await self.verbs.create(info, obj, namespace="", options=WriteOptions(manager="test"))

    def rules(self, name: str) -> list[dict[str, Any]]:
        record = self.store.get(ObjectAddress(f"{GROUP}/clusterroles", "", name))
        assert record is not None
        found: list[dict[str, Any]] = record.object.get("rules", [])
        return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[AggregationServer]:
    world = AggregationServer(tmp_path / "state.db")
    for obj in bootstrap_objects():
        await world.create(obj)
    yield world
    await world.store.close()


async def test_bootstrap_objects_pass_the_servers_own_validation_and_are_filled_in(world: AggregationServer) -> None:
    assert world.rules("view") == []
    await world.aggregator.refresh()
    assert any("pods" in rule["resources"] for rule in world.rules("view"))
    assert len(world.rules("admin")) > len(world.rules("edit")) > len(world.rules("view"))


async def test_a_new_part_is_taken_up_and_a_second_pass_writes_nothing(world: AggregationServer) -> None:
    await world.aggregator.refresh()
    rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    part = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "widgets", "labels": labels}}
    await world.create({**part, "rules": [rule]})
    await world.aggregator.refresh()
    assert all(rule in world.rules(name) for name in ("view", "edit", "admin"))
    revision = world.store.revision
    await world.aggregator.refresh()
    assert world.store.revision == revision
