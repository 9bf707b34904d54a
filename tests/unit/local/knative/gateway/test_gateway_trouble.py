"""The gateway when something breaks: pods that refuse, die or dawdle, clients that are slow, huge or gone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local.knative.gateway import slots
from paddlecloud.local.knative.gateway.client import HEAD_TIMEOUT, LINGER
from unit.local.knative.gateway_world import Gateway, Pod, wrote


async def test_a_queue_that_is_full_is_reported_with_a_time_to_come_again(
    gate: Gateway, pod: Pod, tmp_path: Path
) -> None:
    path = tmp_path / "slots"
    slots.create(path, 1)
    pod.gate = asyncio.Event()
    gate.pods(pod.entry(slots=str(path)), limit=1)
    asked = [asyncio.ensure_future(gate.ask()) for _ in range(101)]
    await eventually(lambda: len(gate.table.revisions["ns/r"].waiting) == 100)
    client = await gate.connect()
    client.get()
    assert (await client.answer())[0] == 503
    assert b"Retry-After: 1\r\n" in client.head
    pod.gate.set()
    assert set(await asyncio.gather(*asked)) == {(200, b"one")}
    slots.remove(path)


async def test_a_refused_connection_is_tried_at_another_pod(gate: Gateway) -> None:
    async with Pod() as pod:
        gate.pods(["127.0.0.1", 1, "dead", None], pod.entry())
        for _ in range(10):
            assert await gate.ask() == (200, b"one")


async def test_pods_that_all_refuse_are_a_bad_gateway(gate: Gateway) -> None:
    gate.pods(["127.0.0.1", 1, "dead", None])
    asked = asyncio.ensure_future(gate.ask())
    await eventually(lambda: bool(gate.table.revisions["ns/r"].stats.inside))
    await asyncio.sleep(0.1)
    gate.time.ahead += 10
    status, text = await asked
    assert (status, b"connection" in text) == (502, True)


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 502)])
async def test_a_kept_connection_that_broke_is_a_reason_to_repeat_what_may_be_repeated(
    gate: Gateway, pod: Pod, method: str, status: int
) -> None:
    assert await gate.ask() == (200, b"one")

    async def hang_up(pod: Pod, writer: asyncio.StreamWriter) -> bool:
        pod.answer = None
        return False

    pod.answer = hang_up
    assert (await gate.ask(f"{method} / HTTP/1.1\r\nHost: a.b\r\nContent-Length: 0\r\n\r\n"))[0] == status


async def test_a_pod_that_dies_in_mid_answer_breaks_the_clients_connection(gate: Gateway, pod: Pod) -> None:
    pod.answer = wrote(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    client = await gate.connect()
    client.get()
    await client.reader.readuntil(b"half")
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await client.reader.readexactly(96)


async def test_a_pod_with_another_protocol_is_a_bad_gateway(gate: Gateway, pod: Pod) -> None:
    pod.answer = wrote(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    assert (await gate.ask())[0] == 502


async def test_a_client_and_a_pod_of_http2_are_answered_with_what_to_install(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    status, text = await client.answer()
    assert (status, "pip install 'paddlecloud[h2c]'" in json.loads(text)["error"]) == (505, True)
    gate.pods(pod.entry(), h2c=True)
    pod.answer = wrote(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\r\n\r\n")
    status, text = await gate.ask()
    assert (status, "pip install 'paddlecloud[h2c]'" in json.loads(text)["error"]) == (502, True)


async def test_a_slow_pod_is_given_up_after_the_services_timeout(gate: Gateway, pod: Pod) -> None:
    pod.gate = asyncio.Event()
    gate.pods(pod.entry(), timeout=7)
    asked = asyncio.ensure_future(gate.ask())
    await eventually(lambda: pod.inside == 1)
    gate.table.sweep()
    gate.time.ahead = 7.5
    gate.table.sweep()
    assert (await asked)[0] == 504


async def test_a_slow_head_is_given_up(gate: Gateway) -> None:
    client = await gate.connect()
    client.send(b"GET / HTTP/1.1\r\nHost:")
    await eventually(lambda: any(c.deadline < float("inf") for c in gate.table.clients))
    await asyncio.sleep(0.01)
    gate.time.ahead = HEAD_TIMEOUT + 1
    gate.table.sweep()
    assert (await client.answer())[0] == 408


async def test_a_slow_client_holds_up_the_pod_and_not_the_gateways_memory(gate: Gateway, pod: Pod) -> None:
    size, sent = 64 << 20, 0

    async def answer(pod: Pod, writer: asyncio.StreamWriter) -> bool:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(b"x" * (1 << 20))
            sent += 1 << 20
            await writer.drain()
        return True

    pod.answer = answer
    client = await gate.connect()
    client.get()
    await client.reader.readuntil(b"\r\n\r\n")
    seen = -1
    while sent != seen:
        seen = sent
        await asyncio.sleep(0.05)
    assert sent < size // 2, "the pod waits for the client"
    left = size
    while left:
        left -= len(await client.reader.read(1 << 20))
    assert sent == size


async def test_a_huge_body_is_streamed_to_a_pod_that_takes_its_time(gate: Gateway) -> None:
    size, taken, go = 64 << 20, 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        await reader.readuntil(b"\r\n\r\n")
        await go.wait()
        while taken < size:
            taken += len(await reader.read(1 << 20))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    gate.pods(["127.0.0.1", server.sockets[0].getsockname()[1], "u", None])
    client = await gate.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a.b\r\nContent-Length: %d\r\n\r\n" % size)
    sent = 0

    async def send() -> None:
        nonlocal sent
        while sent < size:
            client.send(b"x" * (1 << 20))
            await client.writer.drain()
            sent += 1 << 20

    sending = asyncio.ensure_future(send())
    seen = -1
    while sent != seen:
        seen = sent
        await asyncio.sleep(0.05)
    assert sent < size // 2, "the client waits for the pod"
    go.set()
    await asyncio.wait_for(sending, PATIENCE)
    assert await client.answer() == (200, b"ok")
    server.close()


async def test_an_early_answer_ends_the_connection_after_it(gate: Gateway, pod: Pod) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    gate.pods(["127.0.0.1", server.sockets[0].getsockname()[1], "u", None])
    client = await gate.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a.b\r\nContent-Length: 1000\r\n\r\nsome")
    assert (await client.answer())[0] == 413
    assert b"Connection: close" in client.head
    server.close()


async def test_a_client_that_still_sends_can_read_why_it_was_refused(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: nobody\r\nContent-Length: %d\r\n\r\n" % (8 << 20))
    for _ in range(8):
        client.send(b"x" * (1 << 20))
        await client.writer.drain()
    assert (await client.answer())[0] == 404
    assert await client.ended()


async def test_a_refused_client_that_never_hangs_up_is_hung_up_on(gate: Gateway) -> None:
    client = await gate.connect()
    client.send(b"nonsense\r\n\r\n")
    assert (await client.answer())[0] == 400
    assert len(gate.table.clients) == 1
    gate.time.ahead = LINGER + 1
    gate.table.sweep()
    await eventually(lambda: not gate.table.clients)


WHY = "CrashLoopBackOff: Container model: it last exited with code 2: inference.json is damaged"


async def test_requests_that_wait_for_pods_that_fail_for_good_get_the_reason(gate: Gateway) -> None:
    gate.pods()
    asked = [asyncio.ensure_future(gate.ask()) for _ in range(3)]
    await eventually(lambda: len(gate.table.revisions["ns/r"].waiting) == 3)
    gate.pods(failed=WHY)
    for status, text in await asyncio.gather(*asked):
        assert (status, json.loads(text)["error"]) == (503, WHY)
    assert (await gate.ask())[0] == 503, "and so do those that come later"
    assert gate.table.revisions["ns/r"].stats.inside == 0


async def test_a_revision_that_failed_serves_again_with_its_first_pod(gate: Gateway) -> None:
    gate.pods(failed=WHY)
    assert (await gate.ask())[0] == 503
    gate.pods()
    asked = asyncio.ensure_future(gate.ask())
    await eventually(lambda: len(gate.table.revisions["ns/r"].waiting) == 1)
    async with Pod() as pod:
        gate.pods(pod.entry())
        assert await asked == (200, b"one")


async def test_a_request_is_not_refused_while_a_pod_could_serve_it(gate: Gateway, pod: Pod) -> None:
    gate.pods(pod.entry(), failed=WHY)
    assert await gate.ask() == (200, b"one")
