"""The load generators of `scheduling`: a separate process that talks to the platform over HTTPS.

A workload of Kueue's baseline is a PodGroup and a pod; a cohort is a parent queue, nominal quota is `deserved`, nominal
quota plus borrowing limit is `capability`. A pod that is preempted is made anew, as Kueue requeues a workload.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PADDLEJOBS, PODGROUPS, PODS, QUEUES, Object, Resource

GANG = 10_000
GANGS, MEMBERS = 1_000, 4
JOBS, WORKERS = 1_000, 4
KUEUE = {"cohorts": 5, "queues": 6, "quota": 20, "borrow": 100}
CLASSES = (
    # name, per queue, every ms, runs for ms, priority, units
    ("small", 350, 100, 200, 50, 1),
    ("medium", 100, 500, 500, 100, 5),
    ("large", 50, 1200, 1000, 200, 20),
)
"""Kueue's baseline load (test/performance/scheduler): 15,000 workloads in 30 queues."""


def new_pod(name: str, cpu: str, *, life: str = "", group: str = "", priority: str = "") -> Object:
    annotations = {"paddlecloud.org/simulate": life}
    if group:
        annotations["scheduling.k8s.io/group-name"] = group
    spec: Object = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "any", "resources": {"requests": {"cpu": cpu}}}],
    }
    if priority:
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": "default", "uid": name, "annotations": annotations, "creationTimestamp": ""}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _new(obj: Object) -> Object:
    """Without what only the server may set."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "creationTimestamp")}
    return {**obj, "metadata": meta}


def _group(name: str, least: int, queue: str = "") -> Object:
    spec: Object = {"minMember": least, **({"queue": queue} if queue else {})}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": PODGROUPS.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}


class Load:
    """Creates over a few connections and counts what fails."""

    def __init__(self, client: Client, *, width: int = 16) -> None:
        self.client = client
        self.failed = 0
        self._limit = asyncio.Semaphore(width)

    async def create(self, resource: Resource, obj: Object) -> None:
        async with self._limit:
            try:
                await self.client.create(resource, obj)
            except Exception as error:
                self.failed += 1
                print(f"create failed: {error}", file=sys.stderr)


async def _until_seen(
    client: Client, resource: Resource, started: Callable[[], Awaitable[None]], seen: Callable[[str, Object], bool]
) -> float:
    """Seconds from `started` until `seen` says enough of the watch."""
    listed = await client.list(resource)
    began = time.perf_counter()
    work = asyncio.ensure_future(started())
    version = listed.resource_version
    while True:
        async for event in client.watch(resource, resource_version=version, timeout=300):
            version = event.object["metadata"]["resourceVersion"]
            if event.type != "BOOKMARK" and seen(event.type, event.object):
                await work
                return time.perf_counter() - began


async def _gang(client: Client) -> dict[str, float]:
    return await _run_gangs(client, 1, GANG)


async def _gangs(client: Client) -> dict[str, float]:
    return await _run_gangs(client, GANGS, MEMBERS)


async def _run_gangs(client: Client, count: int, members: int) -> dict[str, float]:
    """Seconds from the first create until every pod of `count` gangs runs."""
    load = Load(client)
    running: set[str] = set()

    async def one(name: str) -> None:
        await load.create(PODGROUPS, _group(name, members))
        pods = (_new(new_pod(f"{name}-{number}", "1", group=name)) for number in range(members))
        await asyncio.gather(*(load.create(PODS, pod) for pod in pods))

    async def start() -> None:
        await asyncio.gather(*(one(f"gang-{number}") for number in range(count)))

    def seen(_: str, pod: Object) -> bool:
        if (pod.get("status") or {}).get("phase") == "Running":
            running.add(pod["metadata"]["name"])
        return len(running) >= count * members

    seconds = await _until_seen(client, PODS, start, seen)
    return {"seconds": seconds, "failed": float(load.failed)}


async def _jobs(client: Client) -> dict[str, float]:
    load = Load(client)
    running: set[str] = set()
    template = new_pod("x", "1")
    worker = {
        "replicas": WORKERS,
        "template": {"metadata": {"annotations": {"paddlecloud.org/simulate": ""}}, "spec": template["spec"]},
    }

    async def start() -> None:
        await asyncio.gather(
            *(
                load.create(
                    PADDLEJOBS,
                    {
                        "apiVersion": PADDLEJOBS.api_version,
                        "kind": "PaddleJob",
                        "metadata": {"name": f"job-{number}", "namespace": "default"},
                        "spec": {"cleanPodPolicy": "Never", "worker": worker},
                    },
                )
                for number in range(JOBS)
            )
        )

    def seen(_: str, job: Object) -> bool:
        if (job.get("status") or {}).get("phase") == "Running":
            running.add(job["metadata"]["name"])
        return len(running) >= JOBS

    seconds = await _until_seen(client, PADDLEJOBS, start, seen)
    return {"seconds": seconds, "failed": float(load.failed)}


class Kueue:
    """The load generator of Kueue's performance test, in our kinds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._load = Load(client)
        self._made: dict[str, tuple[Object, str, float]] = {}  # pod → object, class, when
        self._running: dict[str, float] = {}
        self._done: set[str] = set()
        self.again = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def prepare(self) -> None:
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        classes = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
        for name, *_, value, _units in CLASSES:
            await self._load.create(classes, {**priority, "metadata": {"name": name}, "value": value})
        for cohort in range(KUEUE["cohorts"]):
            total = str(KUEUE["queues"] * KUEUE["quota"])
            await self._queue(f"cohort-{cohort}", {"capability": {"cpu": total}, "deserved": {"cpu": total}})
            for number in range(KUEUE["queues"]):
                limit = str(KUEUE["quota"] + KUEUE["borrow"])
                spec = {
                    "parent": f"cohort-{cohort}",
                    "deserved": {"cpu": str(KUEUE["quota"])},
                    "capability": {"cpu": limit},
                    "reclaimable": True,
                }
                await self._queue(f"cq-{cohort}-{number}", spec)

    async def _queue(self, name: str, spec: Object) -> None:
        await self._load.create(
            QUEUES, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        )

    async def submit(self) -> None:
        queues = [f"cq-{c}-{q}" for c in range(KUEUE["cohorts"]) for q in range(KUEUE["queues"])]
        await asyncio.gather(*(self._stream(queue, row) for queue in queues for row in CLASSES))

    async def _stream(self, queue: str, row: tuple[str, int, int, int, int, int]) -> None:
        name, count, every, runs, _, units = row
        began = time.perf_counter()
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number * every / 1000 - time.perf_counter()))
            key = f"{queue}-{name}-{number}"
            await self._load.create(PODGROUPS, _group(key, 1, queue))
            pod = _new(new_pod(key, str(units), life=f"run={runs}ms", group=key, priority=name))
            self._made[key] = (pod, name, time.perf_counter())
            await self._load.create(PODS, pod)

    def seen(self, kind: str, pod: Object) -> bool:
        name, phase = pod["metadata"]["name"], (pod.get("status") or {}).get("phase")
        if phase == "Running" and not pod["metadata"].get("deletionTimestamp"):
            self._running.setdefault(name, time.perf_counter())
        if phase == "Succeeded":
            self._done.add(name)
        elif kind == "DELETED":
            self.again += 1
            self._running.pop(name, None)
            task = asyncio.ensure_future(self._load.create(PODS, self._made[name][0]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(self._done) >= KUEUE["cohorts"] * KUEUE["queues"] * sum(row[1] for row in CLASSES)

    def waits(self) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        for key, (_, kind, made) in self._made.items():
            if key in self._running:
                found.setdefault(kind, []).append(self._running[key] - made)
        return {f"wait_{kind}": sum(waits) / len(waits) for kind, waits in found.items()}


async def _kueue(client: Client) -> dict[str, float]:
    load = Kueue(client)
    await load.prepare()
    seconds = await _until_seen(client, PODS, load.submit, load.seen)
    return {"seconds": seconds, "again": float(load.again), **load.waits()}


@asynccontextmanager
async def _connected(data: str) -> AsyncIterator[Client]:
    from paddlecloud.kube import config
    from paddlecloud.kube.http import HttpTransport

    client = Client(HttpTransport(config.load(f"{data}/kubeconfig"), connections=32, user_agent="bench"))
    try:
        yield client
    finally:
        await client.close()


async def _main(data: str, what: str) -> None:
    loads: dict[str, Callable[[Client], Awaitable[dict[str, Any]]]] = {
        "gang": _gang,
        "gangs": _gangs,
        "jobs": _jobs,
        "kueue": _kueue,
    }
    async with _connected(data) as client:
        print(json.dumps(await loads[what](client)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
