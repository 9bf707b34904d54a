"""A dashboard that runs: its server with its feed, on a socket that listens already, until somebody ends it."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace

from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.http import HttpTransport
from paddlecloud.ui import identity
from paddlecloud.ui.feed import Feed
from paddlecloud.ui.server import DashboardServer
from paddlecloud.ui.sessions import Identity

AGENT = "dashboard"
LOOPBACK = "127.0.0.1"


def new_label() -> str:
    """The first part of the dashboard's name: nobody else can lead a browser there who does not know it."""
    return f"pdc-{secrets.token_hex(8)}"


def host_of(label: str, port: int) -> str:
    """Browsers take every name below `localhost` for this machine (RFC 6761) and keep cookies of each apart."""
    return f"{label}.localhost:{port}"


def listen(port: int = 0) -> socket.socket:
    listening = socket.create_server((LOOPBACK, port), backlog=128)
    listening.setblocking(False)
    return listening


class Dashboard:
    """`config` has the credentials of the user who runs it, found by `pdc` by `flags`; `feed_as` is the account
    whose rights the watches have, where they are not those of the user."""

    def __init__(self, config: Config, *, label: str, flags: tuple[str, ...] = (), feed_as: str = "") -> None:
        self._transport = HttpTransport(config, user_agent=AGENT)
        own = replace(config, headers=(("Impersonate-User", feed_as),)) if feed_as else config
        self._feed_transport = HttpTransport(own, user_agent=AGENT)
        self._config, self._flags, self._label = config, flags, label
        self._hosts: set[str] = set()
        feed = Feed(Client(self._feed_transport), [config.namespace])
        self.server = DashboardServer(feed, self._by_token, hosts=lambda: self._hosts)

    async def start(self, listening: socket.socket) -> str:
        """The address."""
        port = listening.getsockname()[1]
        self._hosts.add(host_of(self._label, port))
        await self.server.start(listening)
        return f"http://{host_of(self._label, port)}"

    async def own_identity(self) -> Identity:
        return await identity.of_config(self._config, Client(self._transport, field_manager="pdc"), self._flags)

    async def stop(self) -> None:
        await self.server.stop()
        await self._transport.close()
        await self._feed_transport.close()

    async def _by_token(self, token: str) -> Identity:
        return await identity.of_token(self._transport, self._config, token)


async def serve(
    dashboard: Dashboard,
    listening: socket.socket,
    ended: asyncio.Event,
    *,
    code: str = "",
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Until `ended`. `code` is one that was given out before; without it a new one is in the announced address."""
    try:
        address = await dashboard.start(listening)
        own = await dashboard.own_identity()
        if code:
            dashboard.server.sessions.accept_code(code, own)
        else:
            announce(f"{address}/?code={dashboard.server.sessions.new_code(own)}")
        await ended.wait()
    finally:
        await dashboard.stop()
