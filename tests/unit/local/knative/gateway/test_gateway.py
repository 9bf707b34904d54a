"""The gateway with real sockets: requests and answers, shares, queues and limits, what it reports and how it leaves."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local.knative.gateway import slots
from paddlecloud.local.knative.gateway.listeners import Listeners
from paddlecloud.local.knative.gateway.revisions import IDLE
from paddlecloud.local.knative.gateway.sockets import reserved
from unit.local.knative.gateway_world import Gateway, Pod, R, gateway, wrote

# Ports of single routes


async def test_a_port_of_a_single_route_needs_neither_host_nor_path_and_ends_with_it(gate: Gateway, pod: Pod) -> None:
    listeners = Listeners(gate.table)
    sock = reserved(0)
    own = sock.getsockname()[1]
    gate.table.apply({f"port:{own}": [list(R)]})
    listeners.follow(gate.table.ports)
    gate.port = own
    for host in (f"127.0.0.1:{own}", f"localhost:{own}", "localhost"):
        assert await gate.ask(f"GET /v2/ready HTTP/1.1\r\nHost: {host}\r\n\r\n") == (200, b"one")
    assert pod.heads[-1].startswith(b"GET /v2/ready "), "the path is the pod's own"
    assert await gate.ask() == (200, b"one"), "by its host as well, as on the shared port"
    status, _ = await gate.ask("GET / HTTP/1.1\r\nHost: rebound.example.com\r\n\r\n")
    assert status == 404, "a page whose name leads here must not read what a service answers"
    gate.table.apply({f"port:{own}": None})
    listeners.follow(gate.table.ports)
    sock.close()

    async def refused() -> bool:
        try:
            await gate.ask()
        except ConnectionError:
            return True
        return False

    await eventually(refused)


# Plain requests


async def test_many_requests_on_one_connection_use_one_connection_to_the_pod(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    for _ in range(5):
        client.get()
        assert await client.answer() == (200, b"one")
    assert pod.connections == 1


async def test_a_connection_nobody_uses_is_let_go(gate: Gateway, pod: Pod) -> None:
    assert await gate.ask() == (200, b"one")
    assert pod.open == 1
    gate.time.ahead = IDLE + 0.1
    gate.table.sweep()
    await eventually(lambda: pod.open == 0)
    assert await gate.ask() == (200, b"one")


async def test_a_pod_sees_who_asked_and_nothing_of_the_connection(gate: Gateway, pod: Pod) -> None:
    await gate.ask("GET /p?q=1 HTTP/1.1\r\nHost: a.b\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\n")
    head = pod.heads[0].decode()
    assert head.startswith("GET /p?q=1 HTTP/1.1\r\nHost: a.b\r\n")
    assert "X-Forwarded-For: 127.0.0.1\r\n" in head
    assert "Hop" not in head
    assert "Keep-Alive" not in head


async def test_what_a_client_says_about_itself_in_a_proxys_name_does_not_reach_the_pod(gate: Gateway, pod: Pod) -> None:
    forged = [
        "X-Forwarded-For: 203.0.113.9", "x-forwarded-for: 203.0.113.9", "X_Forwarded_For: 203.0.113.9",
        "X_Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: bank", "X-Forwarded-Port: 1",
        "Forwarded: for=203.0.113.9", "X-Real-IP: 203.0.113.9", "X-Envoy-External-Address: 203.0.113.9",
        "X-Forwarded-User: root", "X-Forwarded_Groups: admins", "X-Original-URL: /admin", "X_Envoy-Retry-On: 5xx",
        "K-Network-Probe: queue", "K_Anything: 1", "K-Proxy-Request: activator", "Knative-Serving-Revision: other",
    ]  # fmt: skip
    await gate.ask("\r\n".join(["GET / HTTP/1.1", "Host: a.b", *forged, "X-Request-Id: 7", "X-Forwardedly: 8", "\r\n"]))
    lines = pod.heads[0].decode().split("\r\n")
    assert [line for line in lines[1:] if line] == [
        "Host: a.b",
        "X-Request-Id: 7",
        "X-Forwardedly: 8",
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Proto: http",
    ]


@pytest.mark.parametrize(
    ("framing", "sent"),
    [("Content-Length: 5", "hello"), ("Transfer-Encoding: chunked", "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: 1\r\n\r\n")],
)
async def test_a_body_arrives_whole_however_it_is_framed(gate: Gateway, pod: Pod, framing: str, sent: str) -> None:
    client = await gate.connect()
    for _ in range(2):
        client.send(f"POST / HTTP/1.1\r\nHost: a.b\r\n{framing}\r\n\r\n{sent}".encode())
        assert await client.answer() == (200, b"one")
    assert pod.bodies == [b"hello", b"hello"]


async def test_a_body_that_comes_byte_by_byte(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    for byte in b"POST / HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":
        client.send(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert await client.answer() == (200, b"one")
    assert pod.bodies == [b"hello"]


async def test_requests_sent_ahead_are_answered_in_order(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    for path in ("/1", "/2", "/3"):
        client.get(path)
    for _ in range(3):
        assert await client.answer() == (200, b"one")
    assert [head.split()[1] for head in pod.heads] == [b"/1", b"/2", b"/3"]


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a.b\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"hi")
    assert await client.answer() == (200, b"one")
    assert b"Expect" not in pod.heads[0]


async def test_hosts_nobody_has_get_404_and_the_connection_stays(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    client.get(host="other.host")
    status, text = await client.answer()
    assert (status, b"other.host" in text) == (404, True)
    client.get()
    assert await client.answer() == (200, b"one")


async def test_a_tricky_request_is_refused_and_ends_the_connection(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    client.send(
        b"POST / HTTP/1.1\r\nHost: a.b\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.b\r\n\r\n"
    )
    assert (await client.answer())[0] == 400
    assert await client.ended()
    assert pod.heads == []


async def test_by_path_where_the_host_is_this_machine(gate: Gateway, pod: Pod) -> None:
    gate.table.apply({"path:ns/svc": [["ns/r", 100]]})
    for path, seen in (("/ns/svc", b"/"), ("/ns/svc?x=1", b"/?x=1"), ("/ns/svc/a/b?c", b"/a/b?c")):
        assert await gate.ask(f"GET {path} HTTP/1.1\r\nHost: localhost:1\r\n\r\n") == (200, b"one")
        assert pod.heads[-1].split()[1] == seen
    assert (await gate.ask("GET /ns/other HTTP/1.1\r\nHost: localhost\r\n\r\n"))[0] == 404
    assert (await gate.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))[0] == 200


# Answers


async def test_a_stream_is_passed_on_as_it_comes(gate: Gateway, pod: Pod) -> None:
    second = asyncio.Event()

    async def answer(pod: Pod, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await second.wait()
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")
        return True

    pod.answer = answer
    client = await gate.connect()
    client.get()
    await client.reader.readuntil(b"\r\n\r\n")
    assert await asyncio.wait_for(client.reader.readexactly(10), PATIENCE) == b"5\r\nfirst\r\n"
    second.set()
    assert await client.reader.readexactly(16) == b"6\r\nsecond\r\n0\r\n\r\n"[:16]


async def test_an_answer_that_ends_with_its_connection_gets_an_end_of_its_own(gate: Gateway, pod: Pod) -> None:
    pod.answer = wrote(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
    client = await gate.connect()
    client.get()
    assert await client.answer() == (200, b"until the end")
    assert b"chunked" in client.head


async def test_an_old_client_gets_no_chunks(gate: Gateway, pod: Pod) -> None:
    pod.answer = wrote(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    client = await gate.connect()
    client.send(b"GET / HTTP/1.0\r\nHost: a.b\r\n\r\n")
    assert await client.answer() == (200, b"hello")
    assert b"chunked" not in client.head


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_answers_without_a_body(gate: Gateway, pod: Pod, method: str) -> None:
    first = b"HTTP/1.1 204 No Content\r\n\r\n" if method == "GET" else b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
    pod.answer = wrote(first, keep=True)
    client = await gate.connect()
    for _ in range(2):
        client.send(f"{method} / HTTP/1.1\r\nHost: a.b\r\n\r\n".encode())
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert head.split(b"\r\n")[0] == first.split(b"\r\n")[0]
    assert pod.connections == 1


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_what_a_pod_sends_after_an_answer_without_a_body_is_not_taken_for_the_next_answer(
    gate: Gateway, pod: Pod, method: str
) -> None:
    """A server that sends a body to a HEAD, of which a client chose the content."""
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    first = b"HTTP/1.1 204 No Content\r\n\r\n" if method == "GET" else b"HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n"
    pod.answer = wrote(first + forged, keep=True)
    client = await gate.connect()
    for connections in (1, 2):
        client.send(f"{method} / HTTP/1.1\r\nHost: a.b\r\n\r\n".encode())
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert head.split(b"\r\n")[0] == first.split(b"\r\n")[0]
        assert pod.connections == connections


async def test_a_websocket_is_a_tunnel_both_ways(gate: Gateway, pod: Pod) -> None:
    async def answer(pod: Pod, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nwelcome")
        return True  # the next "head" is whatever the client sends

    pod.answer = answer
    client = await gate.connect()
    client.send(b"GET /ws HTTP/1.1\r\nHost: a.b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert b"101" in head
    assert b"Upgrade: websocket" in head
    assert await client.reader.readexactly(7) == b"welcome"
    client.send(b"\x81\x00 frames \r\n\r\n")
    await eventually(lambda: len(pod.heads) == 2)
    assert pod.heads[1] == b"\x81\x00 frames \r\n\r\n"


# Shares and pods


async def test_shares_are_kept_to_within_one_in_a_hundred(gate: Gateway) -> None:
    async with Pod("old") as old, Pod("new") as new:
        gate.route(("ns/old", 90), ("ns/new", 10))
        gate.pods(old.entry(), revision="ns/old")
        gate.pods(new.entry(), revision="ns/new")
        client, reported = await gate.connect(), Counter[bytes]()
        for _ in range(200):
            client.get()
            reported[(await client.answer())[1]] += 1
        assert 18 <= reported[b"new"] <= 22


async def test_the_less_busy_pod_gets_the_request(gate: Gateway) -> None:
    async with Pod("slow") as slow, Pod("quick") as quick:
        slow.gate = asyncio.Event()
        gate.pods(slow.entry("1"), quick.entry("2"))
        busy = [asyncio.ensure_future(gate.ask()) for _ in range(8)]
        await eventually(lambda: slow.inside > 0)
        for _ in range(10):
            assert await gate.ask() == (200, b"quick")
        slow.gate.set()
        assert {status for status, _ in await asyncio.gather(*busy)} == {200}


async def test_a_request_waits_for_the_first_pod_which_is_asked_for_once(gate: Gateway) -> None:
    waiting = [asyncio.ensure_future(gate.ask()) for _ in range(20)]
    await eventually(
        lambda: len(gate.table.revisions["ns/r"].waiting) == 20 if "ns/r" in gate.table.revisions else False
    )
    assert set(gate.woken) == {"ns/r"}
    async with Pod() as pod:
        gate.pods(pod.entry())
        assert await asyncio.gather(*waiting) == [(200, b"one")] * 20


async def test_a_client_that_gives_up_waiting_is_forgotten(gate: Gateway) -> None:
    client = await gate.connect()
    client.get()
    await eventually(lambda: bool(gate.table.revisions.get("ns/r") and gate.table.revisions["ns/r"].waiting))
    client.close()
    revision = gate.table.revisions["ns/r"]
    await eventually(lambda: revision.stats.inside == 0)
    async with Pod() as pod:
        gate.pods(pod.entry())
        assert await gate.ask() == (200, b"one")
        assert len(pod.heads) == 1


async def test_a_limit_of_concurrent_requests_holds_across_gateways(tmp_path: Path) -> None:
    path = tmp_path / "slots"
    slots.create(path, 2)
    async with gateway() as one, gateway() as other, Pod() as pod:
        pod.gate = asyncio.Event()
        for each in (one, other):
            each.route(R)
            each.pods(pod.entry(slots=str(path)), limit=2)
        asked = [asyncio.ensure_future(each.ask()) for each in (one, other) for _ in range(6)]
        await eventually(lambda: pod.inside == 2)
        pod.gate.set()
        assert await asyncio.gather(*asked) == [(200, b"one")] * 12
        assert pod.most == 2
    slots.remove(path)


async def test_a_pod_that_was_taken_out_gets_no_new_request_and_ends_its_last(gate: Gateway) -> None:
    async with Pod("old") as old, Pod("new") as new:
        gate.pods(old.entry("1"))
        old.gate = asyncio.Event()
        last = asyncio.ensure_future(gate.ask())
        await eventually(lambda: old.inside == 1)
        gate.pods(new.entry("2"))
        assert await gate.ask() == (200, b"new")
        old.gate.set()
        assert await last == (200, b"old")


async def test_a_gateway_that_leaves_answers_what_it_has_begun(gate: Gateway, pod: Pod) -> None:
    pod.gate = asyncio.Event()
    idle = await gate.connect()
    idle.get(host="nobody")
    await idle.answer()
    client = await gate.connect()
    client.get()
    await eventually(lambda: pod.inside == 1)
    draining = asyncio.ensure_future(gate.table.drain(10))
    assert await idle.ended()
    pod.gate.set()
    assert await client.answer() == (200, b"one")
    assert b"Connection: close" in client.head
    await asyncio.wait_for(draining, PATIENCE)


async def test_what_was_carried_is_reported(gate: Gateway, pod: Pod) -> None:
    pod.gate = asyncio.Event()
    asked = [asyncio.ensure_future(gate.ask()) for _ in range(3)]
    await eventually(lambda: pod.inside == 3)
    gate.time.ahead += 10
    report = gate.table.report()["ns/r"]
    assert report["inside"] == 3
    assert 2.5 < report["concurrency"] <= 3
    pod.gate.set()
    await asyncio.gather(*asked)
    report = gate.table.report()["ns/r"]
    assert report["codes"] == {"200": 3}
    assert gate.table.report() == {}, "nothing happened since"
