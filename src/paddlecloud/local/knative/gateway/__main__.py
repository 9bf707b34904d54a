"""A gateway process: listens beside its siblings on their ports, follows the control plane, reports what it carried.

It lives in its own session and outlives the control plane: without it, requests go on along the last known routes
while the process looks for the next one. It ends on SIGTERM, after draining, or when none has come for a while.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import signal

from paddlecloud.kube import descriptors
from paddlecloud.local.knative.gateway.control import ControlLine, Message
from paddlecloud.local.knative.gateway.listeners import Listeners
from paddlecloud.local.knative.gateway.table import Table

REPORT_EVERY = 1.0
DRAIN = 10.0
"""Seconds that requests in progress have after SIGTERM."""


class Worker:
    def __init__(self, number: int, port: int, control: str) -> None:
        self._port = port
        self._line = ControlLine(control, number=number, port=port, receive=self._receive)
        self._stop = asyncio.Event()
        self._known = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.table = Table(now=loop.time, wake=self._wake, offset=number * 0.37, most=most_clients())
        self._listeners = Listeners(self.table)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        follow = asyncio.ensure_future(self._line.follow())
        beat = asyncio.ensure_future(self._beat())
        first = asyncio.ensure_future(self._listen())
        stop = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({follow, beat, first, stop}, return_when=asyncio.FIRST_COMPLETED)
        if first.done() and not first.cancelled() and first.exception() is None:
            await asyncio.wait({follow, beat, stop}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # connections that wait to be accepted
            self._listeners.close()
        await self.table.drain(DRAIN)
        self._report()
        for task in (follow, beat, first, stop):
            task.cancel()

    async def _listen(self) -> None:
        """Begin to take connections once the routes are known: a client must not get 404 for a route that exists."""
        await self._known.wait()
        self._listeners.listen(self._port)
        self._line.listening = True
        self._line.send({"ready": True})

    def _receive(self, message: Message) -> None:
        if "all" in message:  # everything that is; what is not named there is gone
            self.table.apply({name: None for name in self.table.names() if name not in message["all"]})
            self.table.apply(message["all"])
            self._known.set()
        elif "set" in message:
            self.table.apply(message["set"])
        self._listeners.follow(self.table.ports)
        self._line.acknowledge(message)
        if "all" in message and self._line.listening:
            self._line.send({"ready": True})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY)
            self.table.sweep()
            self._report()

    def _report(self) -> None:
        if self._line.is_open and (report := self.table.report()):
            self._line.send({"report": report})

    def _wake(self, revision: str) -> None:
        self._line.send({"wake": revision})


def most_clients() -> int:
    """Less than half of the file descriptors: each may need another one, to a pod."""
    return 3 * descriptors.share(one_of=8)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--control", required=True)
    args = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.freeze()  # going through our own modules again and again would cost every hundredth request some milliseconds
    asyncio.run(_serve(args))


async def _serve(args: argparse.Namespace) -> None:
    await Worker(args.number, args.port, args.control).run()


if __name__ == "__main__":
    main()
