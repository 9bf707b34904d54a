"""A program run beside a container: `kubectl exec`, exec probes, lifecycle hooks, `kubectl cp`.

Its streams are pipes or a terminal made here and handed to the shim, which only forks: what flows through them never
passes the shim. The program ends when its session is closed.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from paddlecloud.local.kubelet.pod.runtime import ShimError, connect
from paddlecloud.local.kubelet.shim import wire

Stream = Literal["stdout", "stderr"]
READ_SIZE = 64 * 1024
AFTERLIFE = 1.0
"""Seconds to wait for the end of the output after the program ended: a child of it may hold the stream open."""


class Output(NamedTuple):
    stream: Stream
    data: bytes


class ExecSession:
    """`read` until it gives None, then `wait`; or just `wait`. Always `close`."""

    def __init__(self, control: socket.socket, outputs: dict[int, Stream], stdin: int | None, *, tty: bool) -> None:
        self._control = control
        self._outputs = outputs
        self._stdin = stdin
        self._tty = tty
        self._queue: asyncio.Queue[Output | None] = asyncio.Queue(maxsize=64)
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.create_task(self._follow())]
        self._pumps = [asyncio.create_task(self._pump(fd, stream)) for fd, stream in outputs.items()]
        self._tasks.append(asyncio.create_task(self._finish()))
        self._ending: asyncio.Task[None] | None = None

    async def read(self) -> Output | None:
        """The next piece of output; None after the last."""
        return await self._queue.get()

    async def write(self, data: bytes) -> None:
        """To the program's standard input; silently dropped once it no longer reads."""
        if self._stdin is not None:
            await write_all(self._stdin, data)

    def close_stdin(self) -> None:
        if self._stdin is None:
            return
        if self._tty:
            os.write(self._stdin, b"\x04")  # a terminal has no end of file but this character
        else:
            os.close(self._stdin)
        self._stdin = None

    def resize(self, columns: int, rows: int) -> None:
        if self._tty and self._outputs:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(next(iter(self._outputs)), termios.TIOCSWINSZ, size)

    async def wait(self) -> int:
        """The exit code. Raises `ShimError` when the program could not be run or its pod is gone."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """Ends the program if it still runs. A caller that is cancelled meanwhile leaves it to itself: its descriptors
        must be closed, and only after the tasks that wait for them have ended."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        tasks = [*self._tasks, *self._pumps]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self._code.done():
            self._code.cancel()
        elif not self._code.cancelled():
            self._code.exception()  # a caller that did not wait does not need it
        self._control.close()
        for fd in list(self._outputs):
            os.close(fd)
        if self._stdin is not None and not self._tty:
            os.close(self._stdin)
        self._outputs.clear()
        self._stdin = None

    async def _follow(self) -> None:
        """Wait for the shim's word on the program."""
        loop = asyncio.get_running_loop()
        buffer = b""
        try:
            while data := await loop.sock_recv(self._control, READ_SIZE):
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    if "error" in message:
                        raise ShimError(message["error"])
                    if "exit_code" in message:
                        self._code.set_result(int(message["exit_code"]))
                        return
            raise ShimError("the pod is gone", lost=True)
        except (ShimError, OSError) as error:
            if not self._code.done():
                self._code.set_exception(error if isinstance(error, ShimError) else ShimError(str(error), lost=True))

    async def _pump(self, fd: int, stream: Stream) -> None:
        while True:
            try:
                data = os.read(fd, READ_SIZE)
            except BlockingIOError:
                await ready(fd)
                continue
            except OSError:
                return  # a terminal whose program is gone answers with an error instead of an end
            if not data:
                return
            await self._queue.put(Output(stream, data))

    async def _finish(self) -> None:
        """Signal the end to the reader: of all streams, or of the program and a moment more."""
        streams = asyncio.ensure_future(asyncio.wait(self._pumps))
        ended = asyncio.ensure_future(asyncio.wait([self._tasks[0]]))
        try:
            await asyncio.wait((streams, ended), return_when=asyncio.FIRST_COMPLETED)
            if not streams.done():
                await asyncio.wait((streams,), timeout=AFTERLIFE)
        finally:
            for waiting in (streams, ended):
                waiting.cancel()
        await self._queue.put(None)


async def write_all(fd: int, data: bytes) -> None:
    """To a descriptor that does not block; what nobody reads any more is dropped."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            await ready(fd, write=True)
        except OSError:
            return


async def ready(fd: int, *, write: bool = False) -> None:
    """Wait until a descriptor can be read or written."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(fd, event.set)
    try:
        await event.wait()
    finally:
        remove(fd)


def open_exec(
    pod_dir: Path, container: str, argv: Sequence[str], *, stdin: bool = False, tty: bool = False
) -> ExecSession:
    """Run `argv` in a running container. Raises `ShimError` when the pod has no living shim."""
    try:
        control = connect(pod_dir)
    except OSError as error:
        raise ShimError("the pod does not run", lost=True) from error
    theirs: list[int] = []
    outputs: dict[int, Stream] = {}
    feed: int | None = None
    if tty:
        master, slave = pty.openpty()
        theirs = [slave, slave, slave]
        outputs[master] = "stdout"
        feed = master
    else:
        if stdin:
            read, feed = os.pipe()
        else:
            read = os.open(os.devnull, os.O_RDONLY)
        theirs.append(read)
        names: tuple[Stream, ...] = ("stdout", "stderr")
        for name in names:
            out, write = os.pipe()
            outputs[out] = name
            theirs.append(write)
    for fd in (*outputs, *([feed] if feed is not None else ())):
        os.set_blocking(fd, False)
    order = wire.encode({"id": 1, "do": "exec", "name": container, "argv": list(argv), "tty": tty})
    try:
        socket.send_fds(control, [order], theirs)
    finally:
        for fd in set(theirs):
            os.close(fd)
    return ExecSession(control, outputs, feed if stdin or tty else None, tty=tty)


async def run_exec(
    pod_dir: Path, container: str, argv: Sequence[str], *, timeout: float, limit: int = 10 * 1024
) -> tuple[int, str]:
    """Run to the end and return exit code and the first of its output. Raises `asyncio.TimeoutError`, `ShimError`."""
    session = open_exec(pod_dir, container, argv)
    collected: list[bytes] = []

    async def collect() -> int:
        size = 0
        while (piece := await session.read()) is not None:
            if size < limit:
                collected.append(piece.data[: limit - size])
                size += len(collected[-1])
        return await session.wait()

    try:
        code = await asyncio.wait_for(collect(), timeout)
    finally:
        await session.close()
    return code, b"".join(collected).decode(errors="replace")
