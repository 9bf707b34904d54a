"""The dashboard of the embedded platform as a process of its own: `python -m paddlecloud.ui`.

The platform's daemon starts it at the first connection to its port and gives it the socket; it ends with the daemon,
whose end closes its standard input. The first line there is a code that opens a session of the platform's owner.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys

from paddlecloud.kube import garbage, logs
from paddlecloud.kube.config import load
from paddlecloud.ui.running import Dashboard, serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.ui", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the socket, which listens already")
    parser.add_argument("--kubeconfig", required=True, help="of the platform's owner")
    parser.add_argument("--label", required=True, help="first part of the name under which it answers")
    parser.add_argument("--feed-as", required=True, metavar="USER", help="whose rights its watches have")
    args = parser.parse_args()
    logs.configure()
    os.umask(0o077)
    code = sys.stdin.readline().strip()
    listening = socket.socket(fileno=args.fd)
    listening.setblocking(False)
    config = load(args.kubeconfig)
    dashboard = Dashboard(config, label=args.label, flags=("--kubeconfig", args.kubeconfig), feed_as=args.feed_as)
    garbage.collect_seldom()
    asyncio.run(_run(dashboard, listening, code))
    return 0


async def _run(dashboard: Dashboard, listening: socket.socket, code: str) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_reader(sys.stdin.fileno(), ended.set)
    await serve(dashboard, listening, ended, code=code)


if __name__ == "__main__":
    sys.exit(main())
