"""Clients that do not read, do not send or send very much: the hub serves others meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from urllib.parse import urlsplit

import aiohttp
import pytest

from paddlecloud.kube.clock import SystemClock
from paddlecloud.modelhub import catalogue, manifest
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import Refused
from paddlecloud.modelhub.manifest import check_paths
from paddlecloud.modelhub.server import server, slots
from paddlecloud.modelhub.server.slots import Slots
from unit.budgets.test_requests import LONGEST, longest_callback
from unit.modelhub.server.hub import VERSIONS, Hub, described

in_a_folder = pytest.mark.parametrize("store", ["folder"], indirect=True)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.0)


@in_a_folder
async def test_a_long_list_of_files_that_is_not_read_in_its_time_is_given_up(no_time: None, hub: Hub) -> None:
    await hub.put(b"")
    files = [described(f"{number}{'x' * 1000}", b"") for number in range(20_000)]
    body = json.dumps({"files": files, "version": "1"}).encode()
    with pytest.raises(aiohttp.ClientError):  # the answer to the push has the list as well
        await hub.ask("POST", VERSIONS, data=body)
    await hub.register(manifest.shown(catalogue.get(hub.store, VersionKey("team-a", "ocr", "1"))))
    with pytest.raises(aiohttp.ClientError):
        await hub.ask("GET", f"{VERSIONS}/1")
    assert (await hub.ask("GET", VERSIONS)).json == {"versions": ["1"]}  # a short one is


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as one tenant may have."""
    monkeypatch.setattr(server, "WRITERS", server.WRITES_PER_TENANT)
    monkeypatch.setattr(server, "READS", server.READS_PER_TENANT)
    monkeypatch.setattr(slots, "PATIENCE", 0.0)


async def begun(hub: Hub, method: str, path: str, headers: str) -> asyncio.StreamWriter:
    """A request whose client then does nothing more."""
    address = urlsplit(hub.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port, limit=1)
    head = f"{method} {path} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer {hub.tokens['team-b']}\r\n{headers}\r\n"
    writer.write(head.encode())
    return writer


@in_a_folder
async def test_clients_that_send_slowly_give_up_their_places_for_others(few_places: None, hub: Hub) -> None:
    held = [
        await begun(hub, "PUT", f"/v1/namespaces/team-b/blobs/{number:064x}", "Content-Length: 9999999\r\n")
        for number in range(server.WRITERS + 2)
    ]
    assert (await asyncio.wait_for(hub.put(b"of team a"), 30)).status == 201
    for writer in held:
        writer.close()


@in_a_folder
async def test_clients_that_read_slowly_give_up_their_places_for_others(few_places: None, hub: Hub) -> None:
    await hub.push({"large": bytes(32 << 20)}, "team-b", version="1")
    await hub.push({"small": b"of team a"}, version="1")
    held = [
        await begun(hub, "GET", "/v1/namespaces/team-b/models/ocr/versions/1/files/large", "")
        for _ in range(server.READS + 2)
    ]
    assert (await asyncio.wait_for(hub.ask("GET", f"{VERSIONS}/1/files/small"), 30)).body == b"of team a"
    for writer in held:
        writer.close()


async def test_nobody_loses_a_place_to_a_tenant_with_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "PATIENCE", 0.0)
    monkeypatch.setattr(slots, "AGAIN", 0.01)
    cut: list[str] = []
    held = Slots(2, SystemClock())
    async with held.slot("a", lambda: cut.append("a")) as first, held.slot("b", lambda: cut.append("b")) as second:
        with first.of_client(), second.of_client():
            for tenant in ("a", "b"):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(held.slot(tenant, lambda: None).__aenter__(), 0.1)
            assert not cut
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(held.slot("c", lambda: None).__aenter__(), 0.1)
            assert len(cut) == 1, "one slot for one that waits"


async def test_two_slow_tenants_that_hold_all_slots_give_one_to_a_third(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "PATIENCE", 0.0)
    monkeypatch.setattr(slots, "AGAIN", 0.01)
    held = Slots(server.WRITERS, SystemClock())

    async def upload_slowly(tenant: str, begun: asyncio.Event) -> None:
        over = asyncio.Event()
        async with held.slot(tenant, over.set) as slot:
            with slot.of_client():
                begun.set()
                await over.wait()

    begun = [asyncio.Event() for _ in range(server.WRITERS)]
    slow = [asyncio.create_task(upload_slowly("ab"[number % 2], one)) for number, one in enumerate(begun)]
    await asyncio.gather(*(one.wait() for one in begun))
    third = held.slot("c", lambda: None)
    await asyncio.wait_for(third.__aenter__(), 30)
    assert sum(task.done() for task in slow) == 1
    await third.__aexit__(None, None, None)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


@in_a_folder
async def test_very_many_metrics_hold_up_nobody(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for field, value in (("metrics", "1"), ("origin", '""')):
        entries = ",".join(f'"{number:x}":{value}' for number in range(1_500_000))
        with longest_callback(monkeypatch) as longest:
            answer = await hub.ask("POST", VERSIONS, data=f'{{"files":[],"{field}":{{{entries}}}}}'.encode())
        assert (answer.status, longest[0] < LONGEST) == (413, True), (field, longest)


def test_deep_paths_cost_no_more_than_they_are_long() -> None:
    deep = "/".join(["a"] * 508)
    began = time.thread_time()
    check_paths([f"{number}/{deep}" for number in range(10_000)])
    assert time.thread_time() - began < 2.0
    for clash in (["a/b", "a"], ["a/b/c", "a-b", "a/b"]):
        with pytest.raises(Refused, match="a file and a folder"):
            check_paths(clash)
