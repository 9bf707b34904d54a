"""An Envoy process that reads its configuration from files of ours, and is asked over its own socket.

A change is written in the order in which it is safe: first the pods and clusters that routes will name; when Envoy has
taken those, the routes; when it has taken these, listeners that lead to them, and clusters that no route names any more
may go. It ends with the process that started it, however that ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from paddlecloud.local.knative.gateway.bodies import body_of
from paddlecloud.local.knative.gateway.http1 import read_response
from paddlecloud.local.knative.gateway.sockets import connect_unix
from paddlecloud.local.knative.h2c.config import (
    ADMIN,
    CLUSTERS,
    LISTENER,
    LISTENERS,
    Config,
    EnvoyConfig,
    bootstrap,
    pods_file,
    routes_file,
)
from paddlecloud.local.knative.h2c.statistics import WANTED

log = logging.getLogger(__name__)

START = 60.0
TAKE = 60.0
"""Seconds Envoy has to take a change."""
LOOK = 0.01
LEAVE = 1
"""Seconds in which clients are asked to go elsewhere before no more connections are taken."""
PR_SET_PDEATHSIG = 1


def find_envoy() -> str | None:
    """The program of the package beside our Python, else one on PATH."""
    return shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")


class Envoy:
    """`number` numbers revisions, for the names of their files."""

    def __init__(self, program: str, folder: Path, *, port: int, number: Callable[[str], int]) -> None:
        self._program = program
        self._folder = folder
        self._port = port
        self._number = number
        self._version = 0
        self._written: dict[str, str] = {}
        self._clusters: list[Config] = []
        self._followed: set[str] = set()
        """Names of the routes for which Envoy has a listener."""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, picture: EnvoyConfig) -> None:
        """Until it takes connections, with these routes from the first one on. Raises `OSError` when it does not."""
        self._write_pods(picture)
        self._clusters, self._followed = picture.clusters, set(picture.routes)
        self._write(CLUSTERS, picture.clusters)
        for name, routes in picture.routes.items():
            self._write(routes_file(name), [routes])
        self._write(LISTENERS, picture.listeners)
        (self._folder / "envoy.json").write_text(json.dumps(bootstrap(str(self._folder), self._port)))
        command = [self._program, "-c", str(self._folder / "envoy.json"), "--concurrency", "1"]
        command += ["--disable-hot-restart", "--log-level", "error"]
        command += ["--drain-strategy", "immediate", "--drain-time-s", str(LEAVE)]
        libc = ctypes.CDLL(None, use_errno=True)
        self._process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
        )
        await asyncio.wait_for(self._answers(), START)

    async def ended(self) -> None:
        """Until the process is over, which nobody asked it to be."""
        assert self._process is not None
        raise OSError(f"{self._program} ended with code {await self._process.wait()}")

    async def bring(self, picture: EnvoyConfig) -> None:
        """Have Envoy follow this picture. Raises `TimeoutError` when it does not take it."""
        self._write_pods(picture)
        kept = {cluster["name"] for cluster in picture.clusters}
        leaving = [cluster for cluster in self._clusters if cluster["name"] not in kept]
        if self._write(CLUSTERS, [*picture.clusters, *leaving]):
            await self._taken("cluster_manager.cds.version_text")
        for name, routes in picture.routes.items():
            known = name in self._followed
            if self._write(routes_file(name), [routes]) and known:
                await self._taken(f"http.{LISTENER}.rds.{name}.version_text")
        if self._write(LISTENERS, picture.listeners):
            await self._taken("listener_manager.lds.version_text")
            await self._until("listener_manager.total_listeners_warming", "0", timeout=TAKE)
        self._followed = set(picture.routes)
        self._clusters = picture.clusters
        self._write(CLUSTERS, picture.clusters)

    async def statistics(self) -> str:
        return (await self._ask("GET", f"/stats/prometheus?filter={quote(WANTED)}")).decode()

    async def drain(self, timeout: float) -> None:
        """Take no more connections, let what is in progress end, and go."""
        if self._process is None or self._process.returncode is not None:
            return
        try:
            if not await self._is(f"http.{LISTENER}.downstream_cx_active", "0"):
                await self._ask("POST", "/drain_listeners?graceful")
                await asyncio.sleep(LEAVE)
            await self._until(f"http.{LISTENER}.downstream_rq_active", "0", timeout=timeout)
        except (OSError, asyncio.TimeoutError) as error:
            log.info("Envoy did not become idle: %r", error)
        self._process.terminate()

    # Files

    def _write_pods(self, picture: EnvoyConfig) -> None:
        for key, assignment in picture.pods.items():
            self._write(pods_file(self._number(key)), [assignment])

    def _write(self, name: str, resources: list[Config]) -> bool:
        """Whether it is another than before. Envoy reads a file when another takes its place."""
        text = json.dumps(resources, sort_keys=True)
        if self._written.get(name) == text:
            return False
        self._written[name] = text
        self._version += 1
        fresh = self._folder / f"{name}.new"
        fresh.write_text(json.dumps({"version_info": str(self._version), "resources": resources}))
        fresh.rename(self._folder / name)
        return True

    # Questions

    async def _answers(self) -> None:
        while True:
            try:
                if (await self._ask("GET", "/ready")).startswith(b"LIVE"):
                    return
            except OSError:
                pass  # its socket is not there yet
            assert self._process is not None
            if self._process.returncode is not None:
                raise OSError(f"{self._program} ended at its start with code {self._process.returncode}")
            await asyncio.sleep(LOOK)

    async def _taken(self, statistic: str) -> None:
        """Until what was written last is in force."""
        await self._until(statistic, f'"{self._version}"', timeout=TAKE)
        await self._until("cluster_manager.warming_clusters", "0", timeout=TAKE)

    async def _until(self, statistic: str, value: str, *, timeout: float) -> None:
        """Envoy does not report changes, so it is polled. Raises `TimeoutError`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not await self._is(statistic, value):
            if loop.time() > deadline:
                raise asyncio.TimeoutError(f"{statistic} of Envoy is not {value} after {timeout} s")
            await asyncio.sleep(LOOK)

    async def _is(self, statistic: str, value: str) -> bool:
        answer = await self._ask("GET", f"/stats?filter=^{statistic}$")
        return answer.decode().strip() == f"{statistic}: {value}"

    async def _ask(self, method: str, path: str) -> bytes:
        reader, writer = await connect_unix(os.path.join(self._folder, ADMIN))
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: envoy\r\nConnection: close\r\n\r\n".encode())
            head = read_response((await reader.readuntil(b"\r\n\r\n"))[:-2], to=method.encode())
            body = body_of(head.length, status=502)
            return body.feed(await reader.read()).content if body is not None else b""
        except asyncio.IncompleteReadError as error:
            raise OSError("Envoy hung up") from error
        finally:
            writer.close()
