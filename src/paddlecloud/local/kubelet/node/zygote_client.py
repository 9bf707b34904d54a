"""The control plane's end of the zygote: starts it, keeps it alive, asks it for shims."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import paddlecloud

_PACKAGE_ROOT = str(Path(paddlecloud.__file__).parent.parent)

_BOOT = (
    "main = dict(globals()); import sys; at_start = set(sys.modules); sys.path.insert(0, sys.argv.pop(1)); "
    "from paddlecloud.local.kubelet.shim import zygote; sys.path.pop(0); "
    "zygote.main(sys.argv[1:], main=main, at_start=at_start)()"
)

_BARE = ("-E", "-s", "-S")
"""Without `site` and the user's variables it starts in half the time, and without surprises from either. A warm parent
needs its image's packages, and so does without these."""


MAX_REPORT = 256 * 1024
START_TIMEOUT = 120.0
"""Seconds that modules have for their import. A warm parent is outside of every pod: nothing else ends it."""


class ZygoteClient:
    """Forks shims through one zygote process, which it starts on first use and again whenever it died."""

    def __init__(
        self,
        *,
        python: str = sys.executable,
        preload: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`preload` are modules that programs of `environment` would import; without them it is the platform's own."""
        self._environment = dict(environment if environment is not None else os.environ)
        self._command = (python, *(() if preload else _BARE), "-c", _BOOT, _PACKAGE_ROOT, *preload)
        self.reads: frozenset[str] = frozenset()
        """Variables that the preloaded modules looked at."""
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._ready = False
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> bool:
        """Have a zygote that is ready to fork; False when a module cannot be imported, or not in time."""
        async with self._lock:
            control = await self._ensure()
            if not self._ready:
                report = await self._report(control)
                self.reads = frozenset(json.loads(report or "[]"))
                self._ready = report != b""
            return self._ready

    async def _report(self, control: socket.socket) -> bytes:
        """What a new zygote sends when it is ready; empty, and the zygote ended, if that takes too long."""
        report = b""
        try:
            receive = asyncio.get_running_loop().sock_recv(control, MAX_REPORT)
            report = await asyncio.wait_for(receive, START_TIMEOUT)
        except asyncio.TimeoutError:
            pass  # reported by the caller, as that its modules cannot be imported
        finally:
            if not report and self._process is not None and self._process.returncode is None:
                self._process.kill()
        return report

    async def _ensure(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.returncode is None:
            return self._control
        if self._control is not None:
            self._control.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=theirs.fileno(), env=self._environment, cwd="/"
        )
        theirs.close()
        self._control = ours
        self._ready = False
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
