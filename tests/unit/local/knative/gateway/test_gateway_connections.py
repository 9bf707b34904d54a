"""Very many connections to gateway processes as they are: all held, all answered, and no burden to other clients."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local.knative.supervisor import Gateways
from unit.local.knative.gateway_world import Gateway, Pod

HOST = "a.b"
PARTS = 5
"""Processes that hold the connections."""
FEW = 64
"""Open files that are allowed to begin with, far fewer than are needed."""
KILOBYTES = 8
"""What a connection may cost a gateway."""


@asynccontextmanager
async def running(folder: Path, pod: Pod) -> AsyncIterator[Gateways]:
    """Gateways that were started with a low limit of open files, as a login shell has it."""
    gateways = Gateways(
        folder / "gateway", changed=lambda: None, report=lambda report: None, wake=lambda key: None, count=2
    )
    gateways.publish({f"host:{HOST}": [["ns/r", 100]], "rev:ns/r": {"pods": [pod.entry()], "limit": 0, "timeout": 60}})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(FEW, _open_files() + FEW), hard))
    try:
        await gateways.ensure()
        await eventually(lambda: len(gateways.pids) == 2 and gateways.ready)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield gateways
    finally:
        await gateways.stop(processes=True)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
async def test_a_crowd_is_held_and_others_are_served(tmp_path: Path, count: int) -> None:
    async with Pod() as pod, running(tmp_path, pod) as gateways, AsyncExitStack() as stack:
        assert gateways.port is not None
        before = sum(map(_resident, gateways.pids))
        clients = [await stack.enter_async_context(_part(gateways.port, count // PARTS)) for _ in range(PARTS)]
        assert await asyncio.gather(*map(_answered, clients)) == [count // PARTS] * PARTS
        assert sum(map(_connections, gateways.pids)) >= count, "all of them are held"
        grown = (sum(map(_resident, gateways.pids)) - before) / count
        assert count < 1000 or grown < KILOBYTES, f"{grown:.1f} kB a connection"

        other = Gateway()
        other.port = gateways.port
        for _ in range(20):
            assert await other.ask(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n") == (200, b"one")

        for process in clients:
            assert process.stdin is not None
            process.stdin.write(b"again\n")
        assert await asyncio.gather(*map(_answered, clients)) == [count // PARTS] * PARTS, "not one was dropped"


@asynccontextmanager
async def _part(port: int, count: int) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, str(Path(__file__).with_name("many_connections.py")), str(port), str(count), HOST]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def _answered(process: asyncio.subprocess.Process) -> int:
    assert process.stdout is not None
    return int(await asyncio.wait_for(process.stdout.readline(), 5 * PATIENCE))


def _connections(pid: int) -> int:
    links = (os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir())
    return sum(link.startswith("socket:") for link in links)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident(pid: int) -> int:
    """In kilobytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024
