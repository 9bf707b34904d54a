"""Addresses of Services: only what is stored has one, however many writes were tried."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path

import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import AlreadyExists, Invalid, ServiceUnavailable
from paddlecloud.kube.resource import NAMESPACES, SERVICES, Object
from paddlecloud.local import loopback
from paddlecloud.local.control_plane import ControlPlane

FREE = 5
"""Addresses of a network of sixteen that are given out."""


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Of a platform whose services have very few addresses."""
    whole = loopback.network_for

    def tiny(name: str, networks: range) -> ipaddress.IPv4Network:
        found = whole(name, networks)
        return next(found.subnets(new_prefix=28)) if networks is loopback.SERVICES else found

    monkeypatch.setattr(loopback, "network_for", tiny)
    found = ControlPlane(tmp_path, seed=1).client()
    await found.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return found


def service(name: str, **spec: object) -> Object:
    ports = [{"name": "http", "port": 80}]
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports, **spec}}


async def fill(client: Client) -> list[str]:
    made = await asyncio.gather(*(client.create(SERVICES, service(f"s{n}")) for n in range(FREE)))
    return [obj["spec"]["clusterIP"] for obj in made]


async def test_dry_runs_and_refused_writes_take_no_address(client: Client) -> None:
    await client.create(SERVICES, service("outside", type="ExternalName", externalName="example.com"))
    inside = {"spec": {"type": "ClusterIP", "externalName": None}}
    for n in range(3 * FREE):
        await client.create(SERVICES, service(f"dry{n}"), dry_run=True)
        await client.patch(
            SERVICES, f"dry{n}", service(f"dry{n}"), namespace="default", kind="apply", field_manager="t", dry_run=True
        )
        await client.patch(SERVICES, "outside", inside, namespace="default", dry_run=True)
        with pytest.raises(AlreadyExists):
            await client.create(SERVICES, service("outside"))
        with pytest.raises(Invalid):
            await client.create(SERVICES, service(f"bad{n}", ports=[{"name": "http", "port": 70_000}]))
    assert len(set(await fill(client))) == FREE


async def test_when_all_are_in_use_a_deleted_service_makes_room(client: Client) -> None:
    given = await fill(client)
    with pytest.raises(ServiceUnavailable, match="every service address is in use"):
        await client.create(SERVICES, service("late"))
    await client.delete(SERVICES, "s2", namespace="default")
    assert (await client.create(SERVICES, service("late")))["spec"]["clusterIP"] == given[2]


async def test_of_two_that_ask_for_one_address_at_once_only_one_gets_it(client: Client) -> None:
    address = (await client.create(SERVICES, service("first")))["spec"]["clusterIP"]
    await client.delete(SERVICES, "first", namespace="default")
    both = (client.create(SERVICES, service(name, clusterIP=address)) for name in ("a", "b"))
    answers = await asyncio.gather(*both, return_exceptions=True)
    assert [type(answer) for answer in answers].count(Invalid) == 1, answers
