"""What the platform keeps in memory after many namespaces came and went, each with what a tenant has in it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS, SERVICES, Object, Resource
from paddlecloud.platform import endpoint

from .claim import Claim, busy, pdc, resident_megabytes

COUNT, AT_ONCE, POD_EVERY, UPDATES = 400, 8, 4, 5
GOAL = 150
LABELS = {"app": "web"}
POD = {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}], "restartPolicy": "Never"}
CONTENT: list[tuple[Resource, Object]] = [
    (CONFIGMAPS, {"data": {"payload": "x" * 20_000}}),
    (SECRETS, {"stringData": {"token": "y" * 100}}),
    (SERVICES, {"spec": {"selector": LABELS, "ports": [{"port": 80}]}}),
    (
        DEPLOYMENTS,
        {
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": LABELS},
                "template": {
                    "metadata": {"labels": LABELS},
                    "spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "60"]}]},
                },
            }
        },
    ),
]


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        data = str(Path(directory).resolve())
        pdc("up", "--data", data, "--port", "0", "--nodes", "2", "--kubeconfig", f"{data}/kubeconfig")
        try:
            found = endpoint.find(Path(data))
            assert found is not None
            before = resident_megabytes(found.pid)
            asyncio.run(_come_and_go(f"{data}/kubeconfig"))
            after = resident_megabytes(found.pid)
        finally:
            pdc("down", "--data", data, env={**os.environ, "KUBECONFIG": f"{data}/kubeconfig"})
    yield Claim(
        f"resident after {COUNT} namespaces came and went", after, "MB", goal=GOAL,
        note=f"{before:.0f} MB before; each with a ConfigMap of 20 KB, Secret, Service, Deployment, every "
        f"{POD_EVERY}th a pod; {AT_ONCE} at once, {busy()}",
    )  # fmt: skip


async def _come_and_go(kubeconfig: str) -> None:
    client = Client(HttpTransport(config.load(kubeconfig), connections=AT_ONCE, user_agent="bench"))
    turns = iter(range(COUNT))

    async def worker() -> None:
        for turn in turns:
            await _one(client, f"passing-{turn:03}", pod=turn % POD_EVERY == 0)

    try:
        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    finally:
        await client.close()


async def _one(client: Client, name: str, *, pod: bool) -> None:
    await client.create(NAMESPACES, _named(NAMESPACES, {}, name))
    for resource, content in CONTENT:
        await client.create(resource, _named(resource, content, "web", name))
    for number in range(UPDATES):
        await client.patch(CONFIGMAPS, "web", {"data": {"number": str(number)}}, namespace=name)
    if pod:
        await client.create(PODS, _named(PODS, {"spec": POD}, "once", name))
        while (await client.get(PODS, "once", name)).get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            await asyncio.sleep(0.1)
    await client.delete(NAMESPACES, name)
    while await client.find(NAMESPACES, name) is not None:
        await asyncio.sleep(0.1)


def _named(resource: Resource, content: Object, name: str, namespace: str = "") -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **content}
