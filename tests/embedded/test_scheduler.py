"""The scheduler and simulated nodes on a whole platform: real API, real watches, nothing but processes left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.api import crd
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import SystemClock
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import EVENTS, NODES, PODGROUPS, PODS, QUEUES, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.nodes.lifecycle import NodeLifecycle
from paddlecloud.local.nodes.marks import FAILED, SIMULATE, SIMULATED
from paddlecloud.local.nodes.objects import new_node
from paddlecloud.local.nodes.simulated import SimulatedKubelet
from paddlecloud.local.scheduler.controller.pod_events import PodEvents
from paddlecloud.local.scheduler.controller.scheduler import Scheduler
from paddlecloud.local.scheduler.controller.watches import Watches
from paddlecloud.local.scheduler.decision.attempt import Why
from paddlecloud.local.scheduler.state.snapshot import pod_view
from paddlecloud.local.scheduler.state.units import Unit

LIMIT = 15.0


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A platform with the scheduler and simulated nodes, and no kubelet."""
    platform = ControlPlane(tmp_path / "data")
    await platform.start(objects=crd.generate())
    clock = SystemClock()
    manager = Manager(platform.client(user_agent="scheduler"))
    watches = Watches(manager)
    for part in (
        manager,
        Scheduler(platform.client(user_agent="scheduler"), watches),
        SimulatedKubelet(platform.client(user_agent="simulated-kubelet"), watches, clock=clock),
        NodeLifecycle(platform.client(user_agent="node-controller"), watches, clock=clock),
    ):
        platform.spawn(part.run())
    yield platform.client(user_agent="test")
    await platform.stop()


