"""TLS in front of a protocol: nothing lost, nobody held up, everybody notified when it is over."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness import PATIENCE
from paddlecloud.kube.server import tls
from paddlecloud.local.apiserver.http import certs


@dataclass
class Echo(asyncio.Protocol):
    """Gives back what it gets; notes what happens to it."""

    events: list[str] = field(default_factory=list)
    received: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    transport: asyncio.Transport | None = None
    silent: bool = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.received += len(data)
        if not self.silent:
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append("lost")
        self.over.set()


@dataclass
class Place:
    """A server with one protocol for each connection, and what a client needs to come in."""

    port: int
    context: ssl.SSLContext
    protocols: list[Echo]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context, server_hostname="localhost")

    async def first(self) -> Echo:
        while not self.protocols or not self.protocols[0].events:
            await asyncio.sleep(0.001)
        return self.protocols[0]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> certs.CertPaths:
    return certs.ensure(tmp_path_factory.mktemp("pki"))


@pytest.fixture
async def place(paths: certs.CertPaths) -> AsyncIterator[Place]:
    protocols: list[Echo] = []

    def serve() -> Echo:
        protocols.append(Echo())
        return protocols[-1]

    make = tls.secured(certs.server_context(paths), serve)
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    yield Place(server.sockets[0].getsockname()[1], certs.client_context(paths), protocols)
    server.close()
    for protocol in protocols:
        if protocol.transport is not None:
            protocol.transport.abort()
    await server.wait_closed()


@pytest.mark.parametrize("size", [1, tls.RECORD, tls.RECORD + 1, 3 * tls.PIECE + 7])
async def test_bytes_come_through_whatever_their_number(place: Place, size: int) -> None:
    reader, writer = await place.connect()
    data = os.urandom(size)
    writer.write(data)
    assert await asyncio.wait_for(reader.readexactly(size), PATIENCE) == data
    writer.close()


async def test_many_connections_share_what_they_read_into(place: Place) -> None:
    async def one(number: int) -> bool:
        reader, writer = await place.connect()
        data = bytes([number]) * 200_000
        writer.write(data)
        same = await reader.readexactly(len(data)) == data
        writer.close()
        return same

    assert all(await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(20))), PATIENCE))


async def test_a_protocol_that_wants_no_more_gets_none_until_it_does(place: Place) -> None:
    reader, writer = await place.connect()
    writer.write(b"a")
    await reader.readexactly(1)
    echo = await place.first()
    assert echo.transport is not None
    echo.transport.pause_reading()
    assert not echo.transport.is_reading()
    writer.write(b"b" * 100_000)
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert echo.received == 1
    echo.transport.resume_reading()
    assert await asyncio.wait_for(reader.readexactly(100_000), PATIENCE) == b"b" * 100_000
    writer.close()


async def test_who_writes_more_than_is_read_is_asked_to_pause(place: Place) -> None:
    reader, writer = await place.connect()
    writer.write(b"a")
    await reader.readexactly(1)
    echo = await place.first()
    assert echo.transport is not None
    size = 32 << 20
    echo.transport.write(b"x" * size)
    assert echo.events == ["made", "pause"]
    assert echo.transport.get_write_buffer_size() > 0
    assert len(await asyncio.wait_for(reader.readexactly(size), PATIENCE)) == size
    while "resume" not in echo.events:
        await asyncio.sleep(0.001)
    writer.close()


async def test_closing_sends_what_was_written_and_sends_close_notify(place: Place) -> None:
    reader, writer = await place.connect()
    writer.write(b"a")
    await reader.readexactly(1)
    echo = await place.first()
    assert echo.transport is not None
    echo.transport.writelines([b"x" * (1 << 20), b"y"])
    echo.transport.close()
    assert echo.transport.is_closing()
    echo.transport.write(b"not any more")
    assert await asyncio.wait_for(reader.read(-1), PATIENCE) == b"x" * (1 << 20) + b"y"  # raises if it was cut off
    writer.close()
    await asyncio.wait_for(echo.over.wait(), PATIENCE)


@pytest.mark.parametrize("politely", [True, False])
async def test_a_client_that_leaves_is_noticed(place: Place, politely: bool) -> None:
    reader, writer = await place.connect()
    writer.write(b"a")
    await reader.readexactly(1)
    echo = await place.first()
    writer.close() if politely else writer.transport.abort()
    await asyncio.wait_for(echo.over.wait(), PATIENCE)
    assert echo.events == ["made", "lost"]


@pytest.mark.parametrize(
    "words", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + os.urandom(70_000), b"\x00"]
)
async def test_a_client_without_tls_is_refused_and_the_others_are_served(
    place: Place, monkeypatch: pytest.MonkeyPatch, words: bytes
) -> None:
    monkeypatch.setattr(tls, "AGREEMENT", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    writer.write(words)
    try:
        await asyncio.wait_for(reader.read(-1), PATIENCE)
    except ConnectionResetError:
        pass  # as good an end as any
    writer.close()
    assert place.protocols == []
    reader, writer = await place.connect()
    writer.write(b"a")
    assert await asyncio.wait_for(reader.readexactly(1), PATIENCE) == b"a"
    writer.close()


async def test_bytes_changed_on_the_way_end_the_connection(place: Place, paths: certs.CertPaths) -> None:
    raw_reader, raw_writer = await asyncio.open_connection("127.0.0.1", place.port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = place.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            raw_writer.write(outgoing.read())
            incoming.write(await asyncio.wait_for(raw_reader.read(1 << 16), PATIENCE))
    raw_writer.write(outgoing.read())
    client.write(b"secret")
    record = bytearray(outgoing.read())
    record[-1] ^= 1
    raw_writer.write(bytes(record))
    echo = await place.first()
    await asyncio.wait_for(echo.over.wait(), PATIENCE)
    assert echo.received == 0
    raw_writer.close()


async def test_what_is_known_of_a_connection(place: Place, tmp_path: Path) -> None:
    reader, writer = await place.connect()
    writer.write(b"a")
    await reader.readexactly(1)
    transport = (await place.first()).transport
    assert transport is not None
    assert transport.get_extra_info("peercert") is None
    assert transport.get_extra_info("ssl_object").version().startswith("TLSv1.")
    assert transport.get_extra_info("peername")[0] == "127.0.0.1"
    assert not transport.can_write_eof()
    writer.close()
