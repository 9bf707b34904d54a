"""The controllers on the real API server, without kubelets: writes counted, refusals reported, restarts harmless."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from harness import PATIENCE, eventually
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.conditions import condition_in, conditions_of
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import (
    DEPLOYMENTS,
    ENDPOINTS,
    ENDPOINTSLICES,
    EVENTS,
    JOBS,
    PODS,
    REPLICASETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
)
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.workloads.workloads import CONTROLLERS, Workloads

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LABELS = {"app": "web"}


def template(**meta: Any) -> Object:
    return {"metadata": {"labels": LABELS, **meta}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}


def workload(replicas: int, **spec: Any) -> Object:
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return {"metadata": {"name": "web"}, "spec": body}


def job(**spec: Any) -> Object:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    return {"metadata": {"name": "work"}, "spec": {"template": pod, **spec}}


@pytest.fixture
async def workloads(inner: ControlPlane) -> AsyncIterator[Workloads]:
    running = Workloads(inner)
    task = asyncio.ensure_future(running.run())
    yield running
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(what: str, condition: Callable[[], Awaitable[bool]], clock: FakeClock | None = None) -> None:
    """Wait for news; with `clock`, while its time passes."""

    async def look() -> bool:
        if clock:
            await clock.advance(0.1)
        return await condition()

    await eventually(look, what=what)


async def pods(client: Client) -> list[Object]:
    return (await client.list(PODS, "default")).items


async def become_ready(client: Client, pod: Object, address: str = "127.70.1.1") -> None:
    meta = pod["metadata"]
    status = {"phase": "Running", "podIP": address, "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(PODS, meta["name"], {"status": status}, namespace="default", subresource="status")


async def test_two_hundred_pods_are_made_once_with_few_writes(
    client: Client, workloads: Workloads, clock: FakeClock
) -> None:
    before = int((await client.list(PODS, "default")).resource_version)
    await client.create(DEPLOYMENTS, workload(200), namespace="default")

    async def counted() -> bool:
        found = (await client.list(REPLICASETS, "default")).items
        return bool(found) and (found[0].get("status") or {}).get("replicas") == 200

    await until("the set counts 200 pods", counted, clock)
    assert len(await pods(client)) == 200
    after = int((await client.list(PODS, "default")).resource_version)
    assert after - before < 200 + 40, "beyond the pods themselves only a handful of writes"


async def test_a_quota_is_reported_on_the_set_and_the_deployment_and_lifted_when_it_is_raised(
    client: Client, workloads: Workloads
) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    await client.create(QUOTAS, quota, namespace="default")
    await client.create(DEPLOYMENTS, workload(2), namespace="default")

    async def refused() -> bool:
        obj = await client.get(DEPLOYMENTS, "web", "default")
        failure = condition_in(conditions_of(obj), "ReplicaFailure")
        return failure is not None and "exceeded quota: few" in failure["message"]

    await until("the refusal shows on the deployment", refused)
    assert len(await pods(client)) == 1
    events = (await client.list(EVENTS, "default", field_selector="reason=FailedCreate")).items
    assert any("exceeded quota" in event["message"] for event in events)
    await client.patch(QUOTAS, "few", {"spec": {"hard": {"pods": "5"}}}, namespace="default")
    await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, namespace="default")

    async def healed() -> bool:
        obj = await client.get(DEPLOYMENTS, "web", "default")
        return len(await pods(client)) == 3 and condition_in(conditions_of(obj), "ReplicaFailure") is None

    await until("the deployment has its pods and no complaint", healed)


async def test_a_stopped_controller_is_taken_over_without_a_pod_too_many(inner: ControlPlane, client: Client) -> None:
    """Ended at any moment: the next one finds what was done and does the rest."""
    sets = workload(3, serviceName="x", podManagementPolicy="Parallel")
    await client.create(STATEFULSETS, sets, namespace="default")
    await client.create(JOBS, job(completions=4, parallelism=4), namespace="default")
    await client.create(REPLICASETS, {**workload(5), "metadata": {"name": "other"}}, namespace="default")

    async def complete() -> bool:
        return len(await pods(client)) == 12

    for pause in (0.0, 0.002, 0.005, 0.01, 0.02, None):
        manager = Manager(inner.client(user_agent="workloads"), clock=inner.clock)
        for declare in CONTROLLERS:
            declare(manager, inner.clock)
        task = asyncio.ensure_future(manager.run())
        if pause is None:
            await until("all pods are there", complete)
        else:
            await asyncio.sleep(pause)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(await pods(client)) <= 12


async def test_what_is_not_served_is_refused_when_it_is_created(client: Client, workloads: Workloads) -> None:
    sets = workload(1, serviceName="x", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
    with pytest.raises(Invalid, match="this platform does not serve it"):
        await client.create(STATEFULSETS, sets, namespace="default")


async def test_endpoints_follow_pods_in_both_forms(client: Client, workloads: Workloads) -> None:
    await client.create(REPLICASETS, workload(1), namespace="default")
    svc = {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}}
    await client.create(SERVICES, svc, namespace="default")

    async def made() -> bool:
        return len(await pods(client)) == 1

    await until("the pod is there", made)
    await become_ready(client, (await pods(client))[0])

    async def of_web() -> list[Object]:
        return (await client.list(ENDPOINTS, "default", field_selector="metadata.name=web")).items

    async def shown() -> bool:
        piece = (await client.list(ENDPOINTSLICES, "default", label_selector="kubernetes.io/service-name=web")).items
        old = await of_web()
        return bool(
            piece
            and piece[0]["endpoints"]
            and piece[0]["endpoints"][0]["conditions"]["ready"]
            and any((one.get("subsets") or [{}])[0].get("addresses") for one in old)
        )

    await until("both forms show the pod", shown)
    await client.delete(SERVICES, "web", namespace="default")

    async def gone() -> bool:
        piece = (await client.list(ENDPOINTSLICES, "default", label_selector="kubernetes.io/service-name=web")).items
        return not piece and not await of_web()

    await until("both go with the service", gone)


async def test_a_service_is_reached_as_soon_as_an_endpoint_is_ready_and_a_taken_port_is_reported(
    client: Client, workloads: Workloads, clock: FakeClock
) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    backend = await asyncio.start_server(greet, "127.70.9.9", 0)
    port = backend.sockets[0].getsockname()[1]
    svc = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 8765, "targetPort": port}]}}
    address = (await client.create(SERVICES, svc, namespace="default"))["spec"]["clusterIP"]
    squatter = await asyncio.start_server(greet, address, 8765)
    by_hand = {
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.70.9.9"]}],
        "ports": [{"name": "", "port": port}],
    }
    await client.create(ENDPOINTSLICES, by_hand, namespace="default")

    async def reported() -> bool:
        events = (await client.list(EVENTS, "default", field_selector="reason=PortUnavailable")).items
        return any(f"cannot listen on {address}:8765: another program" in event["message"] for event in events)

    await until("the taken port is reported", reported, clock)
    squatter.close()
    await squatter.wait_closed()

    async def answered() -> bool:
        try:
            reader, writer = await asyncio.open_connection(address, 8765)
        except ConnectionRefusedError:
            return False
        try:
            return await asyncio.wait_for(reader.read(), PATIENCE) == b"hello"
        finally:
            writer.close()

    await until("the service answers", answered, clock)
    backend.close()


@pytest.fixture
def few_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddlecloud.kube.descriptors.share", lambda one_of: 8)


async def serve(client: Client, namespace: str, name: str, count: int) -> list[tuple[str, int]]:
    """Where the Service should be reached."""
    ports: list[Object] = [{"name": f"p{number}", "port": 8700 + number} for number in range(count)]
    made = await client.create(SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports}}, namespace=namespace)
    by_hand = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.70.9.9"]}],
        "ports": ports,
    }
    await client.create(ENDPOINTSLICES, by_hand, namespace=namespace)
    return [(made["spec"]["clusterIP"], port["port"]) for port in ports]


async def listened(address: tuple[str, int]) -> bool:
    try:
        _, writer = await asyncio.open_connection(*address)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_a_service_of_many_ports_leaves_descriptors_for_others_and_says_what_is_not_served(
    client: Client, few_descriptors: None, workloads: Workloads, clock: FakeClock
) -> None:
    async def reported() -> bool:
        events = (await client.list(EVENTS, "default", field_selector="reason=PortUnavailable")).items
        return [event["message"].partition(":")[0] for event in events] == ["some ports are not served"]

    wide = await serve(client, "default", "wide", 9)
    await until("what is not served is reported once", reported, clock)
    (other,) = await serve(client, "default", "other", 1)
    await until("the other service is served", lambda: listened(other), clock)
    assert [await listened(address) for address in wide] == [True, True, *[False] * 7]


async def test_services_of_one_namespace_leave_addresses_for_those_of_others(
    client: Client, few_descriptors: None, workloads: Workloads, clock: FakeClock
) -> None:
    mine = [address for name in "abcd" for address in await serve(client, "default", name, 2)]

    async def four() -> bool:
        return sum([await listened(address) for address in mine]) == 4

    await until("half of the addresses are theirs", four, clock)
    (other,) = await serve(client, "kube-public", "other", 1)
    await until("the service of another namespace is served", lambda: listened(other), clock)
    assert await four()
