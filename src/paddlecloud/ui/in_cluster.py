"""The dashboard as the chart's Deployment runs it: `python -m paddlecloud.ui.in_cluster`.

Its watches run with the account of its pod, which may read what pages show and nothing else. Everything else is done
with the token of the viewer: pasted into the page that signs in, or handed on by a proxy (`ui.trusted_proxy`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys

from paddlecloud.kube import config as kubeconfig
from paddlecloud.kube import garbage, logs
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.errors import ConfigError
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.server.process import serve_until_signal
from paddlecloud.ui import identity
from paddlecloud.ui.exposure import Exposure
from paddlecloud.ui.feed import Feed
from paddlecloud.ui.running import AGENT
from paddlecloud.ui.server import DashboardServer
from paddlecloud.ui.sessions import Identity

PORT = 8480


class ClusterDashboard:
    """`config` has the credentials of the pod: the watches alone use them."""

    def __init__(self, config: Config, exposure: Exposure) -> None:
        self._server = Config(config.server, ca=config.ca, insecure=config.insecure, source=Static(Credential()))
        self._feed_transport = HttpTransport(config, user_agent=AGENT)
        self._transport = HttpTransport(self._server, user_agent=AGENT)
        feed = Feed(Client(self._feed_transport), [config.namespace])
        self.server = DashboardServer(feed, self._by_token, hosts=lambda: {*exposure.hosts}, exposure=exposure)

    async def start(self, host: str, port: int) -> int:
        listening = socket.create_server((host, port), backlog=128)
        listening.setblocking(False)
        await self.server.start(listening)
        return int(listening.getsockname()[1])

    async def stop(self) -> None:
        await self.server.stop()
        await self._transport.close()
        await self._feed_transport.close()

    async def _by_token(self, token: str) -> Identity:
        return await identity.of_token(self._transport, self._server, token)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.ui.in_cluster", description=__doc__)
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on")  # noqa: S104 - of a pod
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--name", action="append", required=True, help="under which browsers reach it; more than once")
    parser.add_argument("--http", action="store_true", help="browsers reach it without TLS")
    parser.add_argument("--trusted-proxy", action="append", default=[], metavar="CIDR", help="that hands on tokens")
    args = parser.parse_args()
    logs.configure()
    os.umask(0o077)
    try:
        config = kubeconfig.in_cluster()
        exposure = Exposure(tuple(args.name), https=not args.http, proxies=tuple(args.trusted_proxy))
        dashboard = ClusterDashboard(config, exposure)
    except (ConfigError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    garbage.collect_seldom()
    asyncio.run(serve_until_signal(dashboard, args.host, args.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
