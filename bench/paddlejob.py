"""What a PaddleJob costs and how fast it is: writes, starts, restarts of the gang, of the controller, a refusal.

Writes are counted in the audit log, by the controller's user agent. Where programs start they write the time into a
file on a hostPath volume, so the clock is that of the program. The controller whose CPU is measured, and that is killed
with a thousand jobs, is a separate process: it reconciles the jobs that are `managedBy` it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import NAMESPACES, PADDLEJOBS, PODS, Object, Resource
from paddlecloud.local.kubelet.shim import wire

from .claim import Claim, busy, cpu_seconds, pdc

JOBS, WORKERS = 1_000, 4
KILLS = 3
SHAPES = ((2, 0), (2, 2), (32, 0), (128, 0))
"""Workers and servers of the jobs whose writes are counted."""
UPSTREAM = {(2, 0): 31, (2, 2): 51, (32, 0): 208, (128, 0): 624}
"""Writes of paddle-operator 0.3.5 for the same jobs on kube-apiserver 1.34, counted in its audit log."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")
NAME = "bench.paddlecloud.org/controller"

CONTROLLER = f"""
import asyncio
from paddlecloud.controllers.paddlejob import JobOptions, PaddleJobController
from paddlecloud.kube import config, garbage
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
garbage.collect_seldom()
client = Client(HttpTransport(config.load(), user_agent="bench-controller"))
asyncio.run(PaddleJobController(client, options=JobOptions(controller_name={NAME!r})).run())
"""


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory).resolve() / "data"
        pdc("up", "--data", str(data), "--port", "0", "--simulated", "40")
        try:
            yield from asyncio.run(_measure(data, Path(directory) / "marks"))
        finally:
            pdc("down", "--data", str(data))


async def _measure(data: Path, marks: Path) -> list[Claim]:
    client = Client(HttpTransport(config.load(kubeconfig=str(data / "kubeconfig"))))
    marks.mkdir(mode=0o777)
    try:
        claims = [await _writes(client, data, workers, servers) for workers, servers in SHAPES]
        claims += [await _start(client, marks, workers, goal) for workers, goal in ((2, 0.3), (128, 2.0))]
        claims += await _gang_restart(client, data, marks)
        claims.append(await _refusal(client))
        claims += await _controller(client, data)
    finally:
        await client.close()
    return claims


# Writes


async def _writes(client: Client, data: Path, workers: int, servers: int) -> Claim:
    """A whole life on simulated nodes: workers run for two seconds, servers until they are ended."""
    name = f"life-{workers}-{servers}"
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    body = _job(name, workers, _simulated("run=2s"), servers=servers, server=_simulated(""), namespace=name)
    await client.create(PADDLEJOBS, body, namespace=name)
    await _phase(client, name, "Completed", namespace=name)
    found, before = 0, -1
    while found != before:  # the log is written in the background
        await asyncio.sleep(1.0)
        entries = [json.loads(line) for line in (data / "audit.log").read_text().splitlines()]
        found, before = sum(1 for entry in entries if _is_ours(entry, name)), found
    pods = workers + servers
    note = f"audit log, Events included; upstream's operator: {UPSTREAM[workers, servers]}, counted elsewhere"
    what = f"writes for a life: {workers} workers" + (f", {servers} servers" if servers else "")
    return Claim(what, found, "", goal=2 * pods + 8, note=note)


def _is_ours(entry: dict[str, Any], namespace: str) -> bool:
    where = (entry.get("objectRef") or {}).get("namespace")
    who = entry.get("userAgent", "")
    return where == namespace and who.startswith("paddlejob-controller") and entry["verb"] in WRITES


# Starting


