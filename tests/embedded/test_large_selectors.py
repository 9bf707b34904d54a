"""Selectors of a hundred thousand values: objects of one tenant with such a selector hold up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from harness import eventually, longest_turn
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PODDISRUPTIONBUDGETS, PODS, REPLICASETS, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.workloads.workloads import Workloads

LONGEST = 0.25
"""CPU seconds of the event loop in one turn (SECURITY.md)."""
OBJECTS = 12
SELECTOR = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{n:06d}" for n in range(100_000)]}]}
CONTAINERS = [{"name": "c", "image": "busybox"}]


@pytest.fixture
async def workloads(inner: ControlPlane) -> AsyncIterator[Workloads]:
    running = Workloads(inner)
    task = asyncio.ensure_future(running.run())
    yield running
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def longest_of(work: Coroutine[Any, Any, Any]) -> float:
    asked = asyncio.ensure_future(work)
    longest = await longest_turn(asked)
    asked.result()
    return longest


def pod(label: str) -> Object:
    return {"metadata": {"name": "p", "labels": {"app": label}}, "spec": {"containers": CONTAINERS}}


def replica_set(name: str, selector: Object, label: str) -> Object:
    template = {"metadata": {"labels": {"app": label}}, "spec": {"containers": CONTAINERS}}
    return {"metadata": {"name": name}, "spec": {"replicas": 0, "selector": selector, "template": template}}


async def test_a_pod_is_offered_to_sets_with_large_selectors_quickly(client: Client, workloads: Workloads) -> None:
    for number in range(OBJECTS):
        await client.create(REPLICASETS, replica_set(f"r{number}", SELECTOR, "v000000"), namespace="default")
    small = replica_set("small", {"matchLabels": {"app": "other"}}, "other")
    small["spec"]["replicas"] = 1
    await client.create(PODS, pod("none"), namespace="default")
    await client.create(REPLICASETS, small, namespace="default")

    async def offered() -> None:
        await client.patch(PODS, "p", {"metadata": {"labels": {"app": "other"}}}, namespace="default")
        await eventually(adopted, True, what="the set that selects the pod adopted it, or made one of its own")

    async def adopted() -> bool:
        found = (await client.list(PODS, "default")).items
        return any(each["metadata"].get("ownerReferences") for each in found)

    assert await longest_of(offered()) < LONGEST


async def test_an_eviction_is_judged_by_large_budgets_quickly(client: Client, workloads: Workloads) -> None:
    await client.create(PODS, pod("none"), namespace="default")
    for number in range(OBJECTS):
        budget = {"metadata": {"name": f"b{number}"}, "spec": {"minAvailable": 0, "selector": SELECTOR}}
        await client.create(PODDISRUPTIONBUDGETS, budget, namespace="default")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    evicted = client.raw("POST", "/api/v1/namespaces/default/pods/p/eviction", body=eviction)
    assert await longest_of(evicted) < LONGEST
