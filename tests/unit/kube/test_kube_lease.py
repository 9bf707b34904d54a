"""Election: one leader at a time, a dead one replaced, and one that lost its lease writes nothing more."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_mini import MiniServer

from harness import PATIENCE
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.errors import Unreachable
from paddlecloud.kube.fence import Fence, Fenced, FencedTransport
from paddlecloud.kube.lease import Elector, LeadershipLost
from paddlecloud.kube.resource import CONFIGMAPS
from paddlecloud.kube.transport import JSON, Response

LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/system/leases"


class Cable:
    """A transport that can be cut or made to hang, per replica."""

    def __init__(self, server: MiniServer) -> None:
        self._server = server
        self.cut = False
        self.hangs = False
        self.swallows = False  # requests are carried out, their answers get lost

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if self.cut:
            raise Unreachable("cable cut")
        if self.hangs:
            await asyncio.Event().wait()
        response = await self._server.request(method, path, **options)
        if self.swallows:
            await asyncio.Event().wait()
        return response

    def stream(self, path: str, *, query: Any = None, accept: str = JSON) -> AsyncIterator[bytes]:
        return self._server.stream(path, query=query, accept=accept)

    async def close(self) -> None:
        """Nothing is open."""


class Replica:
    def __init__(self, name: str, server: MiniServer, clock: FakeClock) -> None:
        self.name = name
        self.cable = Cable(server)
        self.elector = Elector(
            Client(self.cable), name="op", namespace="system", identity=name, clock=clock, rng=random.Random(name)
        )
        self.client = Client(FencedTransport(self.cable, self.elector.fence))
        self.leading = 0
        self.task = asyncio.ensure_future(self.elector.run(self.lead))

    async def lead(self) -> None:
        self.leading += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.leading -= 1

    async def write(self, name: str) -> None:
        await self.client.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "system"}})


@contextlib.asynccontextmanager
async def replicas(*names: str) -> AsyncIterator[tuple[MiniServer, FakeClock, list[Replica]]]:
    server, clock = MiniServer(), FakeClock()
    team = [Replica(name, server, clock) for name in names]
    try:
        await clock.settle()
        yield server, clock, team
    finally:
        for replica in team:
            replica.task.cancel()
        await asyncio.gather(*(r.task for r in team), return_exceptions=True)


def leaders(team: list[Replica]) -> list[str]:
    return [r.name for r in team if r.leading and not r.task.done()]


async def test_one_of_several_leads_and_keeps_leading() -> None:
    async with replicas("a", "b", "c") as (server, clock, team):
        assert leaders(team) == ["a"]
        await clock.advance(600)
        assert leaders(team) == ["a"]
        lease = server.objects[f"{LEASES_PATH}/op"]["spec"]
        assert (lease["holderIdentity"], lease["leaseDurationSeconds"], lease["leaseTransitions"]) == ("a", 15, 0)
        assert team[1].elector.leader == "a"
        assert [r.elector.is_leader for r in team] == [True, False, False]


async def test_a_leader_that_is_cut_off_is_replaced_and_stopped() -> None:
    async with replicas("a", "b") as (server, clock, (a, b)):
        a.cable.cut = True
        await clock.advance(11)
        assert a.task.done()
        with pytest.raises(LeadershipLost):
            a.task.result()
        assert leaders([a, b]) == [], "nobody leads before the lease has run out"
        await clock.advance(10)
        assert leaders([a, b]) == ["b"]
        assert server.objects[f"{LEASES_PATH}/op"]["spec"]["leaseTransitions"] == 1


async def test_a_request_that_hangs_does_not_keep_a_lost_leader_alive() -> None:
    async with replicas("a", "b") as (_, clock, (a, b)):
        a.cable.hangs = True
        await clock.advance(11)
        assert a.task.done()
        await clock.advance(10)
        assert leaders([a, b]) == ["b"]


async def test_an_outage_shorter_than_the_deadline_changes_nothing() -> None:
    async with replicas("a", "b") as (_, clock, team):
        team[0].cable.cut = True
        await clock.advance(7)
        team[0].cable.cut = False
        await clock.advance(60)
        assert leaders(team) == ["a"]


async def test_a_leader_that_stops_gives_the_lease_back_at_once() -> None:
    async with replicas("a", "b") as (_, clock, (a, b)):
        a.task.cancel()
        await clock.advance(3)
        assert leaders([a, b]) == ["b"]


async def test_it_is_given_back_by_who_stops_at_the_moment_of_winning() -> None:
    server, clock = MiniServer(), FakeClock()
    winner = Replica("a", server, clock)
    for _ in range(100):
        if winner.elector.is_leader:
            break
        await asyncio.sleep(0)
    assert winner.elector.is_leader
    assert not winner.leading
    winner.task.cancel()
    await asyncio.gather(winner.task, return_exceptions=True)
    assert server.objects[f"{LEASES_PATH}/op"]["spec"]["holderIdentity"] == ""


async def test_it_is_given_back_even_if_a_renewal_was_under_way() -> None:
    async with replicas("a", "b") as (_, clock, (a, b)):
        a.cable.swallows = True
        await clock.advance(2.5)  # the renewal has reached the server, its answer has not reached us
        a.cable.swallows = False
        a.task.cancel()
        await clock.advance(3)
        assert leaders([a, b]) == ["b"]


async def test_work_that_ends_ends_leadership() -> None:
    server, clock = MiniServer(), FakeClock()
    elector = Elector(Client(server), name="op", namespace="system", identity="a", clock=clock)
    done: list[bool] = []

    async def lead() -> None:
        done.append(elector.is_leader)

    await asyncio.wait_for(elector.run(lead), PATIENCE)
    assert done == [True]
    assert not elector.is_leader
    assert server.objects[f"{LEASES_PATH}/op"]["spec"]["holderIdentity"] == ""


async def test_an_error_in_the_work_is_raised_not_hidden() -> None:
    elector = Elector(Client(MiniServer()), name="op", namespace="system", identity="a", clock=FakeClock())

    async def lead() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(elector.run(lead), PATIENCE)


async def test_who_does_not_lead_cannot_write_but_can_read() -> None:
    async with replicas("a", "b") as (_, _, (a, b)):
        await a.write("one")
        with pytest.raises(Fenced):
            await b.write("two")
        assert (await b.client.list(CONFIGMAPS, "system")).items[0]["metadata"]["name"] == "one"


async def test_a_leader_that_slept_through_its_lease_is_fenced_before_it_notices() -> None:
    async with replicas("a") as (_, clock, (a,)):
        await clock.advance(5)
        await a.write("one")
        clock._now += 10.5  # no task ran meanwhile: the process was stopped
        assert a.leading
        with pytest.raises(Fenced):
            await a.write("two")


async def test_a_leader_whose_lease_was_taken_by_force_stops_at_once() -> None:
    async with replicas("a") as (server, clock, (a,)):
        lease = server.objects[f"{LEASES_PATH}/op"]
        server.put(LEASES_PATH, "op", spec={**lease["spec"], "holderIdentity": "somebody"})
        await clock.advance(5)
        assert not a.leading
        with pytest.raises(LeadershipLost):
            a.task.result()


def test_either_clock_closes_the_fence() -> None:
    class TwoClocks(FakeClock):
        wall = 1000.0

        def now(self) -> float:
            return self.wall

    clock = TwoClocks(0)
    fence = Fence(clock)
    fence.open_for(10)
    clock.wall += 11  # the machine was suspended: monotonic time stood still
    assert not fence.is_open
    fence.open_for(10)
    clock.wall -= 500  # somebody set the clock back
    clock._now += 11
    assert not fence.is_open


def test_times_that_would_let_leaders_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="retry < deadline < duration"):
        Elector(Client(MiniServer()), name="x", namespace="y", identity="z", duration=10, deadline=10)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["cut", "heal", "hang", "stop"]), st.integers(0, 2), st.integers(0, 12)), max_size=12
    )
)
def test_whatever_happens_there_are_never_two_who_may_write(story: list[tuple[str, int, int]]) -> None:
    asyncio.run(live_through(story))


async def live_through(story: list[tuple[str, int, int]]) -> None:
    async with replicas("a", "b", "c") as (_, clock, team):
        for what, who, seconds in story:
            replica = team[who]
            if what == "stop":
                replica.task.cancel()
            else:
                replica.cable.cut, replica.cable.hangs = what == "cut", what == "hang"
            for _ in range(seconds):
                await clock.advance(1)
                assert sum(r.elector.fence.is_open for r in team) <= 1
        for replica in team:
            replica.cable.cut = replica.cable.hangs = False
        await clock.advance(60)
        if not all(r.task.done() for r in team):
            assert len(leaders(team)) == 1, "healthy replicas without a leader"
