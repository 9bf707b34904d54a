"""A machine with real pods behind the API, and kubectl pointed at it: for the tests of streams."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from embedded.raw import Raw
from harness import PATIENCE, eventually
from unit.local.kubelet.machine import TestMachine, is_ready

FORMS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])


@dataclass(frozen=True)
class Done:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@dataclass
class Shop:
    """A machine with real pods, and kubectl pointed at it."""

    machine: TestMachine
    raw: Raw
    env: dict[str, str]
    binary: str

    async def start(self, *args: str, websockets: str = "true", **options: Any) -> asyncio.subprocess.Process:
        env = {
            **self.env,
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets,
            "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets,
        }
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            self.binary, *args, env=env, **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **options}
        )

    async def kubectl(self, *args: str, input: bytes = b"", websockets: str = "true") -> Done:
        process = await self.start(*args, websockets=websockets)
        out, err = await asyncio.wait_for(process.communicate(input), PATIENCE)
        return Done(int(process.returncode or 0), out, err.decode())

    async def pod(self, script: str, **fields: Any) -> None:
        await self.machine.run(script, **fields)
        await self.machine.until(fields.get("name", "pod"), is_ready)


def gate(shop: Shop) -> dict[str, Any]:
    """A named pipe that a container waits on until the test writes to it."""
    folder = shop.machine.data / "gate"
    folder.mkdir()
    os.mkfifo(folder / "go")
    return {
        "volumes": [{"name": "gate", "hostPath": {"path": str(folder)}}],
        "container": {"volumeMounts": [{"name": "gate", "mountPath": "/shared"}]},
    }


async def used(shop: Shop, subresource: str, websockets: str) -> None:
    """A WebSocket is asked for by GET, SPDY by POST."""
    verb = "GET" if websockets == "true" else "POST"
    labels = f'verb="{verb}",group="",version="v1",resource="pods",subresource="{subresource}"'
    await answered(shop, f'{labels},code="101"')


async def answered(shop: Shop, labels: str) -> None:
    await eventually(shop.machine.platform.metrics.registry.render, lambda text: labels in text)


@asynccontextmanager
async def websocket(
    shop: Shop, path: str, *protocols: str, autoping: bool = True
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    headers = {"Authorization": f"Bearer {shop.raw.admin}"}
    opened = shop.raw.session.ws_connect(shop.raw.url + path, protocols=protocols, headers=headers, autoping=autoping)
    async with opened as socket:
        yield socket


async def collect(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while True:
        message = await asyncio.wait_for(socket.receive(), PATIENCE)
        if message.type is not aiohttp.WSMsgType.BINARY:
            return found
        found[message.data[0]] = found.get(message.data[0], b"") + message.data[1:]