async def until(check: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first true answer of `check`; fails with `what` if none comes in time."""
    return await eventually(check, what=what)


async def add_node(client: Client, name: str, cpu: str = "4") -> None:
    node = new_node(name, SIMULATED, capacity={"cpu": cpu}, now=0.0)
    await client.create(NODES, node)
    await client.patch(NODES, name, {"status": node["status"]}, subresource="status")


async def add_pod(client: Client, name: str, cpu: str = "1", *, life: str = "", group: str = "", **spec: Any) -> Object:
    annotations = {SIMULATE: life, **({"scheduling.k8s.io/group-name": group} if group else {})}
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }
    return await client.create(PODS, body)


async def add_group(client: Client, name: str, least: int, **spec: Any) -> None:
    meta = {"name": name, "namespace": "default"}
    body = {"apiVersion": PODGROUPS.api_version, "kind": "PodGroup", "metadata": meta}
    await client.create(PODGROUPS, {**body, "spec": {"minMember": least, **spec}})


def condition(obj: Object, kind: str) -> Object:
    found = [c for c in (obj.get("status") or {}).get("conditions") or () if c["type"] == kind]
    return found[0] if found else {}


def phase(client: Client, name: str, wanted: str) -> Callable[[], Awaitable[Object | None]]:
    async def check() -> Object | None:
        pod = await client.get(PODS, name, "default")
        return pod if (pod.get("status") or {}).get("phase") == wanted else None

    return check


def refusal(client: Client, name: str, part: str) -> Callable[[], Awaitable[Object | None]]:
    async def check() -> Object | None:
        said = condition(await client.get(PODS, name, "default"), "PodScheduled")
        return said if part in said.get("message", "") else None

    return check


async def test_a_simulated_pod_lives_as_its_annotation_says(client: Client) -> None:
    await add_node(client, "n")
    await add_pod(client, "good", life="run=50ms")
    await add_pod(client, "bad", life="run=50ms,exit=3")
    await add_pod(client, "odd", life="walk=3s")
    await until(phase(client, "good", "Succeeded"), "good succeeds")
    failed = await until(phase(client, "bad", "Failed"), "bad fails")
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

    async def confused() -> bool:
        states = (await client.get(PODS, "odd", "default"))["status"].get("containerStatuses") or [{"state": {}}]
        return "walk=3s" in (states[0]["state"].get("waiting") or {}).get("message", "")

    await until(confused, "odd says what it cannot read")


async def test_a_gang_too_big_waits_with_its_reason_and_starts_when_a_node_comes(client: Client) -> None:
    await add_node(client, "n", "4")
    await add_group(client, "g", 3)
    for number in range(3):
        await add_pod(client, f"g{number}", "2", group="g")
    said = await until(refusal(client, "g2", "needs 3 pods at once, 2 fit"), "the refusal is on the pod")
    assert said["reason"] == "Unschedulable"
    assert "cpu: needs 2, 0 free of 4" in said["message"]

    async def reported() -> Object | None:
        found = condition(await client.get(PODGROUPS, "g", "default"), "Unschedulable")
        return found if "2 fit" in found.get("message", "") else None

    assert (await until(reported, "the refusal is on the PodGroup"))["reason"] == "NotEnoughResources"

    async def event() -> list[Object]:
        events = (await client.list(EVENTS, "default")).items
        return [e for e in events if e["reason"] == "FailedScheduling" and "g0" in e["involvedObject"]["name"]]

    found = (await until(event, "there is an Event"))[0]
    assert '"code":"Unschedulable"' in found["metadata"]["annotations"]["paddlecloud.org/verdict"]
    assert all(not pod["spec"].get("nodeName") for pod in (await client.list(PODS, "default")).items)

    await add_node(client, "m", "2")
    for number in range(3):
        await until(phase(client, f"g{number}", "Running"), f"g{number} runs")

    async def running() -> bool:
        status = (await client.get(PODGROUPS, "g", "default")).get("status") or {}
        return status.get("phase") == "Running" and status.get("running") == 3

    await until(running, "the PodGroup is Running with three")


async def test_a_lost_node_loses_its_pods_and_gets_none_until_it_is_back(client: Client) -> None:
    await add_node(client, "a")
    await add_pod(client, "p")
    await until(phase(client, "p", "Running"), "p runs")
    await client.patch(NODES, "a", {"metadata": {"annotations": {FAILED: "now"}}})

    async def gone() -> bool:
        try:
            await client.get(PODS, "p", "default")
        except NotFound:
            return True
        return False

    await until(gone, "the pod of the lost node is removed")
    await add_pod(client, "q")
    await until(refusal(client, "q", "node(s) were not ready"), "q finds no node")
    await client.patch(NODES, "a", {"metadata": {"annotations": {FAILED: None}}})
    await until(phase(client, "q", "Running"), "q runs once the node is back")


async def test_pods_of_a_node_that_was_deleted_are_removed(client: Client) -> None:
    await add_node(client, "a")
    await add_pod(client, "p")
    await until(phase(client, "p", "Running"), "p runs")
    await client.delete(NODES, "a")

    async def none_left() -> bool:
        return not (await client.list(PODS, "default")).items

    await until(none_left, "the orphan is removed")


async def test_an_important_pod_drives_out_another_and_takes_its_place(client: Client) -> None:
    await add_node(client, "n", "4")
    await add_pod(client, "low", "4", priority=0)
    await until(phase(client, "low", "Running"), "low runs")
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    await client.raw("POST", classes, body=important)
    await add_pod(client, "high", "3", priorityClassName="high")
    placed = await until(phase(client, "high", "Running"), "high runs")
    assert placed["spec"]["nodeName"] == "n"
    events = [e for e in (await client.list(EVENTS, "default")).items if e["reason"] == "Preempted"]
    assert "by default/high on node n" in events[0]["message"]


async def test_a_queue_holds_back_what_is_over_its_limit(client: Client) -> None:
    await add_node(client, "n", "8")
    meta = {"name": "q"}
    await client.create(
        QUEUES,
        {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": meta, "spec": {"capability": {"cpu": "2"}}},
    )
    for number in range(2):
        await add_group(client, f"g{number}", 1, queue="q")
        await add_pod(client, f"p{number}", "2", group=f"g{number}", life="run=600ms")
    await until(phase(client, "p0", "Running"), "the first runs")
    await until(
        refusal(client, "p1", "queue q may use 2 cpu: 2 in use, 2 wanted"), "the second has the reason why it waits"
    )
    await until(phase(client, "p1", "Running"), "the second runs when the first is over")


async def test_a_group_whose_least_resources_are_not_there_is_not_let_in(client: Client) -> None:
    await add_node(client, "n", "4")
    await add_group(client, "big", 2, minResources={"cpu": "8"})
    await add_group(client, "small", 2, minResources={"cpu": "4"})

    async def judged() -> bool:
        big, small = [(await client.get(PODGROUPS, name, "default")).get("status") or {} for name in ("big", "small")]
        return big.get("phase") == "Pending" and small.get("phase") == "Inqueue"

    await until(judged, "the small one is let in, the big one is not")
    said = condition(await client.get(PODGROUPS, "big", "default"), "Unschedulable")
    assert said["message"] == "cpu: needs 8 in all, 4 free of 4"


@pytest.mark.parametrize(
    ("queue", "least", "said", "remedy"),
    [
        ({}, {}, ("NoQueue", "queue q does not exist: create it, or name another"), {}),
        (
            {"state": "Closed"},
            {},
            ("QueueClosed", "queue q is closed: open it, or name another"),
            {"status": {"state": "Open"}},
        ),
        (
            {"capability": {"cpu": "2"}},
            {"minResources": {"cpu": "3"}},
            ("QueueTooSmall", "queue q may use 2 cpu, 3 wanted in all: raise its capability, or ask for less"),
            {"spec": {"capability": {"cpu": "3"}}},
        ),
    ],
    ids=["missing", "closed", "too small"],
)
async def test_a_group_that_its_queue_can_never_serve_is_not_let_in_and_says_why(
    client: Client, queue: Object, least: Object, said: tuple[str, str], remedy: Object
) -> None:
    """So that nobody makes pods which could only wait; it is let in as soon as the queue is mended."""
    await add_node(client, "n", "4")
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}
    if queue:
        body["spec"] = {key: value for key, value in queue.items() if key != "state"}
        await client.create(QUEUES, body)
        if state := queue.get("state"):
            await client.patch(QUEUES, "q", {"status": {"state": state}}, subresource="status")
    await add_group(client, "g", 1, queue="q", **least)

    async def reported() -> bool:
        found = await client.get(PODGROUPS, "g", "default")
        why = condition(found, "Unschedulable")
        pending = (found.get("status") or {}).get("phase") == "Pending"
        return pending and (why.get("reason"), why.get("message")) == said

    await until(reported, said[1])
    if not queue:
        await client.create(QUEUES, body)
    else:
        await client.patch(QUEUES, "q", remedy, subresource="status" if "status" in remedy else None)

    async def let_in() -> bool:
        return ((await client.get(PODGROUPS, "g", "default")).get("status") or {}).get("phase") == "Inqueue"

    await until(let_in, "the group is let in")


async def test_a_scheduler_that_came_back_keeps_the_event_of_its_earlier_life_up_to_date(client: Client) -> None:
    await add_pod(client, "p", nodeSelector={"no": "where"})

    async def messages() -> list[str]:
        return [event["message"] for event in (await client.list(EVENTS, "default")).items]

    await until(messages, "the pod has the reason why it waits")
    unit = Unit((pod_view(await client.get(PODS, "p", "default")),))
    later = PodEvents(client, SystemClock(), still_waits=lambda uid: True)
    sending = asyncio.ensure_future(later.run())
    for text in ("another life says this", "and then this"):
        later.refuse(unit, Why(text, text))

        async def reported(text: str = text) -> bool:
            return await messages() == [text]

        await until(reported, text)
    sending.cancel()


async def test_no_pod_is_placed_twice_or_over_capacity_in_a_crowd(client: Client) -> None:
    for name in "abc":
        await add_node(client, name, "10")
    await asyncio.gather(*(add_pod(client, f"p{number}") for number in range(40)))

    async def full() -> bool:
        pods = (await client.list(PODS, "default")).items
        return sum(1 for pod in pods if (pod.get("status") or {}).get("phase") == "Running") == 30

    await until(full, "thirty run")
    where = [pod["spec"].get("nodeName") for pod in (await client.list(PODS, "default")).items]
    assert sorted(where.count(name) for name in "abc") == [10, 10, 10]
    assert where.count(None) == 10