async def _start(client: Client, marks: Path, workers: int, goal: float) -> Claim:
    times = []
    for number in range(3 if workers < 10 else 1):
        folder = marks / f"start-{workers}-{number}"
        folder.mkdir(mode=0o777)
        began = time.time()
        await client.create(PADDLEJOBS, _job(f"start-{workers}-{number}", workers, _real(folder)), namespace="default")
        times.append(max(await _marks(folder, workers, lines=1)) - began)
        await client.delete(PADDLEJOBS, f"start-{workers}-{number}", namespace="default")
    note = f"median of {len(times)}, trivial program, image cached; {busy()}"
    return Claim(f"apply → main() of {workers} workers", statistics.median(times), "s", goal=goal, note=note)


# A rank dies


async def _gang_restart(client: Client, data: Path, marks: Path) -> list[Claim]:
    seen, again = [], []
    for number in range(KILLS):
        folder, name = marks / f"hurt-{number}", f"hurt-{number}"
        folder.mkdir(mode=0o777)
        await client.create(PADDLEJOBS, _job(name, WORKERS, _real(folder)), namespace="default")
        await _marks(folder, WORKERS, lines=1)
        await _phase(client, name, "Running")
        pod = await client.get(PODS, f"{name}-worker-1", "default")
        state = wire.read_json(str(data / "pods" / pod["metadata"]["uid"] / wire.STATUS)) or {}
        killed = time.time()
        os.kill(int(state["containers"]["main"]["pid"]), signal.SIGKILL)
        await _phase(client, name, "Restarting")
        seen.append(time.time() - killed)
        again.append(max(await _marks(folder, WORKERS, lines=2)) - killed)
        await client.delete(PADDLEJOBS, name, namespace="default")
    note = f"SIGKILL of one of {WORKERS} real processes, median of {KILLS}; {busy()}"
    return [
        Claim("rank dies → the job says so", statistics.median(seen), "s", goal=2.0, note=note),
        Claim("rank dies → new main() on all ranks", statistics.median(again), "s", goal=5.0, note=note),
    ]


# A refusal


async def _refusal(client: Client) -> Claim:
    body = _job("bad", 1, {"containers": []})
    began = time.time()
    await client.create(PADDLEJOBS, body, namespace="default")
    await _phase(client, "bad", "Failed")
    return Claim("a job that cannot run → its condition", time.time() - began, "s", goal=1.0, note="seen by a watch")


# The controller itself


async def _controller(client: Client, data: Path) -> list[Claim]:
    env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig"), "PYTHONDONTWRITEBYTECODE": ""}
    first = _spawn(env)
    try:
        await _adopted(client, "warm-up")
        before = cpu_seconds(first.pid)
        began = time.time()
        await _create_jobs(client)
        await _pods_in_phase(client, JOBS * WORKERS, "Running")
        took = time.time() - began
        used = cpu_seconds(first.pid) - before
        uids = await _pods(client)
        first.kill()
        first.wait(timeout=10)
        began = time.time()
        second = _spawn(env)
        try:
            await _adopted(client, "newcomer")
            back = time.time() - began
            await asyncio.sleep(2.0)  # time enough to do something wrong
            after = await _pods(client)
            idle = cpu_seconds(second.pid)
        finally:
            second.kill()
            second.wait(timeout=10)
    finally:
        first.kill()
        first.wait(timeout=10)
    doubled = sum(number - 1 for number in Counter(name for name, _ in after).values())
    lost = len(uids - after)
    note = (
        f"{JOBS:,} jobs of {WORKERS} pods on simulated nodes to Running in {took:.0f} s; HTTPS, own process; {busy()}"
    )
    return [
        Claim("controller CPU per job", used * 1000 / JOBS, "ms", note=note),
        Claim(
            "controller killed with 1,000 jobs → creates again",
            back,
            "s",
            goal=2.0,
            note=f"Python's start included; {busy()}",
        ),
        Claim("CPU of that start", idle, "s", note="imports, lists and a pass over every job"),
        Claim("pods doubled or lost by it", doubled + lost, "", goal=0, note=f"{len(uids):,} pods"),
    ]


def _spawn(env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CONTROLLER], env=env)


