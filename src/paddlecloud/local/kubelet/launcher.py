"""The control plane's end of the zygote: starts it, keeps it alive, asks it for shims."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import paddlecloud

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from paddlecloud.local.kubelet import zygote; zygote.main(sys.argv[1:])"
)
"""Started without `site` and without the user's variables: half the start-up time, and no surprises from either."""


class Launcher:
    """Forks shims through one zygote process, which it starts on first use and again whenever it died."""

    def __init__(self, *, python: str = sys.executable, preload: tuple[str, ...] = ()) -> None:
        self._python = python
        self._preload = preload
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Have a zygote; does nothing while one lives."""
        async with self._lock:
            await self._ensure()

    async def _ensure(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.returncode is None:
            return self._control
        if self._control is not None:
            self._control.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        root = str(Path(paddlecloud.__file__).parent.parent)
        command = (self._python, "-E", "-s", "-S", "-c", _BOOT, root, *self._preload)
        self._process = await asyncio.create_subprocess_exec(*command, stdin=theirs.fileno())
        theirs.close()
        self._control = ours
        return ours

    async def spawn(self, pod_dir: Path) -> socket.socket:
        """A new shim for the pod directory; returns the client end of its first connection.

        The connection ends at once when the pod has a shim already. Orders may be written before the shim runs.
        """
        client, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with served:
            message = os.fsencode(pod_dir)
            async with self._lock:
                try:
                    await _send_fd(await self._ensure(), message, served.fileno())
                except (BrokenPipeError, ConnectionResetError):
                    if self._process is not None:
                        await self._process.wait()
                    await _send_fd(await self._ensure(), message, served.fileno())
        client.setblocking(False)
        return client

    async def stop(self) -> None:
        """End the zygote. Shims live on."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            await self._process.wait()
            self._process = None


async def _send_fd(control: socket.socket, message: bytes, fd: int) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            socket.send_fds(control, [message], [fd])
            return
        except BlockingIOError:
            writable = asyncio.Event()
            loop.add_writer(control.fileno(), writable.set)
            try:
                await writable.wait()
            finally:
                loop.remove_writer(control.fileno())
