"""The service proxy: where it listens, whom it asks, and that it carries every byte and every end of a stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from harness import PATIENCE, eventually
from paddlecloud.kube.clock import SystemClock
from paddlecloud.kube.resource import Object
from paddlecloud.local.proxy import relay
from paddlecloud.local.proxy.balancer import Balancer
from paddlecloud.local.proxy.connections import Connections
from paddlecloud.local.proxy.listener import Listener
from paddlecloud.local.proxy.relay import reset
from paddlecloud.local.proxy.routes import Route, SocketAddress, routes_of, unsupported
from tools.ports import free_port

A, B, C = SocketAddress("127.70.0.1", 8080), SocketAddress("127.70.0.2", 8080), SocketAddress("127.70.0.3", 8080)
FRONT = SocketAddress("127.40.0.10", 80)


def service(**spec: Any) -> Object:
    body = {"clusterIP": FRONT.ip, "ports": [{"name": "http", "port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": body}


def piece(*endpoints: tuple[SocketAddress, str], port: str = "http") -> Object:
    conditions = {
        "ready": {"ready": True, "serving": True, "terminating": False},
        "unready": {"ready": False, "serving": False, "terminating": False},
        "leaving": {"ready": False, "serving": True, "terminating": True},
        "dying": {"ready": False, "serving": False, "terminating": True},
        "unsaid": {},
    }
    return {
        "ports": [{"name": port, "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": [at.ip], "conditions": conditions[how]} for at, how in endpoints],
    }


# Routes


@pytest.mark.parametrize(
    ("case", "endpoints", "backends"),
    [
        ("only the ready are used", [(A, "ready"), (B, "unready"), (C, "leaving")], (A,)),
        ("without a ready one, those that still serve", [(A, "leaving"), (B, "dying"), (C, "unready")], (A,)),
        ("what is not said counts as ready", [(A, "unsaid")], (A,)),
        ("nobody there: nothing is listened on", [(A, "unready")], None),
    ],
)
def test_who_is_asked(
    case: str, endpoints: list[tuple[SocketAddress, str]], backends: tuple[SocketAddress, ...] | None
) -> None:
    expected = {FRONT: Route(backends)} if backends else {}
    assert routes_of(service(), [piece(*endpoints)]) == expected


@pytest.mark.parametrize(
    ("case", "spec", "expected"),
    [
        ("headless", {"clusterIP": "None"}, []),
        ("a name elsewhere", {"type": "ExternalName", "clusterIP": ""}, []),
        ("another port's endpoints", {"ports": [{"name": "grpc", "port": 81}]}, []),
        ("udp", {"ports": [{"name": "http", "port": 80, "protocol": "UDP"}]}, []),
        (
            "a node port",
            {"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]},
            [FRONT, SocketAddress("127.0.0.1", 30080)],
        ),
    ],
)
def test_where_it_listens(case: str, spec: Object, expected: list[SocketAddress]) -> None:
    assert list(routes_of(service(**spec), [piece((A, "ready"))])) == expected


def test_endpoints_of_all_slices_count_once() -> None:
    slices = [piece((A, "ready")), piece((A, "ready"), (B, "ready"))]
    assert routes_of(service(), slices)[FRONT].backends == (A, B)


def test_ports_that_cannot_be_proxied_are_reported() -> None:
    (text,) = unsupported(service(ports=[{"port": 53, "protocol": "UDP"}]))
    assert "53/UDP" in text
    assert unsupported(service()) == unsupported(service(clusterIP="None", ports=[{"port": 53, "protocol": "UDP"}]))


# Balancing


def test_backends_take_turns_and_the_others_are_next_in_line() -> None:
    balancer = Balancer(Route((A, B, C)))
    assert [balancer.candidates("me", 0.0) for _ in range(4)] == [[A, B, C], [B, C, A], [C, A, B], [A, B, C]]


def test_a_client_keeps_its_backend_until_it_is_quiet_for_too_long_or_the_backend_goes() -> None:
    balancer = Balancer(Route((A, B), affinity=60))

    def visit(client: str, now: float) -> SocketAddress:
        chosen = balancer.candidates(client, now)[0]
        balancer.connected(client, chosen, now)
        return chosen

    assert [visit("one", 0), visit("two", 0), visit("one", 50), visit("two", 50)] == [A, B, A, B]
    assert visit("one", 100) == A, "each visit begins the time anew"
    assert visit("one", 161) in (A, B)
    balancer.update(Route((B, C), affinity=60))
    assert visit("two", 100) == B
    assert visit("one", 162) in (B, C)


# Connections

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def backend(serve: Serve, ip: str = "127.70.9.1") -> AsyncIterator[SocketAddress]:
    server = await asyncio.start_server(serve, ip, 0)
    async with server:
        yield SocketAddress(ip, server.sockets[0].getsockname()[1])


@contextlib.asynccontextmanager
async def proxied(*backends: SocketAddress, connections: Connections | None = None) -> AsyncIterator[Listener]:
    address = SocketAddress("127.40.9.1", free_port("127.40.9.1"))
    places = connections or Connections(1000)
    listener = Listener(address, Route(backends), SystemClock(), partial(places.place, "default"))
    await listener.open()
    try:
        yield listener
    finally:
        await listener.abort()


async def ask(address: SocketAddress, question: bytes) -> bytes:
    """Send all, end our half, read all."""
    reader, writer = await asyncio.open_connection(address.ip, address.port)
    writer.write(question)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()


async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers only after the end of the question."""
    data = await reader.read()
    writer.write(str(len(data)).encode())
    writer.close()


