"""Listeners for aiohttp servers that outlast clients who connect and then send nothing, no whole request, or one and
no more.

aiohttp closes a connection that is idle after a request, but waits without limit for the first one, and takes as many
connections as come: anybody who can reach the port could take all file descriptors of the process, without credentials.
kube-apiserver waits 32 seconds for the head of a request and keeps an idle connection for 90.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Hashable
from typing import Any

from aiohttp import web

from paddlecloud.kube import descriptors

HEAD_TIMEOUT = 30.0
"""Seconds from the connection to the end of the head of the first request."""
KEEP_ALIVE = 90.0
"""Seconds that a connection may be idle after a request: `keepalive_timeout` of servers and runners."""

Factory = Callable[[], asyncio.Protocol]


class Newcomers:
    """Connections whose clients have yet to send something: each has its time, and of too many the oldest go first."""

    def __init__(self, seconds: float, most: int | None = None) -> None:
        self._seconds = seconds
        self._most = most
        self._waiting: dict[Hashable, tuple[asyncio.TimerHandle, Callable[[], object]]] = {}

    def add(self, connection: Hashable, close: Callable[[], object]) -> None:
        if self._most is not None and len(self._waiting) >= self._most:
            self._close(next(iter(self._waiting)))
        timer = asyncio.get_running_loop().call_later(self._seconds, self._close, connection)
        self._waiting[connection] = timer, close

    def remove(self, connection: Hashable) -> None:
        """It has sent it, or is gone."""
        found = self._waiting.pop(connection, None)
        if found is not None:
            found[0].cancel()

    def _close(self, connection: Hashable) -> None:
        timer, close = self._waiting.pop(connection)
        timer.cancel()
        close()


class Connections:
    """Makes the protocols of a server. Those that have no request in time are closed; of more than `most` those that
    have none now, the one that has waited longest first; where all have one, nobody else is let in.

    It must see the beginning and the end of every request.
    """

    def __init__(self, server: web.Server, most: int, most_waiting: int | None = None) -> None:
        self._server = server
        self._most = most
        self._make_request: Callable[..., web.BaseRequest] = server.request_factory
        self._answer = server.request_handler
        self._lost = server.connection_lost
        self._newcomers = Newcomers(HEAD_TIMEOUT, most_waiting)
        self._open: set[Any] = set()
        self._idle: dict[Any, None] = {}  # those of them without a request, in the order in which they became so
        server.request_factory = self._arrived
        server.request_handler = self._answered
        server.connection_lost = self._gone  # type: ignore[method-assign]

    def __call__(self) -> asyncio.Protocol:
        if len(self._open) >= self._most:
            if not self._idle:
                return _Refusal()
            self._cut_off(next(iter(self._idle)))
        protocol = self._server()
        self._open.add(protocol)
        self._idle[protocol] = None
        self._newcomers.add(protocol, protocol.force_close)
        return protocol

    def _arrived(self, message: Any, payload: Any, protocol: Any, *rest: Any) -> web.BaseRequest:
        self._newcomers.remove(protocol)
        self._idle.pop(protocol, None)
        return self._make_request(message, payload, protocol, *rest)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        finally:
            if request.protocol in self._open:
                self._idle[request.protocol] = None

    def _gone(self, handler: Any, exc: BaseException | None = None) -> None:
        self._forget(handler)
        self._lost(handler, exc)

    def _cut_off(self, protocol: Any) -> None:
        """At once, also where an answer waits for a client that does not read it."""
        self._forget(protocol)
        transport = protocol.transport
        protocol.force_close()
        if transport is not None:
            transport.abort()

    def _forget(self, protocol: Any) -> None:
        self._newcomers.remove(protocol)
        self._open.discard(protocol)
        self._idle.pop(protocol, None)


class _Refusal(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class Site(web.BaseSite):
    """In place of `web.TCPSite`. `secured` puts TLS before the protocols of the server (`tls`): asyncio's own
    would not let go of connections whose clients never agree on it.

    At most `most` connections are open at a time, half of what the process may have if nothing else is said, and
    `most_waiting` of them without a first request; those without a request are closed for others, the oldest first.
    """

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        *,
        secured: Callable[[Factory], Callable[[], asyncio.BaseProtocol]] | None = None,
        backlog: int = 128,
        most: int | None = None,
        most_waiting: int | None = None,
        listening: socket.socket | None = None,
    ) -> None:
        """`listening` is a socket that was bound before, in place of the address."""
        super().__init__(runner, backlog=backlog)
        self._host, self._port, self._listening = host, port, listening
        self._secured = secured
        self._most = most or descriptors.share(one_of=2)
        self._most_waiting = most_waiting

    @property
    def name(self) -> str:
        scheme = "https" if self._secured else "http"
        return f"{scheme}://{self._host}:{self._port}"

    async def start(self) -> None:
        await super().start()
        server = self._runner.server
        assert server is not None, "the runner was set up"
        factory: Factory = Connections(server, self._most, self._most_waiting)
        protocols = self._secured(factory) if self._secured else factory
        address = {"sock": self._listening} if self._listening else {"host": self._host, "port": self._port}
        self._server = await asyncio.get_running_loop().create_server(protocols, **address, backlog=self._backlog)


async def listen(
    app: web.Application, host: str, port: int, *, most: int | None = None, **options: Any
) -> web.AppRunner:
    """The runner of an application that takes connections. `most` as of a `Site`, `options` as of a `web.AppRunner`.

    Bodies stay as they were sent: compressed ones can grow a thousandfold.
    """
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=KEEP_ALIVE, auto_decompress=False, **options
    )
    await runner.setup()
    try:
        await Site(runner, host, port, most=most).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner
