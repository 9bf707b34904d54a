"""The embedded platform beside a real one on the same machine: kube-apiserver + etcd, kubelet + containerd.

Both get the same load from the same client over TLS, in turns, so that a busy moment of the machine hits both; medians
of the turns are compared. Once without waiting for the disk (etcd with `--unsafe-no-fsync`), once durable (fsync before
every answer). CPU and memory of the real server are those of kube-apiserver and etcd; those of the embedded one include
its scheduler, kubelet and controllers. Needs root and `PDC_CLUSTER=1`: `make bench-cluster`.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.platform import endpoint

from .claim import Claim, busy, cpu_seconds, pdc, resident_megabytes

ROOT = Path(__file__).parents[1]
LOADS = {"create": 4000, "update": 2000, "get": 4000, "list": 64, "watch": 400}
TURNS = 4
CLIENTS = 8
WATCHERS = 20
PODS = 10
PARTS = {"list": LOADS["create"], "watch": WATCHERS}
"""What one step of a load consists of: objects listed, events sent."""
CPU_PER = {"create": "create", "update": "update", "get": "get", "list": "listed object", "watch": "event sent"}


@dataclass(frozen=True)
class Server:
    kubeconfig: Path
    pids: Sequence[int]
    started: float
    """Seconds from nothing to an API that answers and a node that is ready."""


def run() -> Iterator[Claim]:
    if not os.environ.get("PDC_CLUSTER"):
        print("cluster_api needs a real cluster: `make bench-cluster`", file=sys.stderr)
        return
    for durable in (False, True):
        with real(durable) as other, embedded(durable) as own:
            ours, theirs = measure((own, other), pods=not durable)
        yield from claims(ours, theirs, durable)


def claims(ours: dict[str, float], theirs: dict[str, float], durable: bool) -> Iterator[Claim]:
    mode = f"{'durable: fsync before the answer' if durable else 'without waiting for the disk'}; {busy()}"
    goals = {"create /s": 3.0, "create CPU": 0.25, "get CPU": 0.25} if durable else {}
    for name, unit in (("/s", "/s"), ("CPU", "µs")):
        for load in LOADS:
            key = f"{load} {name}"
            if key not in ours:
                continue
            what = f"{load}s" if name == "/s" else f"server CPU per {CPU_PER[load]}"
            goal = goals[key] * theirs[key] if key in goals else None
            yield _claim(what, ours[key], theirs[key], unit, mode, goal=goal, at_least=name == "/s")
    yield _claim("watch event to the last of its watchers, p99", ours["watch ms"], theirs["watch ms"], "ms", mode)
    yield _claim("resident after load", ours["resident"], theirs["resident"], "MB", mode)
    yield _claim("from nothing to a ready node", ours["started"], theirs["started"], "s", mode)
    if "pod" in ours:
        yield _claim("pod created to Running, p50", ours["pod"], theirs["pod"], "s", f"{PODS} pods one by one")
        yield _claim("all pods Running", ours["pods"], theirs["pods"], "s", f"{PODS} pods at once")


def _claim(
    what: str, ours: float, theirs: float, unit: str, note: str, *, goal: float | None = None, at_least: bool = False
) -> Claim:
    name = "kubelet + containerd" if what.startswith(("pod", "all pods")) else "kube-apiserver + etcd"
    return Claim(what, ours, unit, goal=goal, at_least=at_least, other=theirs, other_name=name, note=note)


# --- the two servers ---


@contextmanager
def embedded(durable: bool) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as data:
        began = time.monotonic()
        pdc("up", "--data", data, "--port", "0", *(["--durable"] if durable else []))
        took = time.monotonic() - began
        found = endpoint.find(Path(data).resolve())
        assert found is not None
        try:
            yield Server(Path(data, "kubeconfig"), [found.pid], took)
        finally:
            pdc("down", "--data", data)


@contextmanager
def real(durable: bool) -> Iterator[Server]:
    harness("build")
    began = time.monotonic()
    kubeconfig = Path(harness("up", *(["--durable"] if durable else [])).strip())
    took = time.monotonic() - began
    try:
        yield Server(kubeconfig, [_pid("kube-apiserver"), _pid("etcd")], took)
    finally:
        harness("down")


def harness(*arguments: str) -> str:
    command = [sys.executable, "-m", "cluster.harness", *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env, timeout=3600).stdout


def _pid(program: str) -> int:
    found = subprocess.run(["pidof", program], check=True, capture_output=True, text=True).stdout.split()
    return int(found[0])


# --- measuring ---


def measure(servers: Sequence[Server], *, pods: bool) -> Iterator[dict[str, float]]:
    """For each server, the median of its turns."""
    turns: list[list[dict[str, float]]] = [[] for _ in servers]
    for load in LOADS:
        for turn in range(TURNS):
            for server, seen in zip(servers, turns, strict=True):
                seen.append(_turn(server, load, turn))
    for server, seen in zip(servers, turns, strict=True):
        names = dict.fromkeys(name for found in seen for name in found)
        measured = {name: statistics.median(found[name] for found in seen if name in found) for name in names}
        measured |= {"started": server.started, "resident": sum(map(resident_megabytes, server.pids))}
        yield measured | (_client(server, "pods", 0, PODS) if pods else {})


def _turn(server: Server, load: str, turn: int) -> dict[str, float]:
    count = LOADS[load] // TURNS
    before = sum(map(cpu_seconds, server.pids))
    result = _client(server, load, turn, count)
    used = sum(map(cpu_seconds, server.pids)) - before
    return {**result, f"{load} CPU": used / (count * PARTS.get(load, 1)) * 1e6}


def _client(server: Server, load: str, turn: int, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.cluster_api", str(server.kubeconfig), load, str(turn), str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=900, cwd=ROOT)
    result: dict[str, float] = json.loads(done.stdout)
    return result


# --- the client process ---


@asynccontextmanager
async def _session(kubeconfig: str) -> AsyncIterator[tuple[Any, str]]:
    import aiohttp

    from paddlecloud.kube import config

    settings = config.load(kubeconfig)
    credential = settings.source.peek() or settings.source.fetch()
    headers = {"Content-Type": "application/json", "User-Agent": "bench"}
    if credential.authorization:
        headers["Authorization"] = credential.authorization
    connector = aiohttp.TCPConnector(limit=0, ssl=settings.tls(credential) or False)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield session, f"{settings.server}/api/v1/namespaces/default"


async def _load(kubeconfig: str, load: str, turn: int, count: int) -> dict[str, float]:
    async with _session(kubeconfig) as (session, base):
        if load == "pods":
            return await _pods(session, base, count)
        if load == "watch":
            return await _watch(session, base, turn, count)
        step = {"create": _create, "update": _update, "get": _get, "list": _list}[load]

        async def worker(client: int) -> None:
            for number in range(count // CLIENTS):
                await step(session, base, f"t{turn}-c{client}-{number}")

        began = time.perf_counter()
        await asyncio.gather(*(worker(client) for client in range(CLIENTS)))
        return {f"{load} /s": count / (time.perf_counter() - began)}


async def _call(session: Any, method: str, url: str, body: Any = None) -> bytes:
    data = None if body is None else json.dumps(body)
    async with session.request(method, url, data=data) as response:
        content: bytes = await response.read()
        assert response.status < 300, (method, url, response.status, content[:500])
        return content


def _config_map(name: str, fill: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"payload": fill * 3000}}


async def _create(session: Any, base: str, name: str) -> None:
    await _call(session, "POST", f"{base}/configmaps", _config_map(name, "x"))


async def _update(session: Any, base: str, name: str) -> None:
    await _call(session, "PUT", f"{base}/configmaps/{name}", _config_map(name, "y", at=str(time.time())))


async def _get(session: Any, base: str, name: str) -> None:
    await _call(session, "GET", f"{base}/configmaps/{name}")


async def _list(session: Any, base: str, name: str) -> None:
    await _call(session, "GET", f"{base}/configmaps")


async def _watch(session: Any, base: str, turn: int, count: int) -> dict[str, float]:
    """Writes at 100 a second, each received by every watcher; the delay of the last one counts."""
    listed = json.loads(await _call(session, "GET", f"{base}/configmaps?limit=1"))
    url = f"{base}/configmaps?watch=1&resourceVersion={listed['metadata']['resourceVersion']}&timeoutSeconds=120"
    sent: dict[str, float] = {}
    received: dict[str, float] = {}
    open_watches = asyncio.Semaphore(0)

    async def watcher() -> None:
        async with session.get(url, read_bufsize=1 << 20, timeout=None) as response:
            open_watches.release()
            for _ in range(count):
                event = json.loads(await response.content.readline())
                name = event["object"]["metadata"]["name"]
                received[name] = max(received.get(name, 0.0), time.perf_counter())

    watchers = [asyncio.ensure_future(watcher()) for _ in range(WATCHERS)]
    for _ in range(WATCHERS):
        await asyncio.wait_for(open_watches.acquire(), 30)
    began = time.perf_counter()
    for number in range(count):
        name = f"t{turn}-w{number}"
        sent[name] = time.perf_counter()
        await _create(session, base, name)
        await asyncio.sleep(max(0.0, (number + 1) / 100 - (time.perf_counter() - began)))
    await asyncio.wait_for(asyncio.gather(*watchers), 60)
    delays = sorted(received[name] - at for name, at in sent.items())
    return {"watch ms": delays[int(len(delays) * 0.99)] * 1000}


async def _pods(session: Any, base: str, count: int) -> dict[str, float]:
    """One by one, then all at once; a first pod brings the image."""
    await _run_pods(session, base, ["warm"])
    single = [(await _run_pods(session, base, [f"one-{number}"]))[f"one-{number}"] for number in range(count)]
    together = await _run_pods(session, base, [f"all-{number}" for number in range(count)])
    await _call(session, "DELETE", f"{base}/pods")
    return {"pod": statistics.median(single), "pods": max(together.values())}


async def _run_pods(session: Any, base: str, names: Sequence[str]) -> dict[str, float]:
    """Seconds from the first create until each is Running, as a watch tells."""
    listed = json.loads(await _call(session, "GET", f"{base}/pods?limit=1"))
    url = f"{base}/pods?watch=1&resourceVersion={listed['metadata']['resourceVersion']}&timeoutSeconds=120"
    running: dict[str, float] = {}
    async with session.get(url, read_bufsize=1 << 20, timeout=None) as response:
        began = time.perf_counter()
        await asyncio.gather(*(_call(session, "POST", f"{base}/pods", _pod(name)) for name in names))
        while len(running) < len(names):
            pod = json.loads(await asyncio.wait_for(response.content.readline(), 120))["object"]
            name = pod["metadata"]["name"]
            if name in names and pod.get("status", {}).get("phase") == "Running":
                running.setdefault(name, time.perf_counter() - began)
    return running


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "600"]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_load(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))))
