"""What the server answers where something takes too long: the body, or what the request asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.server.request_limits import PER_CALLER
from paddlecloud.pipelines.api import routing, server
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.routing import Request
from unit.kube.server.test_request_limits import token
from unit.kube.test_kube_client import Wire

HEADERS = {"Authorization": "Bearer token"}


async def late(caller: Caller, request: Request) -> Any:
    raise asyncio.TimeoutError


@pytest.fixture
async def url(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    monkeypatch.setattr(
        server, "ROUTES", routing.compiled("/apis/x", [("GET", "/late", late), ("POST", "/late", late)])
    )
    served = server.PipelinesServer(Config("http://127.0.0.1:1"))
    monkeypatch.setattr(served, "_caller", lambda _: Caller(Client(Wire()), "kubeflow", str, str))
    port = await served.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}/apis/x/late"
    finally:
        await served.stop()


async def test_a_time_out_while_a_request_is_carried_out_is_not_taken_for_a_late_body(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(url, headers=HEADERS) as answer:
        assert answer.status == 500
        assert "its log has the reason" in (await answer.json())["message"]


async def test_a_body_that_does_not_come_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    held = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await held.wait()

    async with aiohttp.ClientSession() as session, session.post(url, data=body(), headers=HEADERS) as answer:
        assert answer.status == 504
        assert "the body did not come" in (await answer.json())["message"]
    held.set()


async def test_a_long_answer_that_is_not_read_in_its_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def long(caller: Caller, request: Request) -> Any:
        return {"text": "x" * (32 << 20)}

    monkeypatch.setattr(server, "ROUTES", routing.compiled("/apis/x", [("GET", "/long", long)]))
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.0)
    served = server.PipelinesServer(Config("http://127.0.0.1:1"))
    monkeypatch.setattr(served, "_caller", lambda _: Caller(Client(Wire()), "kubeflow", str, str))
    port = await served.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{port}/apis/x/long", headers=HEADERS) as answer:
                    await answer.read()
    finally:
        await served.stop()


async def test_requests_without_a_body_have_the_limit_of_their_tenant_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may ask for tokens of an account may have any number of them."""
    begun, go = [], asyncio.Event()

    async def waits(caller: Caller, request: Request) -> Any:
        begun.append(request.query["who"])
        await go.wait()
        return {}

    monkeypatch.setattr(server, "ROUTES", routing.compiled("/apis/x", [("GET", "/waits", waits)]))
    served = server.PipelinesServer(Config("http://127.0.0.1:1"))
    monkeypatch.setattr(served, "_caller", lambda _: Caller(Client(Wire()), "kubeflow", str, str))
    port = await served.start("127.0.0.1", 0)

    async def ask(session: aiohttp.ClientSession, who: str, number: int) -> int:
        given = token({"sub": f"system:serviceaccount:{who}:account", "jti": str(number)})
        address = f"http://127.0.0.1:{port}/apis/x/waits?who={who}"
        async with session.get(address, headers={"Authorization": f"Bearer {given}"}) as answer:
            return answer.status

    try:
        async with aiohttp.ClientSession() as session:
            asked = [asyncio.ensure_future(ask(session, "many", number)) for number in range(server.AT_ONCE)]
            while len(begun) < PER_CALLER:
                await asyncio.sleep(0)
            asked.append(asyncio.ensure_future(ask(session, "other", 0)))
            while "other" not in begun:
                assert begun.count("many") <= PER_CALLER
                await asyncio.sleep(0)
            go.set()
            assert set(await asyncio.gather(*asked)) == {200}
    finally:
        await served.stop()
