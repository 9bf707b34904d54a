"""port-forward as kubectl does it, over WebSockets and over SPDY, and as other clients do."""

from __future__ import annotations

import asyncio
import os
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from embedded.streams.shop import FORMS, Shop, collect, used, websocket
from harness import PATIENCE

SERVER = """
import http.server, os
class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body[::-1])
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Echo).serve_forever()
"""


@asynccontextmanager
async def forwarded(shop: Shop, port: int, websockets: str) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """A local port that leads to a port of the pod."""
    process = await shop.start("port-forward", "pod/pod", f":{port}", "--address=127.0.0.1", websockets=websockets)
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
    found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) -> ", line)
    assert found, line
    try:
        yield int(found[1]), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@FORMS
async def test_forwarded_ports_carry_many_connections_at_once(shop: Shop, websockets: str) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", SERVER], **_ready(8080)})
    async with forwarded(shop, 8080, websockets) as (port, _), aiohttp.ClientSession() as session:

        async def reverse(body: bytes) -> bool:
            async with session.post(f"http://127.0.0.1:{port}/", data=body) as response:
                return await response.read() == body[::-1]

        bodies = [os.urandom(1 << size) for size in range(4, 22, 2)]
        assert all(await asyncio.wait_for(asyncio.gather(*map(reverse, bodies)), PATIENCE))
    await used(shop, "portforward", websockets)


def _ready(port: int) -> dict[str, Any]:
    return {"readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}}


@FORMS
async def test_a_port_nobody_listens_on_is_reported(shop: Shop, websockets: str) -> None:
    await shop.pod("sleep 600")
    async with forwarded(shop, 9, websockets) as (port, process):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        writer.close()
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert b"error forwarding port 9 to pod default/pod" in err


async def test_the_channel_form_of_port_forward(shop: Shop) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", SERVER], **_ready(8080)})
    path = "/api/v1/namespaces/default/pods/pod/portforward?ports=8080"
    async with websocket(shop, path, "v4.channel.k8s.io") as socket:
        for channel in (0, 1):
            message = await asyncio.wait_for(socket.receive(), PATIENCE)
            assert message.data == bytes([channel]) + struct.pack("<H", 8080)
        request = b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"
        await socket.send_bytes(b"\x00" + request)
        found = await collect(socket)
    assert found[0].endswith(b"\r\n\r\ncba")


GREETING = """
import socket
listening = socket.create_server(("0.0.0.0", 8080))
while True:
    connection, _ = listening.accept()
    connection.sendall(b"220 ready\\r\\n")
"""
"""A server that sends first, as those of mail and many databases do."""


@FORMS
async def test_a_forwarded_server_may_send_first(shop: Shop, websockets: str) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", GREETING], **_ready(8080)})
    async with forwarded(shop, 8080, websockets) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.readline(), PATIENCE) == b"220 ready\r\n"
        writer.close()


async def test_a_server_may_send_first_in_the_channel_form(shop: Shop) -> None:
    await shop.pod("", container={"image": "python", "command": ["python3", "-c", GREETING], **_ready(8080)})
    path = "/api/v1/namespaces/default/pods/pod/portforward?ports=8080"
    async with websocket(shop, path, "v4.channel.k8s.io") as socket:
        messages = [(await asyncio.wait_for(socket.receive(), PATIENCE)).data for _ in range(3)]
    assert messages[2] == b"\x00220 ready\r\n"


async def test_ports_of_a_pod_that_does_not_run_are_not_forwarded(shop: Shop) -> None:
    await shop.machine.run("true")
    await shop.machine.phase("pod", "Succeeded")
    refused = await shop.kubectl("port-forward", "pod/pod", ":80")
    assert refused.code == 1
    assert "pod is not running" in refused.err
