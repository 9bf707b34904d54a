"""The informer: whatever the connection does, the cache ends equal to the server, and so do the calls of handlers."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kube_mini import MiniServer

from harness import PATIENCE
from paddlecloud.kube.backoff import Backoff
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import ApiError, InternalError, Unreachable, not_found
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import PODS, Object

NS = "/api/v1/namespaces/ns/pods"


class Listener:
    """Knows only what handlers receive, and checks that every change continues the last one."""

    def __init__(self) -> None:
        self.believed: dict[str, Object] = {}
        self.reported = 0

    def __call__(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        name = obj["metadata"]["name"]
        assert self.believed.get(name) is old
        self.reported += 1
        if new is None:
            del self.believed[name]
        else:
            if old is not None and old["metadata"]["uid"] == new["metadata"]["uid"]:
                assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
            self.believed[name] = new

    def versions(self) -> dict[str, str]:
        return {name: obj["metadata"]["resourceVersion"] for name, obj in self.believed.items()}


@contextlib.asynccontextmanager
async def informing(server: MiniServer, clock: FakeClock, **options: Any) -> AsyncIterator[tuple[Informer, Listener]]:
    informer = Informer(Client(server), PODS, clock=clock, rng=random.Random(1), **options)
    listener = Listener()
    informer.on_change(listener)
    task = asyncio.ensure_future(informer.run())
    try:
        await clock.settle()
        yield informer, listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def state_of(server: MiniServer) -> dict[str, str]:
    return {p.rsplit("/", 1)[1]: o["metadata"]["resourceVersion"] for p, o in server.objects.items()}


async def test_it_lists_then_follows() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "a")
    async with informing(server, clock) as (informer, listener):
        await asyncio.wait_for(informer.wait_synced(), PATIENCE)
        assert set(listener.believed) == {"a"}
        server.put(NS, "b")
        server.drop(NS, "a")
        await clock.settle()
        assert set(listener.believed) == {"b"}


async def test_items_of_a_list_know_their_kind_and_managed_fields_are_dropped() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "a", metadata={"managedFields": [{"manager": "kubectl"}]})
    async with informing(server, clock) as (_, listener):
        assert listener.believed["a"]["apiVersion"] == "v1"
        assert listener.believed["a"]["kind"] == "Pod"
        assert "managedFields" not in listener.believed["a"]["metadata"]


async def test_a_broken_watch_resumes_without_a_new_list() -> None:
    server, clock = MiniServer(), FakeClock()
    async with informing(server, clock) as (informer, listener):
        server.break_watches()
        server.put(NS, "a")
        await clock.advance(1)
        server.put(NS, "b")
        await clock.advance(1)
        assert set(listener.believed) == {"a", "b"}
        assert informer.restarts == 0
        assert server.watches >= 2


async def test_after_a_410_it_lists_again_and_shows_the_deletions_it_missed() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "gone")
    server.put(NS, "stays")
    async with informing(server, clock) as (informer, listener):
        server.break_watches()
        await clock.settle()
        server.drop(NS, "gone")
        server.put(NS, "new")
        server.compact()
        await clock.advance(1)
        assert informer.restarts == 1
        assert listener.versions() == state_of(server)
        assert set(listener.believed) == {"stays", "new"}


async def test_it_resumes_after_the_last_event_it_saw() -> None:
    server, clock = MiniServer(), FakeClock()
    async with informing(server, clock) as (informer, _):
        server.put(NS, "a")
        await clock.settle()
        server.compact()
        server.break_watches()
        await clock.advance(2)
        assert informer.restarts == 0, "it asked for what it had already"


async def test_a_bookmark_moves_the_resume_point_past_compaction() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "a")
    async with informing(server, clock) as (informer, _):
        for n in range(5):
            server.put("/api/v1/namespaces/ns/secrets", f"s{n}")  # versions this watch never sees
        server.bookmark()
        await clock.settle()
        server.compact()
        server.break_watches()
        await clock.advance(2)
        assert informer.restarts == 0


async def test_a_handler_added_late_is_called_with_what_is_cached() -> None:
    server, clock = MiniServer(), FakeClock()
    server.put(NS, "a")
    async with informing(server, clock) as (informer, _):
        late = Listener()
        informer.on_change(late)
        assert set(late.believed) == {"a"}


async def test_a_failing_handler_does_not_cost_others_their_events() -> None:
    server, clock = MiniServer(), FakeClock()
    informer = Informer(Client(server), PODS, clock=clock)

    def broken(old: Object | None, new: Object | None) -> None:
        raise RuntimeError("oops")

    informer.on_change(broken)
    listener = Listener()
    informer.on_change(listener)
    task = asyncio.ensure_future(informer.run())
    await clock.settle()
    server.put(NS, "a")
    await clock.settle()
    assert set(listener.believed) == {"a"}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_object_that_cannot_be_transformed_or_indexed_does_not_hide_the_others() -> None:
    """One tenant's object would otherwise end the watch of a controller, for all tenants."""

    def by_node(obj: Object) -> list[str]:
        return [obj["spec"]["node"]["name"]] if obj["metadata"]["name"] == "odd" else []

    def transform(obj: Object) -> Object:
        return obj["metadata"]["labels"]["none"] if obj["metadata"]["name"] == "odd" else obj

    server, clock = MiniServer(), FakeClock()
    server.put(NS, "odd")
    async with informing(server, clock, indexers={"node": by_node}, transform=transform) as (informer, listener):
        assert set(listener.believed) == {"odd"}
        server.put(NS, "odd")
        server.put(NS, "other")
        await clock.settle()
        assert listener.versions() == state_of(server)
        assert informer.failure is None
        assert informer.restarts == 0


