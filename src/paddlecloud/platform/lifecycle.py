"""Start, stop and describe the platform of a data directory: what `pdc up`, `pdc down`, `pdc status` and the SDK share.

The platform is a background process (`daemon`) that outlives its caller. Nothing here prints or asks: callers get typed
results, a `PlatformFailed` with its cause, and short reports of what takes long through `report`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from paddlecloud.platform import endpoint, kubeconfig
from paddlecloud.platform.endpoint import Endpoint

Report = Callable[[str], None]
T = TypeVar("T")

REPORT_EVERY = 5.0  # seconds between two reports about a start or a stop that takes long
START_TIMEOUT = 180.0  # a start takes less than a second, and ten times that on a machine with other work
STOP_TIMEOUT = 60.0  # requests in progress have ten seconds, and everything takes longer on a machine with other work
MAX_NODES = 64
LOG = "platform.log"


class PlatformFailed(Exception):
    """The platform did not start or stop: what failed, why, and what to do next."""

    def __init__(
        self, message: str, *, why: str = "", next: str = "", cause: Literal["usage", "conflict", "other"] = "other"
    ) -> None:
        super().__init__(": ".join(filter(None, (message, why))) + (f"; next: {next}" if next else ""))
        self.message = message
        self.why = why
        self.next = next
        self.cause = cause


class StartOptions(NamedTuple):
    """How a platform is started. None leaves things as they were when the directory was last used."""

    port: int | None = None
    """0 lets the platform choose another one."""
    nodes: int | None = None
    simulated: int | None = None
    simulated_capacity: Mapping[str, str] | None = None
    durable: bool = False
    controllers: bool = True


class Started(NamedTuple):
    endpoint: Endpoint
    new: bool
    """False when it was running already."""
    kubeconfig: Path
    seconds: float
    """How long the start took."""
    code: str = ""
    """Opens the dashboard, once; empty where the platform ran already."""


class Stopped(NamedTuple):
    was_running: bool
    killed: bool
    """It did not stop when asked."""
    pods_ended: int | None
    """Pods that ran on without their platform, which was killed or had crashed; None after a regular stop."""


class Status(NamedTuple):
    state: Literal["running", "crashed", "stopped"]
    endpoint: Endpoint | None
    resident: int
    """Bytes of memory that the daemon occupies, without its pods."""


def no_report(text: str) -> None:
    """For callers that need no progress."""


def start(data: Path, options: StartOptions, *, report: Report = no_report) -> Started:
    """Start the platform of this directory and wait until it is ready. One that already runs there is used.

    Raises `PlatformFailed`.
    """
    if options.nodes is not None and not 1 <= options.nodes <= MAX_NODES:
        raise PlatformFailed(
            f"the machine can be divided among 1 to {MAX_NODES} nodes, not {options.nodes}", cause="usage"
        )
    found = endpoint.find(data)
    began = time.monotonic()
    if found is not None and found.alive:
        _check_running(found, data, options)
        port, code, new = found.port, "", False
    else:
        (port, code), new = _start_daemon(data, options, report), True
    seconds = time.monotonic() - began
    written = kubeconfig.write_own(data, port)
    found = endpoint.find(data)
    if found is None:
        raise PlatformFailed("the platform stopped right after it was ready", next=f"see {data / LOG}")
    return Started(found, new, written, seconds, code)


def _check_running(found: Endpoint, data: Path, options: StartOptions) -> None:
    if options.port not in (None, 0, found.port):
        raise PlatformFailed(
            f"a platform already runs on {data}, at port {found.port}",
            why=f"it cannot move to port {options.port} while it runs",
            next=f"pdc down --data {data}",
            cause="conflict",
        )
    if options.nodes not in (None, found.nodes):
        nodes = "one node" if found.nodes == 1 else f"{found.nodes} nodes"
        raise PlatformFailed(
            f"a platform already runs on {data}, as {nodes}",
            why=f"the machine cannot be divided among {options.nodes} while pods run on it",
            next=f"pdc down --data {data}",
            cause="conflict",
        )


def _start_daemon(data: Path, options: StartOptions, report: Report) -> tuple[int, str]:
    """The port that it listens on, and the code that opens its dashboard."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = open(data / LOG, "ab", opener=_private)  # noqa: SIM115 - handed to the child
    except OSError as error:
        raise PlatformFailed(
            f"cannot use {data}: {error.strerror}",
            next="pdc up --data with a directory you may write to",
            cause="usage",
        ) from error
    kept = endpoint.kept_port(data) if options.port is None else 0
    port = options.port or kept or endpoint.free_port()
    reading, writing = os.pipe()
    with log:
        daemon = subprocess.Popen(
            _command(data, port, writing, options), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            pass_fds=(writing,), start_new_session=True, cwd="/",
        )  # fmt: skip
    os.close(writing)
    try:
        answer = _await_ready(reading, daemon, report)
    except BaseException:  # interrupted: nobody would know of a platform that became ready afterwards
        _kill(daemon)
        raise
    if "error" in answer:
        raise PlatformFailed(
            "the platform did not start",
            why=answer["error"],
            next=answer.get("next") or f"see {data / LOG}",
            cause="conflict" if answer.get("conflict") else "other",
        )
    daemon.returncode = 0  # it outlives this process, which is nothing that Popen need warn of
    port = int(answer["port"])
    if port == kept or not kept:
        endpoint.keep_port(data, port)
    return port, str(answer.get("code") or "")


