"""Keeps the gateway's processes running, sends them the routes and receives their reports.

They are started with the first route and outlive this process: a control plane that comes back finds them by the
connections they make to it, and starts only those that are missing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.local.knative.acknowledgements import Acknowledgements
from paddlecloud.local.knative.gateway import slots
from paddlecloud.local.knative.gateway.sockets import serve_unix
from paddlecloud.local.knative.reservations import Reservations

log = logging.getLogger(__name__)

Entries = dict[str, Any]
Report = dict[str, dict[str, Any]]

RETURN = 2.0
"""Seconds that gateways of an earlier control plane have to come back."""
RESTART, LONGEST_RESTART = 0.1, 5.0
STOP = 12.0
"""Seconds a gateway has to end: a little more than it gives its last requests."""
H2C = -1
"""The number of the process for HTTP/2, which runs an Envoy; the others count from 0."""


def default_count() -> int:
    return max(2, min(4, os.cpu_count() or 1))


class Gateways:
    """`changed` is called when gateways become ready, `acknowledged` when one has applied a version of the table or
    is lost, `report` and `wake` with their messages."""

    def __init__(
        self,
        folder: Path,
        *,
        changed: Callable[[], None],
        report: Callable[[Report], None],
        wake: Callable[[str], None],
        acknowledged: Callable[[], None] = lambda: None,
        count: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.port: int | None = None
        self.settled = False
        """Whether gateways of an earlier control plane have had their time to come back."""
        self._h2c_port = 0
        self._folder = folder
        self._changed = changed
        self._on_report = report
        self._on_wake = wake
        self._on_acknowledgement = acknowledged
        self._count = count or default_count()
        self._entries: Entries = {}
        self._acknowledgements = Acknowledgements(clock or SystemClock())
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._ready: set[int] = set()
        self._pids: dict[int, int] = {}
        self._arrived = asyncio.Event()
        self._keepers: dict[int, asyncio.Task[None]] = {}
        self._envoy = ""
        self._server: asyncio.AbstractServer | None = None
        self._reservations = Reservations(folder)
        self._lock = asyncio.Lock()
        self._epoch = f"{os.getpid()}-0"
        self._pipes: dict[str, Path] = {}

    @property
    def ready(self) -> bool:
        return any(number != H2C for number in self._ready)

    @property
    def h2c_port(self) -> int | None:
        """Where HTTP/2 is taken, once it is."""
        return self._h2c_port if H2C in self._ready else None

    @property
    def pids(self) -> list[int]:
        return sorted(self._pids.values())

    @property
    def ports(self) -> Mapping[str, int]:
        """Of single routes and their tags, by `namespace/label`; empty before `ensure`."""
        return self._reservations.ports

    def hold_ports(self, labels: Collection[str]) -> Mapping[str, int]:
        """Of routes and tags `namespace/label`, reserved now for those that have none. Only after `ensure`."""
        return self._reservations.hold(labels)

    def release_ports(self, labels: Collection[str]) -> None:
        """Of routes and tags that are gone."""
        self._reservations.release(labels)

    async def ensure(self, fill: Callable[[], None] = lambda: None) -> None:
        """Have the gateways running; those of an earlier control plane are taken over.

        `fill` publishes all there is before any of them can ask: with less, they would drop routes they serve.
        """
        async with self._lock:
            if self.port is not None:
                return
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.rmtree(self._folder / "slots", ignore_errors=True)
            (self._folder / "slots").mkdir(mode=0o700)
            port, self._h2c_port = self._reservations.take()
            fill()
            self._server = await serve_unix(self._folder / "control", self._serve)
            self.port = port
            expected = [pid for pid in _recorded(self._folder / "pids") if _is_gateway(pid, self._folder)]
            if expected:
                await self._await_return(len(expected))
            for number in range(self._count):
                self._keepers[number] = asyncio.create_task(self._keep(number), name=f"gateway {number}")
            self.settled = True
            self._changed()

    async def wait_ready(self, *, h2c: bool) -> None:
        """Until one of the processes takes connections, with `h2c` also the one for HTTP/2."""
        while not self.ready or (h2c and self.h2c_port is None):
            self._arrived.clear()
            await self._arrived.wait()

    def ensure_h2c(self, envoy: str) -> None:
        """Have the process for HTTP/2 running as well, with this program. Only after `ensure`."""
        if H2C not in self._keepers:
            self._envoy = envoy
            self._keepers[H2C] = asyncio.create_task(self._keep(H2C), name="gateway for HTTP/2")

    def publish(self, entries: Entries) -> int:
        """Take changes of the table; None removes an entry. Returns the version of the table that has them."""
        changes = {name: value for name, value in entries.items() if self._entries.get(name) != value}
        if not changes:
            return self._acknowledgements.version
        for name, value in changes.items():
            if value is None:
                self._entries.pop(name, None)
            else:
                self._entries[name] = value
        version = self._acknowledgements.next_version()
        line = _line({"set": changes, "version": version})
        for writer in self._writers.values():
            writer.write(line)
        return version

    def has(self, version: int, port: int) -> bool:
        """Whether the processes that take connections on `port` follow this version of the table."""
        numbers = [number for number in self._writers if self._port_of(number) == port]
        return self._acknowledgements.reached(version, numbers)

    def slots(self, uid: str, limit: int) -> str:
        """The pipe that keeps the limit of a pod."""
        name = f"{uid}-{limit}-{self._epoch}"
        path = self._pipes.get(name)
        if path is None:
            path = self._pipes[name] = self._folder / "slots" / name
            slots.create(path, limit)
        return str(path)

    def forget_slots(self, uid: str) -> None:
        """The pod is gone."""
        for name in [name for name in self._pipes if name.startswith(f"{uid}-")]:
            slots.remove(self._pipes.pop(name))

    async def stop(self, *, processes: bool) -> None:
        """Without `processes` only this end closes, and the gateways go on for a while by themselves."""
        for task in self._keepers.values():
            task.cancel()
        await asyncio.gather(*self._keepers.values(), return_exceptions=True)
        if processes:
            await _end_processes(self._pids.values())
            (self._folder / "pids").unlink(missing_ok=True)
        if self._server is not None:
            self._server.close()
        for writer in self._writers.values():
            writer.close()
        for name in list(self._pipes):
            slots.remove(self._pipes.pop(name))
        self._reservations.close()

    # Conversations

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = -1
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if hello := message.get("hello"):
                    number = int(hello["number"])
                    if hello["port"] != self._port_of(number):
                        return  # of a platform that had this folder before us
                    self._writers[number] = writer
                    self._pids[number] = int(hello["pid"])
                    self._acknowledgements.connected(number, listening=hello.get("listening"))
                    writer.write(_line({"all": self._entries, "version": self._acknowledgements.version}))
                    if not hello.get("ports"):
                        _signal(self._pids[number], signal.SIGTERM)  # of an earlier release; it drains, ours follows
                elif "applied" in message:
                    self._acknowledgements.received(number, int(message["applied"]))
                    self._on_acknowledgement()
                elif "ready" in message:
                    self._ready.add(number)
                    self._arrived.set()
                    self._changed()
                elif "report" in message:
                    self._on_report(message["report"])
                elif "wake" in message:
                    self._on_wake(message["wake"])
        except (OSError, ValueError, asyncio.LimitOverrunError) as error:
            log.info("gateway %d: %s", number, error)
        finally:
            if self._writers.get(number) is writer:
                del self._writers[number]
                self._ready.discard(number)
                self._acknowledgements.disconnected(number)
                self._on_acknowledgement()
            writer.close()

    async def _await_return(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETURN
        while len(self._ready) < count and (left := deadline - loop.time()) > 0:
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except asyncio.TimeoutError:
                return

    # Processes

    async def _keep(self, number: int) -> None:
        """Have process `number` running for as long as this task does."""
        pause = RESTART
        loop = asyncio.get_running_loop()
        while True:
            pid = self._pids.get(number)
            if pid is None:
                pid = self._pids[number] = self._start(number)
                self._record()
            began = loop.time()
            await _ended(pid)
            del self._pids[number]
            self._record()
            lived = loop.time() - began
            log.warning("gateway %d (pid %d) ended after %.1f s; starting another", number, pid, lived)
            self._renew_slots()
            pause = RESTART if lived > LONGEST_RESTART else min(LONGEST_RESTART, pause * 2)
            await asyncio.sleep(pause)

    def _start(self, number: int) -> int:
        module = "paddlecloud.local.knative." + ("h2c" if number == H2C else "gateway")
        command = [sys.executable, "-m", module, "--number", str(number)]
        command += ["--port", str(self._port_of(number)), "--control", str(self._folder / "control")]
        if number == H2C:
            command += ["--envoy", self._envoy]
        with open(self._folder / "log", "ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd="/"
            )
        process.returncode = 0  # it is waited for by `_ended`, not by this object
        return process.pid

    def _port_of(self, number: int) -> int | None:
        return self._h2c_port if number == H2C else self.port

    def _record(self) -> None:
        (self._folder / "pids").write_text(" ".join(map(str, self._pids.values())))

    def _renew_slots(self) -> None:
        """A process that was killed kept the places it had taken: new pipes for all pods."""
        if not self._pipes:
            return
        first, _, count = self._epoch.rpartition("-")
        self._epoch = f"{first}-{int(count) + 1}"
        self._changed()


async def end_gateways(folder: Path) -> None:
    """End the gateways of a control plane that is gone; without it they would go on by themselves for a while."""
    await _end_processes([pid for pid in _recorded(folder / "pids") if _is_gateway(pid, folder)])
    (folder / "pids").unlink(missing_ok=True)


async def _end_processes(pids: Collection[int]) -> None:
    for pid in pids:
        _signal(pid, signal.SIGTERM)
    try:
        await asyncio.wait_for(asyncio.gather(*(_ended(pid) for pid in pids)), STOP)
    except asyncio.TimeoutError:
        for pid in pids:
            _signal(pid, signal.SIGKILL)


def _recorded(file: Path) -> list[int]:
    try:
        return [int(word) for word in file.read_text().split()]
    except (OSError, ValueError):
        return []


def _is_gateway(pid: int, folder: Path) -> bool:
    try:
        return os.fsencode(folder / "control") in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def _ended(pid: int) -> None:
    """Until a process is over, be it a child of ours or of a predecessor."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(fd, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    _reap(pid)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # of a predecessor, whose end brought it to another parent


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it was faster


def _line(message: Entries) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
