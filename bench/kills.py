"""`kill -9` of every part of a busy machine: how soon the statuses that the API shows are true again.

A pod's status is *true* when it calls the pod ready, counts as many restarts as its container has had, and the process
of that run lives. Pods come and go all the while. Each pod is hit once: a second time would measure the back-off.
What must hold beside the time (none lost, none twice, nothing left) is the tests' part: `test_kubelet_chaos.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.kubelet.shim import processes, wire
from paddlecloud.platform import endpoint

from .claim import Claim, busy, pdc

HITS = 5
"""Pods that are hit in each way."""

GOAL = 1.0
PATIENCE = 60.0


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory).resolve() / "data")
        world.up()
        try:
            claims = asyncio.run(world.measure())
        finally:
            pdc("down", "--data", str(world.data))
    yield from claims


def container(record: Object) -> list[int]:
    return [int(record["containers"]["main"]["pid"])]


def supervisor(record: Object) -> list[int]:
    return [int(record["shim"]["pid"])]


def everything(record: Object) -> list[int]:
    """The supervisor first: it must not have the time to tell of the others' end."""
    return [*supervisor(record), *processes.descendants(*supervisor(record))]


Victims = Callable[[Object], list[int]]
PARTS: tuple[tuple[str, Victims], ...] = (
    ("a container", container),
    ("a supervisor", supervisor),
    ("every process of a pod", everything),
)


class World:
    """A platform, its long-lived pods by name, and how often each of them must have been restarted by now."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.restarts: dict[str, int] = {}
        self._uids: dict[str, str] = {}
        self._numbers = itertools.count()
        self._client: Client

    def up(self) -> None:
        pdc("up", "--data", str(self.data), "--port", "0")

    async def measure(self) -> list[Claim]:
        async with self._connected():
            rounds = len(PARTS) + 2 * len(PARTS)  # by themselves, and while a control plane is away
            await asyncio.gather(*(self._create(f"stay-{number}", "600") for number in range(rounds * HITS)))
            self.restarts = dict.fromkeys(self._uids, 0)
            await self._true_again(self.restarts)
            claims = [await self._hits(what, victims) for what, victims in PARTS]
        claims.append(await self._away("the control plane", os.kill))
        claims.append(await self._away("the control plane's process group", os.killpg))
        return claims

    async def _hits(self, what: str, victims: Victims) -> Claim:
        worst = 0.0
        async with self._load():
            for _ in range(HITS):
                name = self._hit(victims)
                worst = max(worst, await self._true_again({name: 1}))
        note = f"worst of {HITS}, {len(self.restarts)} pods, others come and go; {busy()}"
        return Claim(f"{what} killed → its status is true", worst, "s", goal=GOAL, note=note)

    async def _away(self, what: str, kill: Callable[[int, int], None]) -> Claim:
        """While no control plane is there, pods are hit in every way: the next one has to find out."""
        found = endpoint.find(self.data)
        assert found is not None
        async with self._connected(), self._load():
            kill(found.pid, signal.SIGKILL)
        while not processes.is_zombie(found.pid):
            await asyncio.sleep(0.01)
        for _, victims in PARTS:
            for _ in range(HITS):
                self._hit(victims)
        began = time.monotonic()
        await asyncio.to_thread(self.up)
        up = time.monotonic() - began
        async with self._connected(), self._load():
            seconds = await self._true_again(self.restarts)
        hit = HITS * len(PARTS)
        note = f"from ready on ({up:.2f} s after the start); {len(self.restarts)} pods, {hit} hit meanwhile; {busy()}"
        return Claim(f"{what} killed and started again → all statuses are true", seconds, "s", goal=GOAL, note=note)

    def _hit(self, victims: Victims) -> str:
        name = next(name for name, count in self.restarts.items() if count == 0)
        for pid in victims(self._record(name)):
            processes.send(pid, signal.SIGKILL)  # some go with the first
        self.restarts[name] = 1
        return name

    def _record(self, name: str) -> Object:
        record = wire.read_json(str(self.data / "pods" / self._uids[name] / wire.STATUS))
        assert record is not None
        return record

    async def _true_again(self, expected: dict[str, int]) -> float:
        began = time.monotonic()
        lacking = set(expected)

        async def watch() -> None:
            async with contextlib.aclosing(self._client.watch(PODS, "default")) as events:
                async for event in events:
                    name = event.object["metadata"].get("name", "")
                    if name in expected:
                        (lacking.discard if _tells(event.object, expected[name]) else lacking.add)(name)
                    if not lacking:
                        return

        await asyncio.wait_for(watch(), PATIENCE)
        seconds = time.monotonic() - began
        for name, count in expected.items():
            main = self._record(name)["containers"]["main"]
            assert main["attempt"] == count, f"{name}: run {main['attempt']}, reported as {count}"
            assert not processes.is_zombie(main["pid"]), f"{name} is reported as running, and does not run"
        return seconds

    # Load

    async def _create(self, name: str, seconds: str) -> None:
        command = ["sleep", seconds]
        main = {"name": "main", "image": "busybox", "command": command, "resources": {"requests": {"cpu": "1m"}}}
        body = {"metadata": {"name": name}, "spec": {"containers": [main], "terminationGracePeriodSeconds": 0}}
        self._uids[name] = (await self._client.create(PODS, body, namespace="default"))["metadata"]["uid"]

    @contextlib.asynccontextmanager
    async def _load(self) -> AsyncIterator[None]:
        """Pods come and go, one after another."""

        async def churn() -> None:
            with contextlib.suppress(ApiError):  # the control plane was killed under it
                while True:
                    name = f"pass-{next(self._numbers)}"
                    await self._create(name, "600")
                    await asyncio.sleep(0.2)
                    await self._client.delete(PODS, name, namespace="default")

        task = asyncio.create_task(churn())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        self._client = Client(HttpTransport(config.load(kubeconfig=str(self.data / "kubeconfig"))))
        try:
            yield
        finally:
            await self._client.close()


def _tells(pod: Object, restarts: int) -> bool:
    """Whether the status says: ready, in its run of this number."""
    status = pod.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    mains = status.get("containerStatuses") or [{}]
    return ready and mains[0].get("restartCount") == restarts and "running" in mains[0]["state"]
