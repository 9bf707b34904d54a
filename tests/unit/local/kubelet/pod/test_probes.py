"""What probes ask, and when their single results become a verdict."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness import PATIENCE
from paddlecloud.local.kubelet.pod import grpc_health
from paddlecloud.local.kubelet.pod.grpc_health import ACK, DATA, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, frame
from paddlecloud.local.kubelet.pod.handlers import HandlerTarget, Result, ask, port_of
from paddlecloud.local.kubelet.pod.probes import ProbeState


@pytest.mark.parametrize(
    ("failures", "successes", "results", "states"),
    [
        (3, 1, "+", [True]),
        (3, 1, "--", [None, None]),
        (3, 1, "---", [None, None, False]),
        (3, 1, "+--+--", [True, True, True, True, True, True]),
        (3, 1, "+---+", [True, True, True, False, True]),
        (1, 2, "+-+", [None, False, False]),
        (1, 2, "++", [None, True]),
    ],
)
def test_enough_of_the_same_in_a_row_decide(
    failures: int, successes: int, results: str, states: list[bool | None]
) -> None:
    state = ProbeState(failures, successes)
    seen = []
    for result in results:
        state.record(result == "+")
        seen.append(state.value)
    assert seen == states


def test_a_port_may_be_named() -> None:
    container = {"ports": [{"name": "web", "containerPort": 80}]}
    assert (port_of(8080, container), port_of("8080", container), port_of("web", container)) == (8080, 8080, 80)
    with pytest.raises(ValueError, match="'db'"):
        port_of("db", container)


NO_ANSWER = Result(False, "grpc: the server gave no answer: it may lack grpc.health.v1.Health, or not know the service")


def answer(state: int) -> bytes:
    """What grpc servers say: settings and a ping first, the message, then the trailers."""
    message = b"\x08" + bytes([state]) if state else b""
    return (
        frame(SETTINGS)
        + frame(SETTINGS, flags=ACK)
        + frame(PING, b"12345678")
        + frame(HEADERS, b"", flags=4, stream=1)
        + frame(DATA, b"\x00" + len(message).to_bytes(4, "big") + message, stream=1)
        + frame(HEADERS, b"", flags=4 | END_STREAM, stream=1)
    )


@pytest.mark.parametrize(
    ("said", "result"),
    [
        (answer(1), Result(True)),
        (answer(2), Result(False, 'service unhealthy (responded with "NOT_SERVING")')),
        (answer(0), Result(False, 'service unhealthy (responded with "UNKNOWN")')),
        (
            frame(SETTINGS) + frame(HEADERS, b"", flags=4 | END_STREAM, stream=1),
            NO_ANSWER,
        ),
        (
            frame(RST_STREAM, b"\0\0\0\1", stream=1),
            NO_ANSWER,
        ),
        (b"HTTP/1.1 400", Result(False, "grpc: 3 bytes read on a total of 4740180 expected bytes")),
    ],
    ids=["serving", "not serving", "unknown", "no such service", "reset", "not grpc"],
)
async def test_a_service_is_asked_for_its_health(said: bytes, result: Result) -> None:
    asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.write_eof()
        asked.set_result(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        handler = {"grpc": {"port": port, "service": "s" * 200}}
        got = await ask(handler, HandlerTarget(Path("/"), "127.0.0.1", {}, {}), timeout=5)
        sent = await asyncio.wait_for(asked, PATIENCE)
    finally:
        server.close()
        await server.wait_closed()
    assert got == result
    assert sent.startswith(grpc_health.PREFACE)
    assert b"\x0a\xc8\x01" + b"s" * 200 in sent


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": "/ HTTP/1.1\r\nX-Other: 1"},
        {"path": "/\n"},
        {"httpHeaders": [{"name": "X-A", "value": "1\r\n\r\nDELETE / HTTP/1.1"}]},
        {"httpHeaders": [{"name": "X-A: 1\r\nX-B", "value": "2"}]},
    ],
)
async def test_a_probe_is_one_request_whatever_its_fields_say(wrong: dict[str, object], tmp_path: Path) -> None:
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        target = HandlerTarget(tmp_path, "127.0.0.1", {}, {})
        assert await ask({"httpGet": {"port": port, "path": "/a"}}, target, timeout=PATIENCE) == Result(True)
        found = await ask({"httpGet": {"port": port, **wrong}}, target, timeout=PATIENCE)
    assert found == Result(False, "httpGet: host, path and httpHeaders must have no line breaks")
    assert len(received) == 1
