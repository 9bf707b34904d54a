"""A server as a process: it listens until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from typing import Protocol


class ListeningServer(Protocol):
    async def start(self, host: str, port: int) -> int: ...
    async def stop(self) -> None: ...


async def serve_until_signal(server: ListeningServer, host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start(host, port)
    await stop.wait()
    await server.stop()