def _command(data: Path, port: int, ready: int, options: StartOptions) -> list[str]:
    command = [sys.executable, "-m", endpoint.DAEMON, "--data", str(data), "--port", str(port)]
    command += ["--ready-fd", str(ready), "--started-in", os.getcwd()]
    command += ["--nodes", str(options.nodes)] if options.nodes is not None else []
    if options.simulated is not None:
        command += ["--simulated", str(options.simulated)]
        command += ["--simulated-capacity", json.dumps(options.simulated_capacity or {})]
    command += [] if options.port else ["--any-port-if-taken"]
    command += ["--durable"] if options.durable else []
    command += [] if options.controllers else [endpoint.NO_CONTROLLERS]
    return command


def _private(path: str, flags: int) -> int:
    """A link is not followed: whose directory it is shows only later."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _await_ready(reading: int, daemon: subprocess.Popen[bytes], report: Report) -> dict[str, Any]:
    """One line of JSON from the daemon, or the reason why none came. A daemon that was not ready in time is killed."""
    import select

    began = time.monotonic()
    with os.fdopen(reading, "rb") as pipe:
        while not select.select([pipe], [], [], REPORT_EVERY)[0]:
            waited = time.monotonic() - began
            if waited > START_TIMEOUT:
                _kill(daemon)
                return {"error": f"it was not ready after {waited:.0f} s and was ended"}
            report(f"starting the platform: {waited:.0f} s so far")
        line = pipe.readline()
    answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended before it was ready"}
    return answer


def _kill(daemon: subprocess.Popen[bytes]) -> None:
    daemon.kill()
    daemon.wait()


def find_daemon(data: Path) -> Endpoint | None:
    """What `stop` would stop: the platform of this directory, also one that is still starting."""
    return endpoint.find(data) or endpoint.find_unannounced(data)


def stop(data: Path, *, report: Report = no_report) -> Stopped:
    """Stop the platform of this directory and its pods, also where it is stuck, was suspended or has crashed.

    Raises `PlatformFailed`.
    """
    found = find_daemon(data)
    running = found is not None and found.alive
    killed = found is not None and found.alive and _end_daemon(data, found, report)
    pods = None
    if found is not None and (killed or not running):
        pods = _end_leftovers(data)
    endpoint.withdraw(data)
    return Stopped(running, killed, pods)


def _end_daemon(data: Path, found: Endpoint, report: Report) -> bool:
    """True when it had to be killed."""
    if _signal(found.pid, data, signal.SIGTERM, signal.SIGCONT, report=report):
        return False
    report(
        f"the platform (pid {found.pid}) did not stop within {STOP_TIMEOUT:.0f} s and is killed; "
        f"{data / LOG} may say what it was doing"
    )
    if not _signal(found.pid, data, signal.SIGKILL):
        raise PlatformFailed(
            f"the platform (pid {found.pid}) is stuck in the kernel and cannot be killed",
            next=f"cat /proc/{found.pid}/stack, then free the device or file system that it waits for",
        )
    return True


def _signal(pid: int, data: Path, *numbers: signal.Signals, report: Report = no_report) -> bool:
    """Send the signals to the daemon and wait for its end. True when it has ended."""
    try:
        for number in numbers:
            os.kill(pid, number)
    except ProcessLookupError:
        return True
    began = reported = time.monotonic()
    while endpoint.is_daemon(pid, data):
        now = time.monotonic()
        if now - began >= STOP_TIMEOUT:
            return False
        if now - reported >= REPORT_EVERY:
            reported = now
            report(f"stopping the platform: {now - began:.0f} s so far")
        time.sleep(0.02)
    with contextlib.suppress(ChildProcessError):  # of another process, as a rule
        os.waitpid(pid, os.WNOHANG)
    return True


def _end_leftovers(data: Path) -> int:
    """The platform is gone without cleaning up: end its pods, gateways and mounts. How many pods still ran."""
    from paddlecloud.drivers import drivers_of
    from paddlecloud.local.knative import supervisor
    from paddlecloud.local.kubelet.node import leftovers
    from paddlecloud.local.volumes.errors import VolumeError

    async def end() -> int:
        await supervisor.end_gateways(data / "gateway")
        return await leftovers.end(data, drivers_of(data).values())

    try:
        return _run(end())
    except VolumeError as error:
        raise PlatformFailed(str(error), next=f"see who uses it, then pdc down --data {data}") from error


def _run(work: Coroutine[Any, Any, T]) -> T:
    """To its end; in a thread where the caller's has an event loop already, as a notebook's."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def status(data: Path) -> Status:
    found = endpoint.find(data)
    if found is None:
        return Status("stopped", None, 0)
    return Status("running", found, _resident(found.pid)) if found.alive else Status("crashed", found, 0)


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
