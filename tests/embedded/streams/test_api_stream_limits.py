"""Sessions in pods are bounded in memory and descriptors, whatever the client sends and whether the pod reads it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tracemalloc
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from embedded.streams.shop import Shop, websocket
from harness import PATIENCE, eventually
from paddlecloud.local.apiserver.streaming import handlers, port_forward, spdy
from paddlecloud.local.kubelet.streams import streams

POD = "/api/v1/namespaces/default/pods/pod"
MEGABYTE = 1024 * 1024
SILENT = """
import socket
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listening.bind(("0.0.0.0", 8080))
listening.listen(1000)
held = []
while True:
    held.append(listening.accept())
"""
"""A server that accepts every connection, reads nothing of it and never closes it."""


@pytest.fixture
async def silent(shop: Shop) -> Shop:
    ready = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", SILENT], **ready})
    return shop


def connections() -> int:
    """How many this process has to port 8080 of a pod. Those that it closed have no inode any more."""
    remote = f":{8080:04X}"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    opened = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _exists(fd)}
    return sum(row[2].endswith(remote) and f"socket:[{row[9]}]" in opened for row in rows)


def _exists(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


async def count() -> int:
    return connections()


async def test_a_pod_that_does_not_read_keeps_no_connection_of_a_client_that_left(silent: Shop) -> None:
    await eventually(count, 0, what="the probe's connections are closed")
    async with websocket(silent, f"{POD}/portforward?ports=8080", "v4.channel.k8s.io") as opened:
        for _ in range(6):
            try:
                await asyncio.wait_for(opened.send_bytes(b"\0" + bytes(MEGABYTE)), 1)
            except asyncio.TimeoutError:
                break  # nobody reads on: that is the point
        assert connections() == 1
        opened._response.close()  # type: ignore[union-attr]
    await eventually(count, 0, what="the connection to the pod is closed")


@pytest.mark.parametrize("path", ["portforward?ports=8080", "exec?command=sleep&command=600&stdin=1&stdout=1"])
async def test_what_a_pod_does_not_read_does_not_fill_the_memory(silent: Shop, path: str) -> None:
    async with websocket(silent, f"{POD}/{path}", "v4.channel.k8s.io") as opened:
        payload = bytes(2 * MEGABYTE)
        tracemalloc.start()
        try:
            for _ in range(40):
                try:
                    await asyncio.wait_for(opened.send_bytes(b"\0" + payload), 0.5)
                except asyncio.TimeoutError:
                    break
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        opened._response.close()  # type: ignore[union-attr]
    assert held < 24 * MEGABYTE  # of the client in this process as well


async def test_one_session_has_so_many_connections_to_pods_as_its_namespace_may_have(
    silent: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers.descriptors, "share", lambda one_of: 6 * 16 // one_of)
    silent.machine.platform.serve_streams(silent.machine.streams)
    encoder, decoder = spdy.Encoder(), spdy.Decoder()
    async with websocket(silent, f"{POD}/portforward", port_forward.TUNNEL_PROTOCOL) as opened:
        for number in range(1, 17, 4):
            for role, at in (("error", number), ("data", number + 2)):
                named = {"streamtype": role, "port": "8080", "requestid": str(number)}
                await opened.send_bytes(encoder.syn_stream(at, named))
        refused: list[bytes] = []
        while not refused:
            message = await asyncio.wait_for(opened.receive(), PATIENCE)
            refused += [frame.data for frame in decoder.feed(message.data) if frame.data]
        assert refused == [b"too many connections to pods of namespace default at once"]
        assert connections() == 3


async def test_sessions_of_one_namespace_leave_room_for_others(silent: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "MOST_SESSIONS", 4)
    silent.machine.platform.serve_streams(silent.machine.streams)
    path, form = f"{POD}/exec?command=sleep&command=600&stdout=1", "v4.channel.k8s.io"
    async with websocket(silent, path, form), websocket(silent, path, form):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with websocket(silent, path, form):
                pass
        assert refused.value.status == 429

    async def answer() -> bool:
        try:
            async with websocket(silent, path, form):
                return True
        except aiohttp.WSServerHandshakeError:
            return False

    await eventually(answer, True, what="sessions that ended have made room")


async def test_more_ports_than_a_websocket_has_channels_are_refused(silent: Shop) -> None:
    ports = ",".join(["8080"] * 129)
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with websocket(silent, f"{POD}/portforward?ports={ports}", "v4.channel.k8s.io"):
            pass
    assert refused.value.status == 400
    assert connections() == 0


async def test_a_session_whose_end_is_interrupted_leaves_neither_descriptors_nor_a_program(shop: Shop) -> None:
    """As that of a client who leaves while the connection is upgraded: its request is cancelled on the way out."""
    await shop.pod("sleep 600")
    mark = str(1_000_000 + os.getpid())  # no other process sleeps for so long

    async def running() -> bool:
        return any(line.split(b"\0")[1:2] == [mark.encode()] for line in _command_lines())

    session = await shop.machine.streams.exec("default", "pod", None, ["sleep", mark], stdin=True)
    await eventually(running, True, what="the program runs")
    closing = asyncio.ensure_future(session.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await eventually(running, False, what="the program ends")
    assert session._outputs == {}
    assert session._control.fileno() == -1


async def test_a_client_that_leaves_while_it_is_attached_leaves_no_descriptors(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Left(streams.AttachSession):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    monkeypatch.setattr(streams, "AttachSession", Left)
    await shop.pod("sleep 600", container={"stdin": True})
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(shop.machine.streams.attach("default", "pod", stdin=True))
    await eventually(
        lambda: len(os.listdir("/proc/self/fd")), lambda now: now <= before, what="all descriptors are closed"
    )


def _command_lines() -> list[bytes]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((folder / "cmdline").read_bytes())
    return found


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["exec?command=true&stdout=1", "attach?stdout=1", "portforward?ports=8080"])
async def test_sessions_are_asked_for_by_get_or_post_alone(shop: Shop, method: str, path: str) -> None:
    """The right to update or delete `pods/*` is none to run programs there."""
    await shop.pod("sleep 600")
    reply = await shop.raw(method, f"{POD}/{path}", headers=_upgrade())
    assert (reply.status, reply.json["reason"]) == (405, "MethodNotAllowed")


async def test_a_log_whose_websocket_never_opens_is_not_followed(shop: Shop) -> None:
    await shop.pod("echo begun; sleep 600")
    for _ in range(3):
        reply = await shop.raw("GET", f"{POD}/log?follow=true&tailLines=0", headers=_upgrade()[:2])
        assert reply.status == 400

    async def followed() -> list[str]:
        links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd") if _exists(fd)]
        return [target for link in links if (target := os.readlink(link)).endswith(".log") and "/pods/" in target]

    await eventually(followed, [], what="no log is open any more")


def _upgrade() -> list[tuple[str, Any]]:
    key = ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
    return [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), key]
