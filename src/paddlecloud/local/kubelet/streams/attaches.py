"""A client joined to a container's own streams: `kubectl attach`, `kubectl run -i`.

What the container prints is read from its log, from now on; what the client types goes straight into the pipe or the
terminal that the container has for input, if it asked for one (`stdin: true`). Leaving ends nothing, except the input
of a container that wants only one (`stdinOnce`): the shim ends that one.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.local.kubelet.pod.runtime import ShimError, connect
from paddlecloud.local.kubelet.shim import wire
from paddlecloud.local.kubelet.streams.execs import Output, Stream, ready, write_all


class ContainerInput:
    """The write end of a container's input. To the shim this client is there until `close`."""

    def __init__(self, control: socket.socket, fd: int, *, tty: bool) -> None:
        self._control = control
        self._fd = fd
        self._tty = tty
        self._open = True

    async def write(self, data: bytes) -> None:
        if self._open:
            await write_all(self._fd, data)

    def resize(self, columns: int, rows: int) -> None:
        if self._tty and self._open:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._fd)
            self._control.close()


async def join_input(pod_dir: Path, container: str) -> ContainerInput | None:
    """The container's input; None when it has none. Raises `ShimError` when it does not run."""
    loop = asyncio.get_running_loop()
    try:
        control = connect(pod_dir)
    except OSError as error:
        raise ShimError("the pod does not run", lost=True) from error
    try:
        await loop.sock_sendall(control, wire.encode({"id": 1, "do": "attach", "name": container}))
        answer, fds = await _answer(control)
    except BaseException:
        control.close()
        raise
    if "error" in answer:
        control.close()
        raise ShimError(str(answer["error"]))
    if not fds:
        control.close()
        return None
    os.set_blocking(fds[0], False)
    return ContainerInput(control, fds[0], tty=bool(answer["result"]))


async def _answer(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The shim's answer and the descriptor that came with it; events of the pod before it are skipped."""
    buffer = b""
    held: list[int] = []
    while True:
        await ready(control.fileno())
        data, fds = wire.receive(control, 65536)
        held += fds
        if not data:
            return {"error": "the pod is gone"}, held
        *lines, buffer = (buffer + data).split(b"\n")
        for message in map(json.loads, lines):
            if "id" in message:
                return message, held


class AttachSession:
    """`read` gives None once the container has ended and all its output was given."""

    def __init__(self, outputs: Mapping[Stream, AsyncIterator[bytes]], given: ContainerInput | None) -> None:
        self._input = given
        self._queue: asyncio.Queue[Output | None] = asyncio.Queue(64)
        self._pumps = [asyncio.ensure_future(self._pump(stream, chunks)) for stream, chunks in outputs.items()]
        self._finishing = asyncio.ensure_future(self._finish())

    async def read(self) -> Output | None:
        return await self._queue.get()

    async def write(self, data: bytes) -> None:
        if self._input is not None:
            await self._input.write(data)

    def close_stdin(self) -> None:
        if self._input is not None:
            self._input.close()

    def resize(self, columns: int, rows: int) -> None:
        if self._input is not None:
            self._input.resize(columns, rows)

    async def wait(self) -> int:
        for pump in self._pumps:
            pump.result()  # raises to the client when a log could not be read
        return 0

    async def close(self) -> None:
        tasks = [*self._pumps, self._finishing]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self.close_stdin()

    async def _pump(self, stream: Stream, chunks: AsyncIterator[bytes]) -> None:
        async for data in chunks:
            await self._queue.put(Output(stream, data))

    async def _finish(self) -> None:
        if self._pumps:
            await asyncio.wait(self._pumps)
        await self._queue.put(None)
