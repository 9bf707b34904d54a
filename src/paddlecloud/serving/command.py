"""`python -m paddlecloud.serving`: one model, one port, until SIGTERM.

A model that cannot be served ends the process with 2 and one sentence, which also goes to the termination message of
the pod, where `kubectl describe` and the PaddleService's condition show it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from paddlecloud.kube.server.listening import Site
from paddlecloud.serving import app, source
from paddlecloud.serving.errors import ModelError
from paddlecloud.serving.intake import Intake
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Resources
from paddlecloud.serving.slot import Slot

TERMINATION_LOG = Path("/dev/termination-log")
DRAIN_SECONDS = 30.0
SOURCE = "PADDLECLOUD_MODEL_SOURCE"
"""In the environment: what people call the model's folder, where it is mounted under another path."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.serving", description="Serve a Paddle or ONNX model.")
    parser.add_argument("--model", required=True, help="a folder, file:// or http(s):// archive, or NAME:VERSION")
    parser.add_argument("--name", default="", help="name in URLs (default: what serving.yaml or the folder says)")
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on")  # noqa: S104 - pods are reached from outside
    parser.add_argument(
        "--port", type=int, default=int(os.environ.get("PORT", "8080")), help="HTTP port (default 8080)"
    )
    parser.add_argument("--grpc-port", type=int, default=0, help="gRPC port (default: none)")
    parser.add_argument("--workers", type=int, default=1, help="batches that run side by side")
    parser.add_argument("--threads", type=int, default=1, help="threads within a batch")
    parser.add_argument("--largest-body", type=int, default=64, help="MiB a request may have (default 64)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "paddlecloud" / "models")
    parser.add_argument(
        "--allow-model-code", action="store_true", help="run the processor of a model that is fetched from elsewhere"
    )
    parser.add_argument(
        "--allow-plain-http", action="store_true", help="fetch archives over http:// without #sha256=HEX"
    )
    options = parser.parse_args(arguments)
    if options.workers < 1 or options.threads < 1:
        parser.error("--workers and --threads must be at least 1")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    try:
        asyncio.run(serve(options))
    except ModelError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"cannot listen on port {options.port}: {error.strerror or error}")
    return 0


async def serve(options: argparse.Namespace) -> None:
    """Listens only when the model is ready: an open port is the readiness that TCP probes look for."""
    metrics = Metrics()
    began = time.monotonic()
    folder, fetched = await asyncio.to_thread(
        partial(source.local_folder, options.model, options.cache, plain_http=options.allow_plain_http)
    )
    metrics.start.set(time.monotonic() - began, "fetch")
    resources = Resources(workers=options.workers, threads=options.threads)
    slot = Slot(
        folder,
        name=options.name or _short(options.model),
        resources=resources,
        metrics=metrics,
        own_code=options.allow_model_code or not fetched,
        source=options.model.partition("#")[0] if fetched else os.environ.get(SOURCE, ""),
    )
    model = await slot.load()
    metrics.waiting_from(lambda: {(slot.model().name,): slot.model().waiting})
    for stage, seconds in model.stages.items():
        metrics.start.set(seconds, stage)
    stopped = _on_signals()
    intake = Intake(options.largest_body << 20)
    runner = web.AppRunner(
        app.build(slot, metrics, intake=intake),
        access_log=None,
        shutdown_timeout=DRAIN_SECONDS,
        **app.SERVER_OPTIONS,
    )
    await runner.setup()
    await Site(runner, options.host, options.port, backlog=1024).start()
    grpc = await _start_grpc(slot, intake, options)
    stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in model.stages.items())
    logging.info("serving %s version %s on port %d (%s)", model.name, model.version, options.port, stages)
    follower = asyncio.create_task(slot.follow(), name="new versions")
    await stopped.wait()
    follower.cancel()
    await runner.cleanup()
    if grpc is not None:
        await grpc.stop(DRAIN_SECONDS)
    await slot.close()
    intake.close()


async def _start_grpc(slot: Slot, intake: Intake, options: argparse.Namespace) -> Any:
    if not options.grpc_port:
        return None
    from paddlecloud.serving import grpc_service

    server = grpc_service.build(slot, intake)
    server.add_insecure_port(f"{options.host}:{options.grpc_port}")
    await server.start()
    return server


def _short(reference: str) -> str:
    """`digits:v3` is called digits; folders and archives say their name themselves."""
    return "" if "/" in reference else reference.partition(":")[0]


def _on_signals() -> asyncio.Event:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def _refuse(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    if TERMINATION_LOG.exists():
        try:
            TERMINATION_LOG.write_text(message)
        except OSError:
            pass  # it was said once already
    return 2
