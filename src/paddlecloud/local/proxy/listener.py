"""One listening address of the proxy and the connections made through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from paddlecloud.kube.clock import Clock
from paddlecloud.local.lowports import used_for
from paddlecloud.local.proxy.balancer import Balancer
from paddlecloud.local.proxy.relay import CHUNK, relay, reset
from paddlecloud.local.proxy.routes import Route, SocketAddress

BACKLOG = 1024
CONNECT_TIMEOUT = 5.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Place = Callable[[], AbstractContextManager[bool]]


def _always() -> AbstractContextManager[bool]:
    return nullcontext(True)


class Listener:
    """`open` before anything else; raises OSError when the address cannot be had."""

    def __init__(self, address: SocketAddress, route: Route, clock: Clock, place: Place = _always) -> None:
        """`place` is what a connection holds while it stands; without one it is refused."""
        self.address = address
        self._place = place
        self._balancer = Balancer(route)
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        ip, port = self.address
        self._server = await asyncio.start_server(
            self._accept, ip, used_for(ip, port), backlog=BACKLOG, limit=CHUNK, reuse_address=True
        )

    def update(self, route: Route) -> None:
        """For connections from now on; those that stand go on where they are."""
        self._balancer.update(route)

    async def close(self) -> None:
        """Accept no more. Connections that stand go on: their pods may well have something left to say."""
        if self._server is not None:
            self._server.close()

    async def abort(self) -> None:
        """The platform ends: connections too."""
        await self.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with self._place() as free:
                server = await self._connect(str(writer.get_extra_info("peername")[0])) if free else None
                if server is None:
                    reset(writer)
                else:
                    await relay((reader, writer), server)
        except asyncio.CancelledError:
            reset(writer)  # not raised again: the stream server would log its own end as an error
        finally:
            self._connections.discard(task)

    async def _connect(self, client: str) -> Streams | None:
        """The first backend that answers. One may be gone already: then the next is tried."""
        for backend in self._balancer.candidates(client, self._clock.monotonic()):
            try:
                streams = await asyncio.wait_for(
                    asyncio.open_connection(backend.ip, used_for(*backend), limit=CHUNK), CONNECT_TIMEOUT
                )
            except (OSError, asyncio.TimeoutError):
                continue
            self._balancer.connected(client, backend, self._clock.monotonic())
            return streams
        return None
