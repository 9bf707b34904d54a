"""The server as a process of its own, which is what the chart's Deployment runs: `python -m paddlecloud.pipelines.api`.

It needs no ServiceAccount token, only the certificate authority of the API server. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from paddlecloud.kube import logs
from paddlecloud.kube.config import Config
from paddlecloud.kube.errors import ConfigError
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api.server import PipelinesServer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.pipelines.api", description=__doc__)
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on")  # noqa: S104 - of a pod
    parser.add_argument("--port", type=int, default=names.SERVICE_PORT)
    parser.add_argument("--namespace", default=names.SYSTEM_NAMESPACE, help="where things are that name no namespace")
    parser.add_argument("--ca", type=Path, required=True, help="certificate authority of the API server, PEM")
    args = parser.parse_args()
    logs.configure()
    try:
        config = api_server(os.environ, args.ca)
    except ConfigError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    asyncio.run(serve(PipelinesServer(config, namespace=args.namespace), args.host, args.port))
    return 0


def api_server(environ: Mapping[str, str], ca: Path) -> Config:
    """Where it is, without credentials: each request brings its own."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: this program runs in a pod", reason="NotInCluster")
    try:
        authority = ca.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {ca}: {error.strerror}", reason="MissingFile") from error
    return Config(f"https://{f'[{host}]' if ':' in host else host}:{port}", context="in-cluster", ca=authority)


async def serve(server: PipelinesServer, host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start(host, port)
    await stop.wait()
    await server.stop()


if __name__ == "__main__":
    sys.exit(main())
