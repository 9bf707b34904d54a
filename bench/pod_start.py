"""From `apply` to the first line of the program: the workers of a PaddleJob, plain pods at once, a gang of 128.

The program writes the time at which it began into a file on a hostPath volume; the clock starts before the request is
sent. Everything is real: API over HTTPS, controller, scheduler, kubelet, shim, namespaces.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object

from .claim import Claim, busy, pdc

ROUNDS = 5


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        data, marks = Path(directory) / "data", Path(directory) / "marks"
        marks.mkdir(mode=0o777)
        pdc("up", "--data", str(data), "--port", "0")
        try:
            measured = asyncio.run(_measure(data, marks))
        finally:
            pdc("down", "--data", str(data))
    note = f"median of {ROUNDS}, trivial shell program, image cached; {busy()}"
    yield Claim("apply → main() of 4 workers (PaddleJob)", measured["job"], "s", goal=0.5, note=note)
    yield Claim("20 pods at once → all in main()", measured["pods"], "s", goal=1.0, note=note)
    yield Claim("PaddleJob of 128 workers: apply → all pods created", measured["created"], "s", goal=1.0, note="once")


async def _measure(data: Path, marks: Path) -> dict[str, float]:
    client = Client(HttpTransport(config.load(kubeconfig=str(data / "kubeconfig"))))
    jobs, pods = [], []
    for number in range(ROUNDS):
        jobs.append(await _job(client, marks / f"job{number}", number))
        pods.append(await _pods(client, marks / f"pods{number}", number))
    created = await _wide(client)
    await client.close()
    return {"job": statistics.median(jobs), "pods": statistics.median(pods), "created": created}


def _pod(marks: Path) -> Object:
    command = ["sh", "-c", "date +%s.%N > /marks/.$HOSTNAME; mv /marks/.$HOSTNAME /marks/$HOSTNAME"]
    container = {"name": "main", "image": "busybox", "command": command,
                 "volumeMounts": [{"name": "marks", "mountPath": "/marks"}]}  # fmt: skip
    return {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "marks", "hostPath": {"path": str(marks)}}],
    }


async def _job(client: Client, marks: Path, number: int) -> float:
    marks.mkdir(mode=0o777)
    body = _paddlejob(f"start-{number}", 4, _pod(marks))
    began = time.time()
    await client.create(PADDLEJOBS, body, namespace="default")
    return await _last(marks, 4) - began


async def _pods(client: Client, marks: Path, number: int) -> float:
    marks.mkdir(mode=0o777)
    bodies = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}-{i}"}, "spec": _pod(marks)}
        for i in range(20)
    ]
    began = time.time()
    await asyncio.gather(*(client.create(PODS, body, namespace="default") for body in bodies))
    return await _last(marks, 20) - began


async def _wide(client: Client) -> float:
    """Pods that no node can take: only their creation is measured."""
    spec = {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1000"}}}]}
    began = time.time()
    await client.create(PADDLEJOBS, _paddlejob("wide", 128, spec), namespace="default")
    while True:
        found = await client.list(PODS, "default", label_selector="paddlepaddle.org/job-name=wide")
        if len(found.items) == 128:
            return time.time() - began
        if time.time() - began > 60:
            raise TimeoutError(f"{len(found.items)} of 128 pods after a minute")
        await asyncio.sleep(0.02)


def _paddlejob(name: str, workers: int, pod: Object) -> Object:
    role = {"replicas": workers, "template": {"spec": pod}}
    meta = {"name": name, "namespace": "default"}
    spec = {"cleanPodPolicy": "Never", "worker": role}
    return {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": meta, "spec": spec}


async def _last(marks: Path, count: int) -> float:
    """When the last of `count` programs began."""
    deadline = time.time() + 60
    while True:
        times = [float(json.loads(path.read_text())) for path in marks.glob("[!.]*")]
        if len(times) == count:
            return max(times)
        if time.time() > deadline:
            raise TimeoutError(f"{len(times)} of {count} programs began within a minute")
        await asyncio.sleep(0.01)
