"""Listeners: a client that sends no whole request is cut off, one whose request is being served is not."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web

from harness import PATIENCE, longest_turn
from paddlecloud.controllers.paddlejob.reports.listener import Channel, ListenAddress
from paddlecloud.kube.clock import SystemClock
from paddlecloud.kube.metrics import Registry
from paddlecloud.kube.server import health, listening
from paddlecloud.kube.server.listening import Site

HALF = b"GET / HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEAD_TIMEOUT", 0.2)


async def dial(port: int, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    return reader, writer


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Nothing also where the server had not read all that was sent: the kernel then resets the connection."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GE", HALF], ids=["nothing", "a word", "half a head"])
async def test_given_no_whole_head_in_time_then_the_connection_is_closed_and_others_are_served(sent: bytes) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: web.BaseRequest) -> web.Response:
        begun.set()
        await go_on.wait()
        return web.Response(text="done")

    runner = web.ServerRunner(web.Server(slow))
    await runner.setup()
    await Site(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        busy, _writer = await dial(port, HALF + b"Connection: close\r\n\r\n")
        await asyncio.wait_for(begun.wait(), PATIENCE)
        idle, _other = await dial(port, sent)
        assert await rest(idle) == b""  # the other connection is older than this one
        go_on.set()
        assert (await rest(busy)).endswith(b"done")
    finally:
        await runner.cleanup()


async def test_given_too_many_without_a_request_then_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEAD_TIMEOUT", 10 * PATIENCE)

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text="done")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await Site(runner, "127.0.0.1", 0, most_waiting=2).start()
    port = runner.addresses[0][1]
    try:
        first, _first = await dial(port, HALF)
        _second, second = await dial(port, HALF)
        third, writer = await dial(port, HALF)
        assert await rest(first) == b""
        for each in (writer, second):
            each.write(b"Connection: close\r\n\r\n")
        assert (await rest(third)).endswith(b"done")
        assert (await rest(_second)).endswith(b"done")
    finally:
        await runner.cleanup()


ASKED = HALF + b"\r\n"


async def answered(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readuntil(b"done"), PATIENCE)


async def test_given_as_many_connections_as_may_be_then_idle_ones_make_room_and_those_in_use_stay() -> None:
    go_on = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path == "/slow":
            await go_on.wait()
        return web.Response(text="done")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await Site(runner, "127.0.0.1", 0, most=3).start()
    port = runner.addresses[0][1]
    slow = ASKED.replace(b"/", b"/slow", 1)
    try:
        busy = [await dial(port, slow)]
        idle = [await dial(port, ASKED), await dial(port, ASKED)]
        for reader, _ in idle:
            await answered(reader)
        for oldest, _ in idle:  # each newcomer takes the place of the connection that has been idle for longest
            busy.append(await dial(port, slow))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await answered(oldest)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await answered((await dial(port, ASKED))[0])
        go_on.set()
        for reader, _ in busy:
            await answered(reader)
        late, _late = await dial(port, ASKED)
        await answered(late)
    finally:
        await runner.cleanup()


async def reports() -> AsyncIterator[int]:
    channel = Channel(lambda key: "", lambda report: None, clock=SystemClock())
    async with channel.serve(ListenAddress()) as url:
        yield int(url.rpartition(":")[2])


async def probes() -> AsyncIterator[int]:
    async with health.serve("127.0.0.1", 0, not_ready=list, registry=Registry()) as (_, port):
        yield port


@pytest.mark.parametrize("serve", [reports, probes])
async def test_the_listeners_of_a_controller_close_connections_without_a_request(
    serve: Callable[[], AsyncIterator[int]],
) -> None:
    async for port in serve():
        reader, _writer = await dial(port, HALF)
        assert await rest(reader) == b""


@pytest.mark.parametrize("listener", [reports, probes])
async def test_a_body_that_grows_a_thousandfold_is_not_inflated(listener: Callable[[], AsyncIterator[int]]) -> None:
    compressor = zlib.compressobj(wbits=-15)
    piece = compressor.compress(bytes(1 << 24)) + compressor.flush(zlib.Z_FULL_FLUSH)
    body = piece * 128 + compressor.flush()
    head = f"Connection: close\r\nContent-Encoding: deflate\r\nContent-Length: {len(body)}\r\n\r\n"
    async for port in listener():
        reader, writer = await dial(port, HALF + head.encode())
        writer.write(body)
        asked = asyncio.ensure_future(rest(reader))
        assert await longest_turn(asked) < 0.25, "CPU seconds of the event loop"
        assert (await asked).startswith(b"HTTP/1.1 4")
        writer.close()
