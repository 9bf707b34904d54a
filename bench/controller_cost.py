"""What one watched event costs a controller: ours beside kopf and kubernetes_asyncio, same server, same events.

Each contender is a separate process that watches ConfigMaps of one namespace and counts changes until it has seen the
last one; a controller of ours also keeps the cache, the queue and calls a reconcile function. CPU of the process, after
its imports, divided by the events it was sent. The others live in a virtual environment under .cache/bench, made on
first use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .claim import Claim, busy, pdc

ROOT = Path(__file__).parent.parent
OBJECTS, ROUNDS = 200, 20
EVENTS = OBJECTS * ROUNDS
GOALS = {"kubernetes_asyncio": 0.33, "kopf": 0.2}
"""Of what the others cost. The first is a client alone: it keeps no cache and calls nothing."""

OURS = """
import asyncio, json, os, resource, sys
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.controller import Controller
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.resource import CONFIGMAPS

async def main():
    client = Client(HttpTransport(config.load()))
    informer = Informer(client, CONFIGMAPS, namespace="bench")
    done = asyncio.Event()
    async def reconcile(key):
        if (informer.cache.get(key) or {}).get("data", {}).get("last"):
            done.set()
    controller = Controller("bench", reconcile)
    controller.watch(informer)
    tasks = [asyncio.ensure_future(informer.run()), asyncio.ensure_future(controller.run())]
    await informer.wait_synced()
    before = resource.getrusage(resource.RUSAGE_SELF)
    print("ready", flush=True)
    await done.wait()
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), flush=True)
    os._exit(0)
asyncio.run(main())
"""

ASYNCIO_CLIENT = """
import asyncio, json, os, resource
from kubernetes_asyncio import client, config, watch

async def main():
    await config.load_kube_config()
    api = client.CoreV1Api()
    listed = await api.list_namespaced_config_map("bench")
    before = resource.getrusage(resource.RUSAGE_SELF)
    print("ready", flush=True)
    async with watch.Watch().stream(api.list_namespaced_config_map, "bench",
                                    resource_version=listed.metadata.resource_version) as stream:
        async for event in stream:
            if (event["object"].data or {}).get("last"):
                break
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), flush=True)
    os._exit(0)
asyncio.run(main())
"""

KOPF = """
import json, os, resource, threading
import kopf
before = None

@kopf.on.startup()
async def settings(settings, **_):
    settings.posting.enabled = False

@kopf.on.event("configmaps")
async def changed(body, **_):
    global before
    if (body.get("data") or {}).get("first") and before is None:
        before = resource.getrusage(resource.RUSAGE_SELF)
        print("ready", flush=True)
    if (body.get("data") or {}).get("last"):
        after = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), flush=True)
        os._exit(0)
import asyncio
asyncio.run(kopf.operator(namespaces=["bench"], standalone=True))
"""


def run() -> Iterator[Claim]:
    others = _environment()
    with tempfile.TemporaryDirectory() as directory:
        env = {**os.environ, "KUBECONFIG": f"{directory}/kubeconfig"}
        pdc("up", "--data", directory, "--port", "0", env=env)
        try:
            _api(env, "create")
            costs = {
                "ours": _contender(sys.executable, OURS, env),
                "kubernetes_asyncio": _contender(others, ASYNCIO_CLIENT, env),
                "kopf": _contender(others, KOPF, env),
            }
        finally:
            pdc("down", "--data", directory, env=env)
    note = f"{EVENTS:,} updates of {OBJECTS} ConfigMaps of 3 KB over HTTPS, {busy()}"
    for name, goal in GOALS.items():
        yield Claim("controller CPU per event", costs["ours"], "µs", other=costs[name], other_name=name, note=note)
        yield Claim(f"… as a multiple of {name}'s", costs["ours"] / costs[name], "×", goal=goal, note=note)


def _contender(python: str, program: str, env: dict[str, str]) -> float:
    process = subprocess.Popen([python, "-c", program], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("a contender did not start")
        _api(env, "update")
        return float(json.loads(process.stdout.readline())) / EVENTS * 1e6
    finally:
        process.kill()
        process.wait()


def _api(env: dict[str, str], what: str) -> None:
    subprocess.run([sys.executable, "-m", "bench.controller_cost", what], env=env, check=True, cwd=ROOT, timeout=300)


def _environment() -> str:
    directory = ROOT / ".cache" / "bench"
    python = directory / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--quiet", str(directory)], check=True, timeout=300)
        packages = ["kopf", "kubernetes_asyncio"]
        subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(python), *packages], check=True, timeout=900)
    return str(python)


async def _write(what: str) -> None:
    import asyncio

    from paddlecloud.kube import config
    from paddlecloud.kube.client import Client
    from paddlecloud.kube.http import HttpTransport
    from paddlecloud.kube.resource import CONFIGMAPS, NAMESPACES

    client = Client(HttpTransport(config.load()))
    if what == "create":
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}})
        for number in range(OBJECTS):
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "namespace": "bench"}}
            data = {"payload": "x" * 2800, **({"first": "1"} if number == 0 else {})}
            await client.create(CONFIGMAPS, {**obj, "data": data}, namespace="bench")
    else:
        await client.patch(CONFIGMAPS, "c1", {"data": {"last": None}}, namespace="bench")
        for _ in range(ROUNDS):
            change = {"data": {"step": f"{time.monotonic_ns()}"}}
            names = [f"c{number}" for number in range(OBJECTS)]
            for start in range(0, OBJECTS, 20):
                batch = names[start : start + 20]
                await asyncio.gather(*(client.patch(CONFIGMAPS, n, change, namespace="bench") for n in batch))
        await client.patch(CONFIGMAPS, "c1", {"data": {"last": "1", "step": "end"}}, namespace="bench")
        await client.patch(CONFIGMAPS, "c1", {"data": {"last": None}}, namespace="bench")
    await client.close()


if __name__ == "__main__":
    import asyncio

    asyncio.run(_write(sys.argv[1]))
