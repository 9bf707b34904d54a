"""The gateway's process for HTTP/2: runs an Envoy, keeps it on the routes, wakes revisions for it, and reports.

Like its siblings it outlives the control plane, drains on SIGTERM, and ends when no control plane has come for a while.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import resource
import shutil
import signal
from pathlib import Path

from paddlecloud.local.knative.gateway.control import ControlLine, Message
from paddlecloud.local.knative.gateway.table import REVISION
from paddlecloud.local.knative.h2c import statistics
from paddlecloud.local.knative.h2c.activator import Activator
from paddlecloud.local.knative.h2c.config import EnvoyConfig, activator_socket, pictured
from paddlecloud.local.knative.h2c.envoy import Envoy

log = logging.getLogger(__name__)

REPORT_EVERY = 1.0
DRAIN = 10.0
"""Seconds that requests in progress have after SIGTERM."""


class Worker:
    def __init__(self, number: int, port: int, control: Path, envoy: str) -> None:
        self._folder = control.parent / "h2c"
        self._line = ControlLine(str(control), number=number, port=port, receive=self._receive)
        self._numbers: dict[str, int] = {}
        self._count = itertools.count(1)
        self._envoy = Envoy(envoy, self._folder, port=port, number=self._number)
        self._activator = Activator(self._folder, wake=lambda key: self._line.send({"wake": key}))
        self._entries: Message = {}
        self._changed = asyncio.Event()
        self._last: Message = {}
        self._connections = 0
        self._before: dict[str, statistics.Totals] = {}

    async def run(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        tasks = [asyncio.ensure_future(part) for part in (self._line.follow(), self._work(), stop.wait())]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await self._envoy.drain(DRAIN)
        for task in tasks:
            task.cancel()
        for task in done:
            task.result()  # what went wrong belongs into the log

    async def _work(self) -> None:
        """Start Envoy with the first table that arrives, and follow from then on."""
        picture, last, connection = await self._next_picture()
        await self._envoy.start(picture)
        self._line.listening = True
        self._acknowledge(last, connection)
        await asyncio.gather(self._sync(), self._beat(), self._envoy.ended())

    def _receive(self, message: Message) -> None:
        if "all" in message:
            self._entries = dict(message["all"])
            self._connections += 1
        for name, value in message.get("set", {}).items():
            if value is None:
                self._entries.pop(name, None)
            else:
                self._entries[name] = value
        self._last = message
        self._changed.set()

    def _acknowledge(self, last: Message, connection: int) -> None:
        """Versions are those of one control plane: not after another has sent its table, which is the next to apply."""
        if connection == self._connections:
            self._line.acknowledge(last)
            self._line.send({"ready": True})

    async def _sync(self) -> None:
        while True:
            picture, last, connection = await self._next_picture()
            await self._envoy.bring(picture)
            self._acknowledge(last, connection)

    async def _next_picture(self) -> tuple[EnvoyConfig, Message, int]:
        """What the table looks like after the next change; those that come meanwhile are taken together. With the last
        message that it contains, and the number of the connection that it came by."""
        await self._changed.wait()
        self._changed.clear()
        last, connection = self._last, self._connections
        picture = pictured(self._entries, folder=str(self._folder), number=self._number)
        revisions = {key: self._entries[f"{REVISION}{key}"] for key in picture.pods}
        await self._activator.serve(revisions, lambda key: activator_socket(self._number(key)))
        return picture, last, connection

    def _number(self, revision: str) -> int:
        if revision not in self._numbers:
            self._numbers[revision] = next(self._count)
        return self._numbers[revision]

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(REPORT_EVERY)
            totals = statistics.read(await self._envoy.statistics())
            span = loop.time() - began
            known = self._before
            found = ((k, statistics.report(now, known.get(k, statistics.Totals()), span)) for k, now in totals.items())
            report = {key: numbers for key, numbers in found if numbers is not None}
            self._before = totals
            if report:
                self._line.send({"report": report})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--envoy", required=True)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="h2c: %(message)s")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # Envoy inherits it
    asyncio.run(_serve(args))


async def _serve(args: argparse.Namespace) -> None:
    await Worker(args.number, args.port, args.control, args.envoy).run()


if __name__ == "__main__":
    main()
