"""Real shims and processes for the kubelet's tests: everything waits on events, with a deadline, and is ended after."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.pod.runtime import PodRuntime
from paddlecloud.local.kubelet.shim import processes, wire
from tools.ports import free_port

_SERIALS = itertools.count()


class ShimHarness:
    """Makes pod directories and shims, and waits for what their containers do."""

    def __init__(self, folder: Path, zygote: ZygoteClient) -> None:
        self.folder = folder
        self.zygote = zygote
        self._runtimes: list[PodRuntime] = []
        self._changed = asyncio.Event()
        self._serial = next(_SERIALS)

    def uid(self, name: str) -> str:
        """Unlike that of any other test run on the machine: strays are found by it."""
        return f"{os.getpid()}-{self._serial}-{name}"

    def pod_dir(self, name: str = "pod", **spec: Any) -> Path:
        root = self.folder / name
        root.mkdir()
        pod = wire.PodSpec(uid=self.uid(name), namespace="default", name=name, hostname=f"host-{name}", **spec)
        wire.write_json(str(root / wire.SPEC), pod._asdict())
        return root

    async def spawn(self, root: Path) -> PodRuntime:
        return self._keep(await PodRuntime.spawn(root, self.zygote, on_change=self._changed.set))

    async def attach(self, root: Path) -> PodRuntime | None:
        runtime = await PodRuntime.attach(root, on_change=self._changed.set)
        if runtime is not None:
            self._keep(runtime)
            await asyncio.wait_for(runtime.ready.wait(), PATIENCE)
        return runtime

    def _keep(self, runtime: PodRuntime) -> PodRuntime:
        self._runtimes.append(runtime)
        return runtime

    def container(self, root: Path, script: str, **fields: Any) -> wire.ContainerSpec:
        name = fields.pop("name", "main")
        attempt = fields.pop("attempt", 0)
        env = {"PATH": os.defpath, "PADDLECLOUD_POD_UID": self.uid(root.name), "PADDLECLOUD_CONTAINER": name}
        return wire.ContainerSpec(
            name=name,
            attempt=attempt,
            argv=fields.pop("argv", ("sh", "-c", script)),
            env={**env, **fields.pop("env", {})},
            log_path=str(root / "logs" / name / f"{attempt}.log"),
            **fields,
        )

    async def until(self, condition: Callable[[], Any]) -> Any:
        """The condition's first true value; looks again after every change of any shim."""

        async def wait() -> Any:
            while not (found := condition()):
                self._changed.clear()
                if found := condition():
                    break
                await self._changed.wait()
            return found

        return await asyncio.wait_for(wait(), PATIENCE)

    async def exited(self, runtime: PodRuntime, name: str = "main", attempt: int = 0) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            run = runtime.state.get("containers", {}).get(name)
            return run if run and run["phase"] == "exited" and run["attempt"] == attempt else None

        return dict(await self.until(ended))

    async def running(self, runtime: PodRuntime, name: str = "main") -> dict[str, Any]:
        def up() -> dict[str, Any] | None:
            run = runtime.state.get("containers", {}).get(name)
            return run if run and run["phase"] == "running" else None

        return dict(await self.until(up))

    async def run(self, script: str, *, pod: str = "pod", **fields: Any) -> tuple[dict[str, Any], str]:
        """One container to its end: its record and its output."""
        root = self.pod_dir(pod)
        runtime = await self.spawn(root)
        await runtime.start(self.container(root, script, **fields))
        record = await self.exited(runtime)
        return record, output(root)

    async def ended(self, root: Path) -> None:
        """End the pod of a directory, and wait until the last of its processes is gone."""
        for runtime in self._runtimes:
            if runtime.pod_dir == root and runtime.connected:
                await asyncio.wait_for(runtime.shutdown(), PATIENCE)
        uid = self.uid(root.name)
        await eventually(lambda: list(processes.strays(uid)), [], what=f"processes of {root} live on")

    async def close(self) -> None:
        for runtime in self._runtimes:
            if runtime.connected:
                await asyncio.wait_for(runtime.shutdown(), PATIENCE)
        await self.zygote.stop()


def output(root: Path, name: str = "main", attempt: int = 0) -> str:
    """What a container printed, without times and streams."""
    text = (root / "logs" / name / f"{attempt}.log").read_text()
    return "".join(line.split(" ", 3)[3] for line in text.splitlines(keepends=True))


@pytest.fixture
async def shims(tmp_path: Path) -> AsyncIterator[ShimHarness]:
    harness = ShimHarness(tmp_path, ZygoteClient())
    await harness.zygote.start()
    yield harness
    await harness.close()


@pytest.fixture
def unused_tcp_port() -> int:
    return free_port()
