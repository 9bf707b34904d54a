"""What the API server forgets, and how it says so: compacted versions, unfinished pages, and bookmarks against both."""

from __future__ import annotations

import asyncio
import itertools

import msgspec
import pytest

from harness import PATIENCE
from paddlecloud.kube import errors
from paddlecloud.kube.client import Client, WatchEvent
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import SECRETS, Object
from paddlecloud.local.apiserver.objects import listing, watching
from paddlecloud.local.apiserver.objects.large import LARGE
from paddlecloud.local.apiserver.objects.selection import Filter
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.store import recent, store
from paddlecloud.local.store.record import Record

NS = "default"
PATH = SECRETS.path(NS)


def secret(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NS}}


async def first(client: Client, *, since: str) -> WatchEvent:
    events = client.watch(SECRETS, NS, resource_version=since)
    try:
        return await asyncio.wait_for(events.__anext__(), PATIENCE)
    finally:
        await events.aclose()


async def test_a_compacted_version_is_gone_for_watches_and_exact_lists(inner: ControlPlane, client: Client) -> None:
    old = (await client.create(SECRETS, secret("a")))["metadata"]["resourceVersion"]
    newer = (await client.create(SECRETS, secret("b")))["metadata"]["resourceVersion"]
    await client.create(SECRETS, secret("c"))
    await inner.store.compact(int(newer))
    with pytest.raises(errors.Expired, match="too old resource version"):
        await first(client, since=old)
    with pytest.raises(errors.Expired, match="too old resource version"):
        await client.raw("GET", PATH, query={"resourceVersion": old, "resourceVersionMatch": "Exact"})
    assert (await first(client, since=newer)).object["metadata"]["name"] == "c"


async def test_a_version_of_the_future_is_a_timeout_to_be_tried_again(client: Client) -> None:
    with pytest.raises(errors.Timeout, match="Too large resource version") as refused:
        await first(client, since="999999")
    assert refused.value.retry_after == 1


async def test_of_too_many_unfinished_lists_the_oldest_must_begin_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "UNFINISHED", 2)
    for name in ("a", "b", "c"):
        await client.create(SECRETS, secret(name))
    tokens = []
    for _ in range(3):
        answer = await client.raw("GET", PATH, query={"limit": "1"})
        tokens.append(msgspec.json.decode(answer.body)["metadata"]["continue"])
    with pytest.raises(errors.Expired, match="start a new list without the continue parameter"):
        await client.raw("GET", PATH, query={"limit": "1", "continue": tokens[0]})
    assert (await client.raw("GET", PATH, query={"limit": "1", "continue": tokens[2]})).status == 200


async def test_the_client_begins_again_by_itself(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "UNFINISHED", 0)
    for name in ("a", "b", "c"):
        await client.create(SECRETS, secret(name))
    found = await client.list(SECRETS, NS, limit=1)
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b", "c"]


async def test_bookmarks_carry_a_quiet_watch_past_compaction(
    inner: ControlPlane, client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_EVERY", 0.05)
    since = (await client.create(SECRETS, secret("a")))["metadata"]["resourceVersion"]
    events = client.watch(SECRETS, NS, resource_version=since, field_selector="metadata.name=a")
    waiting = asyncio.ensure_future(events.__anext__())
    await asyncio.sleep(0)
    written = (await client.create(SECRETS, secret("b")))["metadata"]["resourceVersion"]
    await clock.advance(0.1)
    event = await asyncio.wait_for(waiting, PATIENCE)
    await events.aclose()
    newest = event.object["metadata"]["resourceVersion"]
    assert event.type == "BOOKMARK"
    assert int(newest) >= int(written)
    await inner.store.compact(int(newest))
    await client.create(SECRETS, secret("c"))
    assert (await first(client, since=newest)).object["metadata"]["name"] == "c"


async def test_a_watch_of_more_history_than_can_be_read_must_list_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (await client.create(SECRETS, secret("a")))["metadata"]["resourceVersion"]
    monkeypatch.setattr(recent, "MOST", 1)
    monkeypatch.setattr(store, "HISTORY_BYTES", store.LEAST_BYTES)
    for name in ("b", "c", "d"):
        await client.create(SECRETS, secret(name))
    with pytest.raises(errors.Expired, match="too much has changed since then"):
        await first(client, since=old)


async def test_a_client_that_does_not_read_its_watch_has_a_piece_of_it_rendered(
    inner: ControlPlane, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PIECE", 1)
    for name in ("a", "b", "c"):
        await client.create(SECRETS, secret(name))
    kind = inner.registry.find("", "v1", "secrets")
    assert kind is not None
    rendered: list[str] = []

    def render(record: Record) -> bytes:
        rendered.append(record.address.name)
        return record.value

    frames = watching.stream(
        inner.store, kind, NS, since=None, chosen=Filter(kind, "", ""), render=render, bookmarks=False,
        initial_events_end=False, timeout=None, clock=inner.clock, turns=watching.Turns(),
    )  # fmt: skip
    seen = [await frames.__anext__(), await frames.__anext__()]
    assert (seen[0], b'"name":"a"' in seen[1], rendered) == (b"", True, ["a"])
    await frames.aclose()


async def test_a_large_object_is_sent_to_its_watches_one_by_one_and_others_are_served_in_between(
    inner: ControlPlane, client: Client
) -> None:
    await client.create(SECRETS, {**secret("large"), "stringData": {"k": "x" * LARGE}})
    kind = inner.registry.find("", "v1", "secrets")
    assert kind is not None
    rounds, rendered = itertools.count(), list[int]()
    current = 0

    async def count() -> None:
        nonlocal current
        while len(rendered) < 20:
            current = next(rounds)
            await asyncio.sleep(0)

    def render(record: Record) -> bytes:
        rendered.append(current)
        return record.value

    async def watch() -> None:
        frames = watching.stream(
            inner.store, kind, NS, since=None, chosen=Filter(kind, "", ""), render=render, bookmarks=False,
            initial_events_end=False, timeout=None, clock=inner.clock, turns=turns,
        )  # fmt: skip
        while not await frames.__anext__():
            continue
        await frames.aclose()

    turns = watching.Turns()
    await asyncio.wait_for(asyncio.gather(count(), *(watch() for _ in range(20))), PATIENCE)
    assert len(set(rendered)) == 20
