"""The ports on which a gateway process takes connections: the one that all routes share, and those of single routes."""

from __future__ import annotations

import asyncio
import logging

from paddlecloud.local.knative.gateway.client import Client
from paddlecloud.local.knative.gateway.sockets import BACKLOG, listening
from paddlecloud.local.knative.gateway.table import Table

log = logging.getLogger(__name__)


class Listeners:
    """Connections wait in the kernel's queue from the moment `listen` or `follow` returns."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._shared: asyncio.Future[asyncio.Server] | None = None
        self._own: dict[int, asyncio.Future[asyncio.Server]] = {}

    def listen(self, port: int) -> None:
        """Take connections on the port that all routes share."""
        self._shared = self._listen(port, own=None)

    def follow(self, ports: set[int]) -> None:
        """Take connections on these ports of single routes and on no others."""
        for port in self._own.keys() - ports:
            _close(self._own.pop(port))
        for port in ports - self._own.keys():
            try:
                self._own[port] = self._listen(port, own=port)
            except OSError as error:  # the control plane holds the port: no file descriptor is left, or no memory
                log.error("port %d of a route: %s", port, error)

    def close(self) -> None:
        """Take no more connections; those there are go on."""
        for found in (self._shared, *self._own.values()):
            if found is not None:
                _close(found)

    def _listen(self, port: int, *, own: int | None) -> asyncio.Future[asyncio.Server]:
        sock = listening(port)
        loop = asyncio.get_running_loop()
        return asyncio.ensure_future(loop.create_server(lambda: Client(self._table, own), sock=sock, backlog=BACKLOG))


def _close(starting: asyncio.Future[asyncio.Server]) -> None:
    starting.add_done_callback(lambda started: started.result().close())
