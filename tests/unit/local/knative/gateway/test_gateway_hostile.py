"""Clients and pods that mean harm: whatever they send, the other services of the same gateway are answered.

A turn of the event loop is what all others wait for. It is measured in CPU time, so that a busy machine does not count.
"""

from __future__ import annotations

import asyncio

import pytest

from harness import eventually, longest_turn
from unit.local.knative.gateway_world import Gateway, Pod, wrote

LONGEST_TURN = 0.06
"""CPU seconds; harmless traffic takes a tenth of it or less."""


SPACES = b"X: a" + b" " * 30_000 + b"b\r\n"
"""A regular expression with a lazy middle reads this in a second."""


async def test_heads_made_to_be_slow_do_not_hold_up_other_clients(gate: Gateway, pod: Pod) -> None:
    head = b"GET / HTTP/1.1\r\nHost: a.b\r\n" + SPACES + b"\r\n"
    asked = asyncio.gather(*(gate.ask(head.decode()) for _ in range(6)))
    assert await longest_turn(asked) < LONGEST_TURN
    assert [status for status, _ in await asked] == [200] * 6


async def test_requests_sent_ahead_in_thousands_do_not_hold_up_other_clients(gate: Gateway, pod: Pod) -> None:
    client = await gate.connect()
    count = 6000
    client.send(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n" * count)

    async def all_answers() -> set[int]:
        return {(await client.answer())[0] for _ in range(count)}

    answers = asyncio.ensure_future(all_answers())
    assert await longest_turn(answers) < LONGEST_TURN
    assert await answers == {404}


async def test_a_client_that_reads_no_answers_is_not_asked_for_more_requests(gate: Gateway) -> None:
    client = await gate.connect()
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    asks = b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n" * 2000
    await eventually(lambda: bool(gate.table.clients))
    (inside,) = gate.table.clients
    for _ in range(400):  # 28 MB of requests, 60 MB of answers
        if client.writer.transport.get_write_buffer_size() > 1 << 20:
            break  # the gateway has stopped reading
        client.send(asks)
        for _ in range(20):
            await asyncio.sleep(0)
    assert client.writer.transport.get_write_buffer_size() > 1 << 20
    assert inside.transport.get_write_buffer_size() < 1 << 20
    client.writer.transport.abort()


async def _interim_for_ever(pod: Pod, writer: asyncio.StreamWriter) -> bool:
    for _ in range(1000):
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 40)
        await writer.drain()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    return False


async def _byte_by_byte(pod: Pod, writer: asyncio.StreamWriter) -> bool:
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\nContent-Length: 0\r\n\r\n":
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    return False


HOSTILE_ANSWERS = {
    "a head that never ends": (502, wrote(b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 20))),
    "a flood of headers": (502, wrote(b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 20_000 + b"\r\n")),
    "a head longer than allowed, in one piece": (502, wrote(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 65_600 + b"\r\n\r\n")),
    "interim heads for ever": (502, _interim_for_ever),
    "spaces": (200, wrote(b"HTTP/1.1 200 OK\r\n" + SPACES + SPACES[:-30] + b"c\r\nContent-Length: 0\r\n\r\n")),
    "one byte at a time": (200, _byte_by_byte),
    "one byte in a chunk": (200, wrote(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 90_000
                                       + b"0\r\n\r\n")),
}  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE_ANSWERS)
async def test_a_pod_that_answers_to_do_harm_holds_up_its_own_service_only(
    gate: Gateway, pod: Pod, answer: str
) -> None:
    status, hostile = HOSTILE_ANSWERS[answer]
    async with Pod("other") as other:
        gate.route(("ns/other", 100), host="other")
        gate.pods(other.entry(), revision="ns/other")
        pod.answer = hostile
        asked = asyncio.ensure_future(gate.ask())
        longest = asyncio.ensure_future(longest_turn(asked))
        assert await gate.ask("GET / HTTP/1.1\r\nHost: other\r\n\r\n") == (200, b"other")
        assert await longest < LONGEST_TURN
        assert (await asked)[0] == status


async def test_given_too_many_clients_then_the_longest_idle_makes_room_and_those_with_a_request_stay(
    gate: Gateway, pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate.table, "_most", 3)
    first, second = await gate.connect(), await gate.connect()
    for client in (second, first):  # the first connection is the one that asked last
        client.get()
        assert await client.answer() == (200, b"one")
    pod.gate = asyncio.Event()
    busy = [await gate.connect()]
    busy[0].get()
    await eventually(lambda: pod.inside == 1)
    for idle, count in ((second, 2), (first, 3)):
        busy.append(await gate.connect())
        busy[-1].get()
        assert await idle.ended()
        await eventually(lambda count=count: pod.inside == count)  # type: ignore[misc]
    assert await (await gate.connect()).ended(), "all others have a request"
    pod.gate.set()
    for client in busy:
        assert await client.answer() == (200, b"one")
    assert (await gate.ask())[0] == 200
