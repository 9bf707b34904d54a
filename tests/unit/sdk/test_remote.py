"""exec and port-forward against servers that answer as Kubernetes does: version 5, version 4 alone, and refusals."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from harness import PATIENCE
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential
from paddlecloud.kube.errors import ApiError, BadRequest, Forbidden, Unreachable
from paddlecloud.sdk import forwarding
from paddlecloud.sdk.remote import V4, V5, Remote, exit_code

Talk = Callable[[web.WebSocketResponse], Awaitable[None]]


class Server:
    """One pod's subresources; each test says how it talks and which protocols it knows."""

    def __init__(self) -> None:
        self.talk: Talk = _nothing
        self.protocols: tuple[str, ...] = (V5, V4)
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.requests: list[web.Request] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.refusal is not None:
            return web.json_response(self.refusal[1], status=self.refusal[0])
        socket = web.WebSocketResponse(protocols=self.protocols)
        await socket.prepare(request)
        await self.talk(socket)
        await socket.close()
        return socket

    @property
    def config(self) -> Config:
        return Config(server=f"http://127.0.0.1:{self.port}/prefix", context="test")


async def _nothing(socket: web.WebSocketResponse) -> None: ...


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_get("/{tail:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
async def remote(server: Server) -> AsyncIterator[Remote]:
    made = Remote(server.config)
    yield made
    await made.close()


def status(code: int) -> bytes:
    if code == 0:
        return b'\x03{"metadata":{},"status":"Success"}'
    causes = [{"reason": "ExitCode", "message": str(code)}]
    body = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return b"\x03" + json.dumps(body).encode()


async def output(remote: Remote, *command: str, **options: Any) -> tuple[int, bytes, bytes]:
    process = await remote.exec("ns", "pod", command, **options)
    collected = {"stdout": b"", "stderr": b""}
    while (piece := await process.read()) is not None:
        collected[piece.stream] += piece.data
    await process.close()
    return process.exit_code, collected["stdout"], collected["stderr"]


async def test_what_is_asked_for_is_in_the_address(server: Server, remote: Remote) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(status(0))

    server.talk = talk
    await output(remote, "sh", "-c", "echo a b & c", container="main", tty=True)
    request = server.requests[0]
    assert request.path == "/prefix/api/v1/namespaces/ns/pods/pod/exec"
    assert request.query.getall("command") == ["sh", "-c", "echo a b & c"]
    assert dict(request.query) == {"command": "sh", "container": "main", "stdout": "true", "tty": "true"}


async def test_output_is_distinguished_and_the_exit_code_found(server: Server, remote: Remote) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        for message in (b"\x00", b"\x01", b"\x01out ", b"\x02err", b"\x01more", status(42)):
            await socket.send_bytes(message)

    server.talk = talk
    assert await output(remote, "x") == (42, b"out more", b"err")


@pytest.mark.parametrize(("protocols", "ended"), [((V5, V4), True), ((V4,), False)], ids=["v5", "v4"])
async def test_the_end_of_input_is_reported_where_it_can_be(
    server: Server, remote: Remote, protocols: tuple[str, ...], ended: bool
) -> None:
    got: list[bytes] = []

    async def talk(socket: web.WebSocketResponse) -> None:
        while True:
            message = await asyncio.wait_for(socket.receive(), PATIENCE)
            assert message.type is WSMsgType.BINARY
            got.append(message.data)
            if message.data in (b"\x00last", b"\xff\x00") and (not ended or message.data[0] == 255):
                break
        await socket.send_bytes(status(0))

    server.talk, server.protocols = talk, protocols
    process = await remote.exec("ns", "pod", ["cat"], stdin=True)
    assert process.can_end_input is ended
    await process.write(b"a" * 100_000)
    await process.write(b"last")
    await process.end_input()
    assert await process.read() is None
    await process.close()
    assert b"".join(piece[1:] for piece in got if piece[0] == 0) == b"a" * 100_000 + b"last"
    assert (b"\xff\x00" in got) is ended
    assert max(map(len, got)) <= 64 * 1024 + 1


async def test_a_connection_that_breaks_is_no_exit_code(server: Server, remote: Remote) -> None:
    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x01half")

    server.talk = talk
    process = await remote.exec("ns", "pod", ["x"])
    assert (await process.read()) == ("stdout", b"half")
    with pytest.raises(Unreachable, match="broke"):
        await process.read()
    await process.close()


async def test_a_refusal_keeps_the_words_of_the_server(server: Server, remote: Remote) -> None:
    body = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "you may not"}
    server.refusal = (403, body)
    with pytest.raises(Forbidden, match="you may not"):
        await remote.exec("ns", "pod", ["x"])
    server.refusal = (502, {"not": "a status"})
    with pytest.raises(ApiError):
        await remote.exec("ns", "pod", ["x"])


