"""The server as a process, which is what the chart's Deployment runs: `python -m paddlecloud.modelhub.server`.

It needs no ServiceAccount token, only the certificate authority of the API server. The keys of the store are in the
environment, under the names that the store's own tools read. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from paddlecloud.kube import logs, shared_key
from paddlecloud.kube.config import api_server_of_pod
from paddlecloud.kube.errors import ConfigError
from paddlecloud.kube.server.process import serve_until_signal
from paddlecloud.modelhub import names
from paddlecloud.modelhub.server.server import HubServer
from paddlecloud.storage.errors import StorageError
from paddlecloud.storage.stores import open_store


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.modelhub.server", description=__doc__)
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on")  # noqa: S104 - of a pod
    parser.add_argument("--port", type=int, default=names.PORT)
    parser.add_argument("--store", required=True, help="file:///FOLDER or s3://BUCKET/PREFIX")
    parser.add_argument("--ca", type=Path, required=True, help="certificate authority of the API server, PEM")
    parser.add_argument("--grant-key", type=Path, help="file with the key of read grants; without it none is accepted")
    args = parser.parse_args()
    logs.configure()

    async def grant_key() -> bytes | None:
        return await asyncio.to_thread(read_key_file, args.grant_key) if args.grant_key else None

    try:
        server = HubServer(open_store(args.store), api_server_of_pod(os.environ, args.ca), grant_key)
    except (ConfigError, StorageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    asyncio.run(serve_until_signal(server, args.host, args.port))
    return 0


def read_key_file(path: Path) -> bytes | None:
    """Read again for each grant: the Secret is mounted when the operator has made it, which may be later."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) >= shared_key.SHORTEST else None


if __name__ == "__main__":
    sys.exit(main())