async def test_a_server_that_is_away_is_asked_less_and_less_often() -> None:
    server, clock = MiniServer(), FakeClock()
    server.refuse = lambda method, path: Unreachable("connection refused")
    async with informing(server, clock) as (informer, _):
        await clock.advance(10)
        early = len(server.requests)
        await clock.advance(600)
        late = len(server.requests) - early
        assert 3 <= early <= 8
        assert 8 <= late <= 25  # at most every 30 s, at least every 60
        assert not informer.synced
        server.refuse = lambda method, path: None
        await clock.advance(61)
        assert informer.synced


async def test_a_watch_that_ends_at_once_is_not_hammered() -> None:
    server, clock = MiniServer(), FakeClock()

    class Ending(MiniServer):
        async def stream(self, path: str, **_: Any) -> AsyncIterator[bytes]:
            self.watches += 1
            return
            yield b""

    server = Ending()
    async with informing(server, clock):
        await clock.advance(10)
        assert server.watches <= 8


async def test_an_optional_kind_that_is_not_served_counts_as_empty_until_it_is() -> None:
    server, clock = MiniServer(), FakeClock()
    server.refuse = lambda method, path: not_found("pods", "")
    async with informing(server, clock, optional=True) as (informer, listener):
        assert informer.synced
        server.refuse = lambda method, path: None
        server.put(NS, "a")
        await clock.advance(6)
        assert set(listener.believed) == {"a"}
        server.refuse = lambda method, path: not_found("pods", "")  # its CRD was deleted
        server.compact()
        server.break_watches()
        await clock.advance(6)
        assert listener.believed == {}


async def test_a_long_burst_lets_other_tasks_run() -> None:
    server, clock = MiniServer(), FakeClock()
    async with informing(server, clock) as (_, listener):
        turns = 0

        async def other() -> None:
            nonlocal turns
            while listener.reported < 1000:
                turns += 1
                await asyncio.sleep(0)

        for n in range(1000):
            server.put(NS, f"p{n}")
        await asyncio.wait_for(other(), PATIENCE)
        assert turns >= 5


def test_backoff_doubles_with_jitter_up_to_its_cap_and_starts_over_after_success() -> None:
    backoff = Backoff(random.Random(7), base=1, cap=8)
    for least in (1, 2, 4, 8, 8):
        assert least <= backoff.next() <= 2 * least
    backoff.reset()
    assert backoff.next() <= 2


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "put", "put", "drop"]), st.sampled_from("abcd")),
        st.tuples(
            st.sampled_from(
                ["break", "compact", "bookmark", "wait", "wait", "long wait", "repeat", "shuffle", "fail", "heal"]
            ),
            st.just(""),
        ),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1000))
def test_whatever_happens_the_cache_ends_equal_to_the_server(steps: list[tuple[str, str]], seed: int) -> None:
    asyncio.run(live_through(steps, random.Random(seed)))


async def live_through(steps: list[tuple[str, str]], rng: random.Random) -> None:
    server, clock = MiniServer(), FakeClock()

    def repeat(events: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        return [event for event in events for _ in range(rng.randint(1, 3))]

    def shuffle(events: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        # A bookmark promises that everything before it was sent: reordering stays between bookmarks.
        if any(b'"BOOKMARK"' in line for _, line in events):
            return events
        return rng.sample(events, len(events))

    def failing(method: str, path: str) -> ApiError | None:
        return rng.choice([InternalError("oops"), Unreachable("gone"), None])

    async with informing(server, clock) as (informer, listener):
        for step, name in steps:
            if step == "put":
                server.put(NS, name)
            elif step == "drop" and f"{NS}/{name}" in server.objects:
                server.drop(NS, name)
            elif step == "break":
                server.break_watches()
            elif step == "compact":
                server.compact()
            elif step == "bookmark":
                server.bookmark()
            elif step == "wait":
                await clock.settle()
            elif step == "long wait":
                await clock.advance(5)
            elif step == "repeat":
                server.mangle = repeat
            elif step == "shuffle":
                server.mangle = shuffle
            elif step == "fail":
                server.refuse = failing
            elif step == "heal":
                server.refuse = lambda method, path: None
        server.refuse = lambda method, path: None
        server.break_watches()
        await clock.advance(120)
        assert listener.versions() == state_of(server)
        assert {key.name for key in informer.cache} == set(listener.believed)