async def test_a_server_without_websockets_is_said_to_have_none(server: Server, remote: Remote) -> None:
    server.refusal = (200, {})
    with pytest.raises(BadRequest, match="WebSocket"):
        await remote.exec("ns", "pod", ["x"])


async def test_a_credential_is_fetched_anew_after_a_refusal(server: Server) -> None:
    class Source:
        token = "old"

        def peek(self) -> Credential | None:
            return Credential(f"Bearer {self.token}", None, None)

        def fetch(self) -> Credential:
            raise AssertionError("peek always knows")

        def reject(self) -> bool:
            self.token, fresh = "new", self.token == "old"
            server.refusal = None
            return fresh

    async def talk(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(status(0))

    server.talk = talk
    server.refusal = (401, {"kind": "Status", "reason": "Unauthorized", "code": 401, "message": "expired"})
    config = server.config
    config.source = Source()
    remote = Remote(config)
    try:
        assert (await output(remote, "x"))[0] == 0
    finally:
        await remote.close()
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


async def test_nobody_there_is_unreachable() -> None:
    remote = Remote(Config(server="http://127.0.0.1:1", context="test"))
    try:
        with pytest.raises(Unreachable):
            await remote.exec("ns", "pod", ["x"])
    finally:
        await remote.close()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": "Success"}, 0),
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "137"}]}}, 137),
    ],
)
def test_exit_codes(body: dict[str, Any], expected: int) -> None:
    assert exit_code(body) == expected


def test_a_program_that_could_not_run_raises_why() -> None:
    with pytest.raises(ApiError, match="no such container"):
        exit_code({"status": "Failure", "message": "no such container", "reason": "InternalError", "code": 500})


# Ports


async def upper_case(socket: web.WebSocketResponse) -> None:
    """A pod's port as the kubelet serves it: two bytes of port on both channels, then data."""
    for channel in (0, 1):
        await socket.send_bytes(bytes([channel]) + struct.pack("<H", 80))
    async for message in socket:
        if message.data == b"\x00bye":
            break
        await socket.send_bytes(b"\x00" + message.data[1:].upper())


async def test_a_forwarded_port_carries_bytes(server: Server, remote: Remote) -> None:
    server.talk, server.protocols = upper_case, (V4,)
    forward = forwarding.Forward(lambda port: remote.connect("ns", "pod", port), 80, print)
    port = await forward.listen("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello")
        assert await asyncio.wait_for(reader.readexactly(5), PATIENCE) == b"HELLO"
        writer.write(b"bye")
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b"", "the pod ended its side"
        writer.close()
    finally:
        await forward.close()
    assert server.requests[0].query["ports"] == "80"


async def test_an_answer_that_comes_after_the_clients_own_end_is_carried(server: Server, remote: Remote) -> None:
    async def late(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(b"\x00\x50\x00")
        await socket.receive()
        await asyncio.sleep(0.1)
        await socket.send_bytes(b"\x00late")

    server.talk, server.protocols = late, (V4,)
    forward = forwarding.Forward(lambda port: remote.connect("ns", "pod", port), 80, print)
    port = await forward.listen("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"question")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b"late"
        writer.close()
    finally:
        await forward.close()


async def test_what_the_pod_says_on_the_error_channel_is_reported(server: Server, remote: Remote) -> None:
    async def refuse(socket: web.WebSocketResponse) -> None:
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + struct.pack("<H", 80))
        await socket.send_bytes(b"\x01connection refused")

    reported: list[str] = []
    server.talk, server.protocols = refuse, (V4,)
    forward = forwarding.Forward(lambda port: remote.connect("ns", "pod", port), 80, reported.append)
    port = await forward.listen("127.0.0.1", 0)
    try:
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()
    finally:
        await forward.close()
    assert reported == ["port 80: connection refused"] * 2
