"""Logs as kubectl reads them: every option, followed, of earlier runs, and refused with the reason."""

from __future__ import annotations

import asyncio
import base64
import re

import pytest

from embedded.streams.shop import Shop, gate, websocket
from harness import PATIENCE, eventually
from unit.local.kubelet.machine import shell_pod, waiting_reason


async def test_every_option_of_logs(shop: Shop) -> None:
    await shop.machine.run("for i in 1 2 3 4; do echo line $i; done; echo oops >&2")
    await shop.machine.phase("pod", "Succeeded")
    whole = "line 1\nline 2\nline 3\nline 4\noops\n"
    table = [
        ([], whole),
        (["-c", "main"], whole),
        (["--tail=2"], "line 4\noops\n"),
        (["--tail=0"], ""),
        (["--limit-bytes=9"], whole[:9]),
        (["--since=1h"], whole),
        (["--since-time=2099-01-01T00:00:00Z"], ""),
        (["-f"], whole),
        (["-l", "!none"], whole),
    ]
    for options, wanted in table:
        target = [] if options[:1] == ["-l"] else ["pod"]
        assert (await shop.kubectl("logs", *target, *options)).text == wanted, options
    stamped = (await shop.kubectl("logs", "pod", "--timestamps", "--tail=1")).text
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z oops\n", stamped)
    only = await shop.raw("GET", "/api/v1/namespaces/default/pods/pod/log?stream=Stderr")
    assert (only.body, only.headers["Content-Type"]) == (b"oops\n", "text/plain")


async def test_followed_logs_come_as_they_are_printed_and_end_with_the_container(shop: Shop) -> None:
    await shop.pod("echo first; read line < /shared/go; echo last", **gate(shop))
    following = await shop.start("logs", "-f", "pod")
    assert following.stdout is not None
    assert await asyncio.wait_for(following.stdout.readline(), PATIENCE) == b"first\n"
    (shop.machine.data / "gate" / "go").write_text("now\n")
    out, _ = await asyncio.wait_for(following.communicate(), PATIENCE)
    assert (following.returncode, out) == (0, b"last\n")


@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io"])
async def test_a_log_over_a_websocket_is_followed_to_its_end(shop: Shop, protocol: str) -> None:
    await shop.pod("echo first; read line < /shared/go; echo last", **gate(shop))
    async with websocket(shop, "/api/v1/namespaces/default/pods/pod/log?follow=true", protocol) as socket:
        pieces = [await socket.receive(PATIENCE)]
        (shop.machine.data / "gate" / "go").write_text("now\n")
        pieces += [message async for message in socket]
    sent = [piece.data if protocol == "binary.k8s.io" else base64.b64decode(piece.data) for piece in pieces]
    assert (sent[0], b"".join(sent)) == (b"first\n", b"first\nlast\n")


async def test_a_reader_that_leaves_a_websocket_is_not_waited_for(shop: Shop) -> None:
    await shop.pod("echo first; sleep 600")
    before = len(asyncio.all_tasks())
    async with websocket(shop, "/api/v1/namespaces/default/pods/pod/log?follow=true", "binary.k8s.io") as socket:
        assert (await socket.receive(PATIENCE)).data == b"first\n"
    await eventually(lambda: len(asyncio.all_tasks()), lambda left: left <= before)


async def test_a_reader_that_leaves_is_not_waited_for(shop: Shop) -> None:
    await shop.pod("echo first; sleep 600")
    before = len(asyncio.all_tasks())
    following = await shop.start("logs", "-f", "pod")
    assert following.stdout is not None
    await asyncio.wait_for(following.stdout.readline(), PATIENCE)
    assert len(asyncio.all_tasks()) > before
    following.kill()
    await following.wait()
    await eventually(lambda: len(asyncio.all_tasks()), lambda left: left <= before)


async def test_previous_logs(shop: Shop) -> None:
    await shop.machine.run("echo run; exit 1", policy="OnFailure")
    await shop.machine.until("pod", lambda pod: waiting_reason(pod) == "CrashLoopBackOff")
    assert (await shop.kubectl("logs", "pod", "--previous")).text == "run\n"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than or equal to 1"),
        ("sinceSeconds=5&sinceTime=2024-01-01T00:00:00Z", 422, "at most one of `sinceTime` or `sinceSeconds`"),
        ("sinceTime=yesterday", 400, "is not a time"),
        ("tailLines=some", 400, "expected a whole number"),
        ("tailLines=%C2%B2", 400, "expected a whole number"),
        ("tailLines=--5", 400, "expected a whole number"),
        (f"limitBytes={'9' * 5000}", 400, "expected a whole number"),
        ("sinceTime=0001-01-01T00:00:00%2B23:59", 400, "is not a time"),
        ("follow=maybe", 400, "expected true or false"),
        ("container=none", 400, "container none is not valid for pod pod"),
        ("previous=true", 400, 'previous terminated container "main" in pod "pod" not found'),
    ],
)
async def test_logs_that_cannot_be_read_say_why(shop: Shop, query: str, code: int, message: str) -> None:
    await shop.pod("sleep 600")
    reply = await shop.raw("GET", f"/api/v1/namespaces/default/pods/pod/log?{query}")
    assert reply.status == code
    assert message in reply.json["message"]


async def test_pods_that_are_nowhere_have_no_logs(shop: Shop) -> None:
    missing = await shop.raw("GET", "/api/v1/namespaces/default/pods/none/log")
    assert (missing.status, missing.json["reason"]) == (404, "NotFound")
    unplaced = shell_pod("true", name="unplaced")
    del unplaced["spec"]["nodeName"]
    await shop.machine.create(unplaced)
    reply = await shop.raw("GET", "/api/v1/namespaces/default/pods/unplaced/log")
    assert (reply.status, reply.json["message"]) == (400, "pod unplaced does not have a host assigned")
