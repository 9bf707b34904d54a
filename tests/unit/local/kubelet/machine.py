"""A whole small machine for tests: the real API server and kubelet in this process, on their own directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from harness import PATIENCE
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import EVENTS, PODS, Object
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.images.store import ImageStore
from paddlecloud.local.kubelet.node.kubelet import Kubelet
from paddlecloud.local.kubelet.node.node import NodeConfig
from paddlecloud.local.kubelet.pod.service_account import api_tokens
from paddlecloud.local.kubelet.streams.streams import PodStreams

NODE = "node-1"


class TestMachine:
    """`pods` are created on its node; `until` waits on the API's watch, never by sleeping."""

    __test__ = False

    def __init__(self, data: Path, **options: Any) -> None:
        self.data = data
        self._options = options
        self.platform: ControlPlane
        self.kubelet: Kubelet
        self.client: Client
        self.streams: PodStreams

    async def start(self) -> None:
        self.platform = ControlPlane(self.data)
        await self.platform.start()
        self.client = self.platform.client()
        await self.start_kubelet()

    async def start_kubelet(self) -> None:
        images = self._options.get("images") or ImageStore(cache=self.data / "cache", folders=[self.data / "images"])
        client = self.platform.client(user_agent="kubelet")
        self.kubelet = Kubelet(
            client,
            data=self.data,
            nodes=self._options.get("nodes") or [NodeConfig(NODE)],
            images=images,
            **{
                "token": api_tokens(client),
                **{key: value for key, value in self._options.items() if key not in ("images", "nodes")},
            },
        )
        self.streams = PodStreams(self.kubelet, self.platform.clock)
        await self.kubelet.start()

    async def stop(self) -> None:
        await self.kubelet.stop()
        await self.platform.stop()

    async def events_of(self, name: str) -> list[tuple[str, str, str]]:
        """The Events of a pod as `kubectl describe` lists them: in the order of their names."""
        events = (await self.client.list(EVENTS, "default", field_selector=f"involvedObject.name={name}")).items
        return [(event["type"], event["reason"], event["message"]) for event in events]

    async def create(self, pod: Object) -> Object:
        return await self.client.create(PODS, pod, namespace="default")

    async def run(self, script: str, **fields: Any) -> Object:
        """A pod of one shell container."""
        return await self.create(shell_pod(script, **fields))

    async def until(self, name: str, condition: Callable[[Object], Any], *, deadline: float = PATIENCE) -> Object:
        """The pod's first state for which the condition holds."""

        async def wait() -> Object:
            async for event in self.client.watch(PODS, "default", field_selector=f"metadata.name={name}"):
                if event.type in ("ADDED", "MODIFIED") and condition(event.object):
                    return event.object
            raise AssertionError("the watch ended")

        try:
            return await asyncio.wait_for(wait(), deadline)
        except asyncio.TimeoutError:
            pod = await self.client.get(PODS, name, "default")
            raise AssertionError(f"pod {name} stays at {pod.get('status')}") from None

    async def phase(self, name: str, *phases: str) -> Object:
        return await self.until(name, lambda pod: pod["status"].get("phase") in phases)

    async def gone(self, name: str) -> None:
        async def wait() -> None:
            async for event in self.client.watch(PODS, "default", field_selector=f"metadata.name={name}"):
                if event.type == "DELETED":
                    return

        with contextlib.suppress(NotFound):
            await self.client.get(PODS, name, "default")
            watching = asyncio.ensure_future(wait())
            try:
                while not watching.done():
                    await asyncio.wait((watching,), timeout=0.2)
                    await self.client.get(PODS, name, "default")  # it may have gone before the watch began
            finally:
                watching.cancel()

    async def log(self, name: str, container: str | None = None, **options: Any) -> str:
        chunks = [data async for data in self.streams.read_log("default", name, container, **options)]
        return b"".join(chunks).decode()

    async def printed(self, name: str, text: str, container: str | None = None) -> None:
        """Wait until a running container has printed something."""

        async def wait() -> None:
            await self.phase(name, "Running", "Succeeded", "Failed")
            seen = ""
            async for data in self.streams.read_log("default", name, container, follow=True):
                seen += data.decode()
                if text in seen:
                    return
            raise AssertionError(f"{name} ended without printing {text!r}: {seen!r}")

        await asyncio.wait_for(wait(), PATIENCE)

    async def exec(self, name: str, *command: str, container: str | None = None) -> tuple[int, str]:
        session = await self.streams.exec("default", name, container, command)
        output = b""
        try:
            while (piece := await asyncio.wait_for(session.read(), PATIENCE)) is not None:
                output += piece.data
            return await session.wait(), output.decode()
        finally:
            await session.close()

    def pod_dir(self, pod: Object) -> Path:
        return self.data / "pods" / str(pod["metadata"]["uid"])


def shell_pod(script: str, *, name: str = "pod", policy: str = "Never", **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    container.update(spec.pop("container", {}))
    return {
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {"nodeName": NODE, "restartPolicy": policy, "containers": [container], **spec},
    }


def state_of(pod: Object, container: str = "main") -> dict[str, Any]:
    status = pod["status"]
    for entry in (*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())):
        if entry["name"] == container:
            return dict(entry)
    return {}


def waiting_reason(pod: Object, container: str = "main") -> str:
    return str((state_of(pod, container).get("state", {}).get("waiting") or {}).get("reason", ""))


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions", ())  # a bookmark of a watch has none
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@contextlib.asynccontextmanager
async def running_machine(data: Path, **options: Any) -> AsyncIterator[TestMachine]:
    """Every pod and process is gone afterwards, whatever the test left."""
    machine = TestMachine(data, **options)
    await machine.start()
    try:
        yield machine
    finally:
        for pod in (await machine.client.list(PODS)).items:
            with contextlib.suppress(NotFound):
                await machine.client.delete(
                    PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"], grace_period=0
                )
        tasks = list(machine.kubelet._worker_tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        await machine.stop()
        assert not any((data / "pods").iterdir()), os.listdir(data / "pods")