async def test_a_question_that_ends_is_answered_after_its_end() -> None:
    async with backend(count) as at, proxied(at) as listener:
        assert await ask(listener.address, b"x" * 3_000_000) == b"3000000"


async def test_a_namespace_has_half_of_the_connections_and_the_others_the_rest() -> None:
    silent = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        await silent.wait()
        writer.close()

    places = Connections(4)
    held = []
    async with backend(hold) as at, proxied(at, connections=places) as listener:
        for _ in range(2):
            reader, writer = await asyncio.open_connection(*listener.address)
            assert await asyncio.wait_for(reader.readexactly(4), PATIENCE) == b"here"
            held.append(writer)
        reader, writer = await asyncio.open_connection(*listener.address)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), PATIENCE)
        with places.place("other") as free:
            assert free
        for each in held:
            each.close()  # the pod never closes its side: the connections still stand
        reader, writer = await asyncio.open_connection(*listener.address)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), PATIENCE)
        silent.set()

        async def answer() -> bytes:
            with contextlib.suppress(ConnectionResetError):
                return await ask(listener.address, b"")
            return b""

        await eventually(answer, b"here", what="places are free again")


async def test_a_pod_that_does_not_read_the_rest_has_a_while_for_it_and_keeps_its_place_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both sides ended their halves; what is left for the pod would keep a descriptor for as long as it likes."""
    monkeypatch.setattr(relay, "PATIENCE", 0.2)
    over = asyncio.Event()

    async def end_unread(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write_eof()
        await over.wait()
        writer.close()

    async with backend(end_unread) as at:
        to_pod = await asyncio.open_connection(*at)
        to_pod[1].write(bytes(16 * 1024 * 1024))  # more than the machine keeps for a reader that does not read
        async with backend(_end_at_once) as client:
            from_client = await asyncio.open_connection(*client)
            await asyncio.wait_for(relay.relay(from_client, to_pod), PATIENCE)
        assert to_pod[1].get_extra_info("socket").fileno() == -1
        over.set()


async def _end_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write_eof()
    await reader.read()
    writer.close()


async def test_a_large_answer_arrives_whole() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"y" * 5_000_000)
        writer.close()

    async with backend(flood) as at, proxied(at) as listener:
        assert len(await ask(listener.address, b"")) == 5_000_000


async def test_a_backend_that_has_gone_costs_no_connection() -> None:
    gone = SocketAddress("127.70.9.2", free_port("127.70.9.2"))
    async with backend(count) as at, proxied(gone, at) as listener:
        assert [await ask(listener.address, b"abc") for _ in range(4)] == [b"3"] * 4


async def test_with_no_backend_left_the_client_is_reset() -> None:
    gone = SocketAddress("127.70.9.2", free_port("127.70.9.2"))
    async with proxied(gone) as listener:
        with pytest.raises(ConnectionResetError):
            await ask(listener.address, b"abc")


async def test_an_end_of_the_backend_or_of_the_client_ends_the_other_side_too() -> None:
    received = asyncio.Event()

    async def abort(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        reset(writer)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        received.set()
        writer.close()

    async with backend(abort) as at, proxied(at) as listener:
        with pytest.raises(ConnectionResetError):
            await ask(listener.address, b"abc")
    async with backend(listen) as at, proxied(at) as listener:
        _, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"x")
        await writer.drain()
        reset(writer)
        await asyncio.wait_for(received.wait(), PATIENCE)


async def test_connections_outlive_the_listener_and_routes_change_under_them() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async with backend(echo) as first, backend(count, "127.70.9.3") as second, proxied(first) as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"one\n")
        assert await asyncio.wait_for(reader.readline(), PATIENCE) == b"one\n"
        listener.update(Route((second,)))
        assert await ask(listener.address, b"four") == b"4"
        await listener.close()
        writer.write(b"two\n")
        assert await asyncio.wait_for(reader.readline(), PATIENCE) == b"two\n"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*listener.address)
        writer.close()


async def test_an_address_that_is_taken_is_reported_by_its_error() -> None:
    async with backend(count) as at:
        listener = Listener(at, Route((at,)), SystemClock())
        with pytest.raises(OSError, match="address already in use"):
            await listener.open()
