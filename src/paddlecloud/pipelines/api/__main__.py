"""The server as a process of its own, which is what the chart's Deployment runs: `python -m paddlecloud.pipelines.api`.

It needs no ServiceAccount token, only the certificate authority of the API server. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from paddlecloud.kube import logs
from paddlecloud.kube.config import api_server_of_pod
from paddlecloud.kube.errors import ConfigError
from paddlecloud.kube.server.process import serve_until_signal
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
        config = api_server_of_pod(os.environ, args.ca)
    except ConfigError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    asyncio.run(serve_until_signal(PipelinesServer(config, namespace=args.namespace), args.host, args.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
