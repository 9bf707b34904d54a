"""Listeners for aiohttp servers that outlast clients who connect and then send nothing, or no whole request.

aiohttp closes a connection that is idle after a request, but waits without limit for the first one: anybody who can
reach the port could take all file descriptors of the process, without credentials. kube-apiserver waits 32 seconds for
the head of a request and keeps an idle connection for 90.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Hashable
from typing import Any

from aiohttp import web

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


class FirstRequests:
    """Makes the protocols of a server, and closes those that have no request in time. It must see the first one."""

    def __init__(self, server: web.Server, most: int | None = None) -> None:
        self._server = server
        self._make_request: Callable[..., web.BaseRequest] = server.request_factory
        self._newcomers = Newcomers(HEAD_TIMEOUT, most)
        server.request_factory = self._arrived

    def __call__(self) -> asyncio.Protocol:
        protocol = self._server()
        self._newcomers.add(protocol, protocol.force_close)
        return protocol

    def _arrived(self, message: Any, payload: Any, protocol: Any, *rest: Any) -> web.BaseRequest:
        self._newcomers.remove(protocol)
        return self._make_request(message, payload, protocol, *rest)


class Site(web.BaseSite):
    """In place of `web.TCPSite`. `secured` puts a protocol of its own, such as TLS, before those of the server.

    `most_waiting` connections may be without a request at a time; then the oldest of them are closed.
    """

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
        secured: Callable[[Factory], Callable[[], asyncio.BaseProtocol]] | None = None,
        backlog: int = 128,
        most_waiting: int | None = None,
    ) -> None:
        super().__init__(runner, ssl_context=ssl_context, backlog=backlog)
        self._host, self._port = host, port
        self._secured = secured
        self._most_waiting = most_waiting

    @property
    def name(self) -> str:
        scheme = "https" if self._ssl_context or self._secured else "http"
        return f"{scheme}://{self._host}:{self._port}"

    async def start(self) -> None:
        await super().start()
        server = self._runner.server
        assert server is not None, "the runner was set up"
        factory: Factory = FirstRequests(server, self._most_waiting)
        protocols = self._secured(factory) if self._secured else factory
        self._server = await asyncio.get_running_loop().create_server(
            protocols, self._host, self._port, ssl=self._ssl_context, backlog=self._backlog
        )