async def _adopted(client: Client, name: str) -> None:
    """A job that waits for a controller gets its pod."""
    await client.create(PADDLEJOBS, _job(name, 1, _simulated(""), managedBy=NAME), namespace="default")
    label = f"paddlepaddle.org/job-name={name}"
    await _see(client, PODS, lambda pod: True, label_selector=label)


async def _create_jobs(client: Client) -> None:
    limit = asyncio.Semaphore(8)

    async def create(number: int) -> None:
        async with limit:
            body = _job(f"many-{number}", WORKERS, _simulated(""), managedBy=NAME)
            await client.create(PADDLEJOBS, body, namespace="default")

    await asyncio.gather(*(create(number) for number in range(JOBS)))


async def _pods_in_phase(client: Client, wanted: int, phase: str) -> None:
    deadline = time.time() + 300
    while time.time() < deadline:
        found = await client.list(PODS, "default", field_selector=f"status.phase={phase}")
        if len([pod for pod in found.items if pod["metadata"]["name"].startswith("many-")]) >= wanted:
            return
        await asyncio.sleep(1.0)
    raise TimeoutError(f"not {wanted} pods {phase} after five minutes")


async def _pods(client: Client) -> set[tuple[str, str]]:
    found = await client.list(PODS, "default")
    named = [pod["metadata"] for pod in found.items if pod["metadata"]["name"].startswith("many-")]
    return {(meta["name"], meta["uid"]) for meta in named}


# Jobs and pods


def _job(
    name: str,
    workers: int,
    pod: Object,
    *,
    servers: int = 0,
    server: Object | None = None,
    namespace: str = "default",
    **spec: object,
) -> Object:
    roles: Object = {"worker": {"replicas": workers, "template": _template(pod)}}
    if servers:
        roles["ps"] = {"replicas": servers, "template": _template(server or pod)}
    meta = {"name": name, "namespace": namespace}
    body = {"cleanPodPolicy": "Never", "withGloo": 1, **roles, **spec}
    return {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": meta, "spec": body}


def _template(pod: Object) -> Object:
    annotations = pod.pop("annotations", {})
    return {"metadata": {"annotations": annotations}, "spec": pod}


def _simulated(life: str) -> Object:
    return {
        "annotations": {"paddlecloud.org/simulate": life},
        "containers": [{"name": "main", "image": "busybox"}],
    }


def _real(folder: Path) -> Object:
    line = "date +%s.%N >> /marks/$HOSTNAME; exec sleep 600"
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", line],
                 "volumeMounts": [{"name": "marks", "mountPath": "/marks"}]}  # fmt: skip
    return {"containers": [container], "volumes": [{"name": "marks", "hostPath": {"path": str(folder)}}]}


async def _marks(folder: Path, pods: int, *, lines: int) -> list[float]:
    """When the programs of `pods` pods began for the `lines`th time."""
    deadline = time.time() + 120
    while True:
        begun = [path.read_text().split() for path in folder.iterdir()]
        if len(begun) == pods and all(len(times) >= lines for times in begun):
            return [float(times[lines - 1]) for times in begun]
        if time.time() > deadline:
            raise TimeoutError(f"{[len(times) for times in begun]} of {pods} programs began {lines} times")
        await asyncio.sleep(0.01)


async def _phase(client: Client, name: str, phase: str, *, namespace: str = "default") -> None:
    def there(job: Object) -> bool:
        return bool((job.get("status") or {}).get("phase") == phase)

    await _see(client, PADDLEJOBS, there, namespace=namespace, field_selector=f"metadata.name={name}")


async def _see(
    client: Client, resource: Resource, fits: Callable[[Object], bool], *, namespace: str = "default", **selector: str
) -> None:
    """Wait for an object that fits."""

    async def look() -> None:
        async for event in client.watch(resource, namespace, **selector):
            if event.type in ("ADDED", "MODIFIED") and fits(event.object):
                return

    await asyncio.wait_for(look(), 120)
