"""Node ports: from the range, each given once, kept by the service that has it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import SERVICES, Object
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.proxy.node_ports import FIRST, LAST, SHARE, NodePorts
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

INFO = KindInfo(SERVICES, singular="service")


def service(name: str, *ports: Object, kind: str = "NodePort") -> Object:
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"type": kind, "ports": list(ports)}}


def given(obj: Object) -> list[Any]:
    return [port.get("nodePort") for port in obj["spec"]["ports"]]


async def keep(store: Store, obj: Object) -> Object:
    await store.put(ObjectAddress("/services", "default", obj["metadata"]["name"]), obj, expect=0)
    return obj


async def test_ports_are_given_kept_taken_away_and_checked(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    ports = NodePorts(store, "a")
    first = service("first", {"name": "a", "port": 80}, {"name": "b", "port": 81})
    ports.assign(INFO, first, None)
    one, two = given(first)
    assert FIRST <= one != two <= LAST
    await keep(store, first)

    asked = service("second", {"port": 80, "nodePort": one})
    with pytest.raises(Invalid, match="provided port is already allocated"):
        ports.assign(INFO, asked, None)
    with pytest.raises(Invalid, match=f"The range of valid ports is {FIRST}-{LAST}"):
        ports.assign(INFO, service("second", {"port": 80, "nodePort": 80}), None)
    free = service("second", {"port": 80, "nodePort": LAST if LAST not in (one, two) else FIRST})
    ports.assign(INFO, free, None)

    updated = service("first", {"name": "a", "port": 80}, {"name": "c", "port": 82})
    ports.assign(INFO, updated, first)
    assert given(updated)[0] == one
    assert given(updated)[1] not in (one, None)
    plain = service("first", {"name": "a", "port": 80, "nodePort": one}, kind="ClusterIP")
    ports.assign(INFO, plain, first)
    assert given(plain) == [None]
    await store.close()


async def test_two_platforms_start_to_search_at_different_places(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    found = set()
    for name in ("a", "b", "c"):
        obj = service("web", {"port": 80})
        NodePorts(store, name).assign(INFO, obj, None)
        found.add(given(obj)[0])
    assert len(found) == 3
    await store.close()


async def test_given_a_service_on_its_way_to_the_store_then_its_port_is_taken(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    ports = NodePorts(store, "a")
    first, second = (service(name, {"port": 80, "nodePort": FIRST}) for name in ("first", "second"))
    ports.assign(INFO, first, None)
    writing = asyncio.ensure_future(keep(store, first))
    await asyncio.sleep(0)  # enqueued
    assert store.list("/services") == [], "not committed yet"
    with pytest.raises(Invalid, match="provided port is already allocated"):
        ports.assign(INFO, second, None)
    await writing
    await store.close()


def many(name: str, number: int, *, namespace: str = "default") -> Object:
    obj = service(name, *({"name": f"p{port}", "port": port + 1} for port in range(number)))
    obj["metadata"]["namespace"] = namespace
    return obj


async def test_the_services_of_one_namespace_have_half_of_the_ports(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    ports = NodePorts(store, "a")
    with pytest.raises(Invalid, match=f"Services of one namespace have at most {SHARE} node ports together"):
        ports.assign(INFO, many("all", LAST - FIRST + 1), None)
    half = many("half", SHARE)
    ports.assign(INFO, half, None)
    await keep(store, half)
    with pytest.raises(Invalid, match=r"spec.ports: Forbidden"):
        ports.assign(INFO, many("one", 1), None)
    other = many("other", SHARE, namespace="other")
    ports.assign(INFO, other, None)
    assert not set(given(half)) & set(given(other))
    smaller = many("half", SHARE - 1)
    ports.assign(INFO, smaller, half)
    assert given(smaller) == given(half)[:-1]
    await store.close()
