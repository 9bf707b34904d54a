"""The benchmark of the gateway counts what clients wait for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + b"x" * 64
STALL = 0.6


class Stalls(asyncio.Protocol):
    """A server that answers at once, but for one pause in which it answers nobody."""

    asked = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        Stalls.asked += 1
        if Stalls.asked == 50:
            time.sleep(STALL)
        self._transport.write(ANSWER)


@pytest.fixture
def port() -> Iterator[int]:
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Stalls, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield int(server.sockets[0].getsockname()[1])
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=10)
    loop.close()


def test_requests_that_were_to_be_sent_during_a_pause_count_with_their_wait(port: int) -> None:
    """Of 800 planned in as many milliseconds most fall into the pause, in which 16 connections can send only 16."""
    command = [sys.executable, "-m", "bench.gateway", "steady", str(port), "800"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["p50"] > 1000 * STALL / 6
