"""The process behind `pdc up`: the embedded platform, the machine under it, and this project's controllers.

`lifecycle` starts it; it reports readiness or failure as one line of JSON on the descriptor it was given, and stops on
SIGTERM.

Should a part of it fail in a way nobody foresaw, it starts again from what is on disk, as after a crash: pods live on
under their shims meanwhile. A failure that comes back at once ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddlecloud.api import crd
from paddlecloud.kube import descriptors, garbage, logs
from paddlecloud.kube.watchdog import LoopWatchdog
from paddlecloud.kube.wording import cause_of
from paddlecloud.local.apiserver.auth.identities import NODE_CONTROLLER
from paddlecloud.local.control_plane import ControlPlane, PlatformError
from paddlecloud.local.nodes.keeper import nodes_before
from paddlecloud.local.store.log import StorageError
from paddlecloud.platform import bootstrap, dashboard, endpoint, modelhub, pipelines
from paddlecloud.platform.assembly import EmbeddedPlatform
from paddlecloud.platform.chart import controller_accounts, user_roles

log = logging.getLogger("paddlecloud")

FAILS_AT_ONCE = 10.0  # seconds; a platform that does not live longer has a lasting problem


def main() -> int:
    args = _arguments()
    logs.configure()
    os.umask(0o077)
    descriptors.raise_limit()
    ready = os.fdopen(args.ready_fd, "w")

    def answer(body: dict[str, Any]) -> None:
        if not ready.closed:
            with ready:
                ready.write(json.dumps(body) + "\n")

    try:
        while True:
            began = time.monotonic()
            if asyncio.run(_watched(args, answer)):
                return 0
            if time.monotonic() - began < FAILS_AT_ONCE:
                log.critical("it failed again right after its start; see above, then `pdc up`")
                return 1
            log.warning("starting again from %s", args.data)
    except PlatformError as error:
        answer({"error": str(error), "conflict": True, "next": f"pdc status --data {args.data}"})
        return 1
    except (StorageError, OSError) as error:
        text = cause_of(error)
        conflict = getattr(error, "errno", None) == errno.EADDRINUSE
        answer({"error": text, "conflict": conflict, "next": f"pdc doctor --data {args.data}"})
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--any-port-if-taken", action="store_true")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--simulated", type=int)
    parser.add_argument("--simulated-capacity", type=json.loads, default={})
    parser.add_argument("--durable", action="store_true")
    parser.add_argument(endpoint.NO_CONTROLLERS, dest="controllers", action="store_false")
    parser.add_argument("--started-in", type=Path, default=Path("/"))
    parser.add_argument("--ready-fd", type=int, required=True)
    return parser.parse_args()


async def _watched(args: argparse.Namespace, answer: Callable[[dict[str, Any]], None]) -> bool:
    with LoopWatchdog(asyncio.get_running_loop()):
        return await serve(args, answer)


async def serve(args: argparse.Namespace, answer: Callable[[dict[str, Any]], None]) -> bool:
    """Run until SIGTERM (True) or until a part fails (False)."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    control_plane = ControlPlane(args.data, durable=args.durable)
    accounts = [*controller_accounts(), *pipelines.objects(), *modelhub.objects()] if args.controllers else []
    objects = [*crd.generate(), *bootstrap.objects(args.data), *user_roles(), *dashboard.objects(), *accounts]
    platform: EmbeddedPlatform | None = None
    try:
        try:
            await control_plane.start(port=args.port, objects=objects)
        except OSError:
            if not (args.any_port_if_taken and args.port):
                raise
            await control_plane.listen(port=0)
        # What no flag says stays as it was: the data directory knows how the machine was divided.
        nodes: int = (
            args.nodes or await nodes_before(control_plane.client(NODE_CONTROLLER, user_agent="node-controller")) or 1
        )
        platform = EmbeddedPlatform(
            control_plane,
            nodes=nodes,
            simulated=args.simulated,
            simulated_capacity=args.simulated_capacity,
            controllers=args.controllers,
            started_in=args.started_in,
        )
        await platform.start()
        pipelines_port = platform.pipelines.port if platform.pipelines else 0
        hub = platform.hub.port if platform.hub else 0
        endpoint.announce(
            args.data,
            port=control_plane.port,
            nodes=nodes,
            pipelines=pipelines_port,
            hub=hub,
            dashboard=platform.dashboard.port,
        )
        log.info("ready on port %d", control_plane.port)
        answer({"port": control_plane.port, "code": platform.dashboard.code})
        # Modules, kinds and schemas stay for good: the collector need not look at them again under load.
        gc.freeze()
        garbage.collect_seldom()
        args.port = control_plane.port
        await _first(stop, control_plane.failed)
        log.info("stopping")
    finally:
        if platform is not None:
            await platform.stop(pods=stop.is_set())
        await control_plane.stop()
    if stop.is_set():
        endpoint.withdraw(args.data)
    return stop.is_set()


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


if __name__ == "__main__":
    sys.exit(main())
