"""What one caller gets of the server at the same time, and what all bodies together do."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from paddlecloud.kube.server.request_limits import (
    MOST_WAITING,
    PER_CALLER,
    BodyMemory,
    CallerLimitReached,
    CallerLimits,
    NoRoom,
    tenant_of,
)


def test_a_caller_with_very_many_requests_is_refused_more_and_others_are_not() -> None:
    """Where all connections had a request that waits, nobody else would be let in."""

    async def scenario() -> None:
        limits, go = CallerLimits(), asyncio.Event()

        async def request(name: str) -> None:
            async with limits.slot(name):
                await go.wait()

        tasks = [asyncio.ensure_future(request("a")) for _ in range(PER_CALLER + MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(CallerLimitReached, match="have not been answered yet"):
            await request("a")
        other = asyncio.ensure_future(request("b"))
        go.set()
        await asyncio.gather(*tasks, other)
        await request("a")

    asyncio.run(scenario())


def test_a_caller_waits_for_its_own_requests_alone_and_nothing_is_kept() -> None:
    async def story() -> None:
        limits, go, begun = CallerLimits(), asyncio.Event(), []

        async def request(caller: str) -> None:
            async with limits.slot(caller):
                begun.append(caller)
                await go.wait()

        tasks = [asyncio.ensure_future(request("a")) for _ in range(PER_CALLER + 3)]
        tasks.append(asyncio.ensure_future(request("b")))
        for _ in range(5):
            await asyncio.sleep(0)
        assert sorted(begun) == ["a"] * PER_CALLER + ["b"]
        tasks[-2].cancel()
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(begun) == PER_CALLER + 3
        assert limits._callers == {}

    asyncio.run(story())


def test_bodies_share_one_memory_and_release_it() -> None:
    memory = BodyMemory(10)
    with memory.reservation("a") as first, memory.reservation("a") as second, memory.reservation("b") as other:
        first.grow(3)
        with pytest.raises(NoRoom, match="try again"):
            second.grow(3)  # a tenant has half
        second.grow(2)
        other.grow(5)
        with memory.reservation("c") as third, pytest.raises(NoRoom):
            third.grow(1)
    assert (memory.left, memory.left_for("a")) == (10, 5)


def token(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


@pytest.mark.parametrize(
    ("given", "tenant"),
    [
        (token({"sub": "system:serviceaccount:team:one", "jti": "1"}), "namespace team"),
        (token({"sub": "system:serviceaccount:team:two", "jti": "2"}), "namespace team"),
        (token({"sub": "ann@example.com"}), "user ann@example.com"),
        (token({"sub": 3}), "token"),
        (token([]), "token"),
        ("abc", "token"),
        ("a.b.c", "token"),
    ],
)
def test_tokens_of_a_namespace_are_one_tenant(given: str, tenant: str) -> None:
    assert tenant_of(given) == (f"token {given}" if tenant == "token" else tenant)
