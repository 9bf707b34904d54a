"""The kubelet's end of a shim: orders, state, and programs run beside a container.

A `PodRuntime` is one connection. Losing it says nothing about the pod: `attach` finds a living shim again, and
`last_state` reads what a dead one left behind.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.shim import wire

State = dict[str, Any]


class ShimError(Exception):
    """The shim refused an order, or is gone (`lost`)."""

    def __init__(self, message: str, *, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost


def last_state(pod_dir: Path) -> State | None:
    return wire.read_json(str(pod_dir / wire.STATUS))


class PodRuntime:
    """`state` is what the shim last said; `on_change` is called after each change and when the shim is gone."""

    def __init__(self, pod_dir: Path, *, on_change: Callable[[], None] = lambda: None) -> None:
        self.pod_dir = pod_dir
        self.state: State = {}
        self.connected = False
        self.ready = asyncio.Event()
        """Set with the first state, and when the connection ends without one."""
        self._on_change = on_change
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(
        cls, pod_dir: Path, zygote: ZygoteClient, *, on_change: Callable[[], None] = lambda: None
    ) -> PodRuntime:
        """Start a shim for a pod directory whose `spec.json` is written."""
        runtime = cls(pod_dir, on_change=on_change)
        await runtime._adopt(await zygote.spawn(pod_dir))
        return runtime

    @classmethod
    async def attach(cls, pod_dir: Path, *, on_change: Callable[[], None] = lambda: None) -> PodRuntime | None:
        """Connect to the living shim of a pod directory; None when there is none."""
        try:
            client = connect(pod_dir)
        except OSError:
            return None
        runtime = cls(pod_dir, on_change=on_change)
        await runtime._adopt(client)
        return runtime

    async def _adopt(self, client: socket.socket) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=client, limit=wire.MAX_MESSAGE)
        self.connected = True
        self._reading = asyncio.create_task(self._read(reader), name=f"shim {self.pod_dir.name}")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._receive(json.loads(line))
        except (OSError, ValueError):
            pass  # a broken connection and a closed one mean the same: the shim is gone or has dropped us
        finally:
            self.connected = False
            self.ready.set()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ShimError("the shim is gone", lost=True))
            self._waiting.clear()
            if self._writer is not None:
                self._writer.close()
            self._on_change()

    def _receive(self, message: dict[str, Any]) -> None:
        if "state" in message:
            self.state = message["state"]
            self.ready.set()
            self._on_change()
        elif (future := self._waiting.pop(message.get("id", 0), None)) and not future.done():
            if "error" in message:
                future.set_exception(ShimError(message["error"]))
            else:
                future.set_result(message.get("result"))

    async def _order(self, do: str, **fields: Any) -> Any:
        if not self.connected or self._writer is None:
            raise ShimError("the shim is gone", lost=True)
        number = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._writer.write(wire.encode({"id": number, "do": do, **fields}))
        return await future

    async def start(self, spec: wire.ContainerSpec) -> None:
        """Run a container. An attempt that the shim knows already is not run again."""
        await self._order("start", container=spec._asdict())

    async def stop(self, name: str, *, grace: float) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds: the shim keeps that promise even if the kubelet dies."""
        await self._order("stop", name=name, grace=grace)

    async def signal(self, name: str, number: int) -> bool:
        return bool(await self._order("signal", name=name, signal=number))

    async def shutdown(self) -> None:
        """End every process of the pod and the shim; returns when it is gone."""
        try:
            await self._order("shutdown")
        except ShimError as error:
            if not error.lost:
                raise
        await self.closed()

    async def closed(self) -> None:
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def detach(self) -> None:
        """Leave the shim to itself."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def connect(pod_dir: Path) -> socket.socket:
    """A new connection to the pod's shim. Goes through the directory's descriptor: socket addresses are short."""
    folder = os.open(pod_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.connect(f"/proc/self/fd/{folder}/{wire.SOCKET}")
    except OSError:
        client.close()
        raise
    finally:
        os.close(folder)
    client.setblocking(False)
    return client
