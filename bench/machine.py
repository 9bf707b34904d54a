"""What the embedded machine costs: `pdc up` with everything on, a pod as an object and as processes, many at once."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.kubelet.shim import wire
from paddlecloud.platform import endpoint

from .claim import Claim, busy, cpu_seconds, pdc, resident_megabytes

OBJECTS = 2000
PODS_AT_ONCE = 100


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory).resolve() / "data"
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        pdc("up", "--data", str(data), "--port", "0", env=env)  # certificates are made and bytecode is compiled
        pdc("down", "--data", str(data), env=env)
        began = time.monotonic()
        pdc("up", "--data", str(data), "--port", "0", env=env)
        up = time.monotonic() - began
        found = endpoint.find(data)
        assert found is not None
        idle = resident_megabytes(found.pid) + _children_megabytes(found.pid)
        try:
            measured = asyncio.run(_measure(data, found.pid))
        finally:
            pdc("down", "--data", str(data), env=env)
    yield Claim("pdc up with everything on", up, "s", goal=1.0, note=f"second start, bytecode compiled; {busy()}")
    yield Claim("resident, idle, with everything on", idle, "MB", goal=120, note="daemon and parent of supervisors")
    note = f"growth of the daemon over {OBJECTS} waiting pods"
    yield Claim("memory of a pod object", measured["object"], "kB", note=note)
    note = f"{PODS_AT_ONCE} pods of `sleep`, image cached"
    yield Claim(f"{PODS_AT_ONCE} pods at once → all Ready", measured["ready"], "s", goal=5.0, note=f"{note}; {busy()}")
    yield Claim("control plane CPU per pod, create → Ready", measured["cpu"], "ms", note=note)
    yield Claim("memory of a running pod: supervisor", measured["shim"], "MB", goal=4.0, note=f"proportional; {note}")
    yield Claim("memory of a running pod: control plane", measured["plane"], "kB", note=f"growth of the daemon; {note}")


def _children_megabytes(pid: int) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(_proportional_megabytes(int(child)) for child in children)


def _proportional_megabytes(pid: int) -> float:
    """Memory of a process, with what it shares counted in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


async def _measure(data: Path, daemon: int) -> dict[str, float]:
    client = Client(HttpTransport(config.load(kubeconfig=str(data / "kubeconfig"))))
    found: dict[str, float] = {}
    before, used = resident_megabytes(daemon), cpu_seconds(daemon)
    began = time.monotonic()
    watching = asyncio.create_task(_all_ready(client))
    bodies = [_pod(f"run-{number}", ["sleep", "600"]) for number in range(PODS_AT_ONCE)]
    created = await asyncio.gather(*(client.create(PODS, body, namespace="default") for body in bodies))
    await asyncio.wait_for(watching, 120)
    found["ready"] = time.monotonic() - began
    found["cpu"] = (cpu_seconds(daemon) - used) * 1000 / PODS_AT_ONCE
    found["plane"] = (resident_megabytes(daemon) - before) * 1024 / PODS_AT_ONCE
    folders = [data / "pods" / pod["metadata"]["uid"] for pod in created]
    shims = [wire.lock_holder(str(folder)) for folder in folders]
    found["shim"] = statistics.mean(_proportional_megabytes(shim) for shim in shims if shim)
    await _remove_all(client)
    found["object"] = await _objects(client, daemon)
    await client.close()
    return found


async def _remove_all(client: Client) -> None:
    await client.delete_collection(PODS, "default")
    while (await client.list(PODS, "default", limit=1)).items:
        await asyncio.sleep(0.1)


async def _objects(client: Client, daemon: int) -> float:
    """Kilobytes by which the daemon grows for each pod that waits for a node that will never come."""
    before = resident_megabytes(daemon)
    for start in range(0, OBJECTS, 50):
        bodies = [_pod(f"wait-{start + number}", ["true"], nodeSelector={"there": "is-none"}) for number in range(50)]
        await asyncio.gather(*(client.create(PODS, body, namespace="default") for body in bodies))
    return (resident_megabytes(daemon) - before) * 1024 / OBJECTS


def _pod(name: str, command: list[str], **spec: object) -> Object:
    container = {"name": "main", "image": "busybox", "command": command}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Always", **spec}}


async def _all_ready(client: Client) -> None:
    ready = set()
    async for event in client.watch(PODS, "default"):
        conditions = (event.object.get("status") or {}).get("conditions") or ()
        if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
            ready.add(event.object["metadata"]["name"])
        if len(ready) == PODS_AT_ONCE:
            return
