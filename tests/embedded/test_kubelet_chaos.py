"""`kill -9` at random moments under load, of the platform as `pdc up` starts it and of every part of it.

What must hold, however the rounds fall: no acknowledged pod is lost, no container runs twice at once, none is
restarted that was not hit, statuses become true again at once, and at the end no process and no mount is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from harness import eventually
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.kubelet.shim import processes, wire
from paddlecloud.platform import endpoint
from unit.local.kubelet.machine import is_ready, shell_pod, state_of

TRUE_AGAIN = 20.0
"""Seconds until every status is true after a part was killed, on a machine that other suites keep busy. One is enough
where they do not: `python -m bench kills` measures that, and `test_kubelet_crash` sees that no timer is waited for."""

MOST_PODS = 8
"""Pods that live at a time."""

# It notes every start, and holds a lock for as long as any process of it lives: who finds it taken runs twice. It does
# not end by itself, however long the rounds take.
PROGRAM = """
exec 9>/out/{name}.lock
flock -n 9 || echo {name} >> /out/twice
echo start >> /out/{name}
sleep 86400 & wait
"""


class PlatformUnderKills:
    """One platform through many deaths, with what was asked of it."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.data = folder / "data"
        self.out = folder / "out"
        self.out.mkdir()
        self.rng = rng
        self.client: Client
        self.alive: set[str] = set()  # acknowledged, and not asked to go
        self.hit: set[str] = set()  # pods of which a process was killed
        self.uids: set[str] = set()
        self._number = 0

    async def up(self) -> None:
        command = (sys.executable, "-m", "paddlecloud.cli.main", "up", "--data", str(self.data), "--port", "0")
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        text, _ = await asyncio.wait_for(process.communicate(), 90)
        assert process.returncode == 0, text.decode()
        self.client = Client(HttpTransport(config.load(kubeconfig=str(self.data / "kubeconfig"))))

    async def down(self) -> None:
        with contextlib.suppress(AttributeError):
            await self.client.close()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "paddlecloud.cli.main", "down", "--data", str(self.data),
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await asyncio.wait_for(process.wait(), 90)

    # Load

    async def churn(self) -> None:
        """Make pods and remove some, until cancelled or until there is no platform to ask."""
        while True:
            if len(self.alive) < MOST_PODS:
                await self._create()
            else:
                await self._remove(self.rng.choice(sorted(self.alive - self.hit) or sorted(self.alive)))
            await asyncio.sleep(self.rng.uniform(0, 0.05))  # the pace of the load

    async def _create(self) -> None:
        name = f"p{self._number}"
        self._number += 1
        pod = shell_pod(
            PROGRAM.format(name=name),
            name=name,
            policy="Always",
            container={"volumeMounts": [{"name": "out", "mountPath": "/out"}]},
            volumes=[{"name": "out", "hostPath": {"path": str(self.out)}}],
            terminationGracePeriodSeconds=1,
        )
        del pod["spec"]["nodeName"]
        with contextlib.suppress(ApiError):
            created = await self.client.create(PODS, pod, namespace="default")
            self.uids.add(created["metadata"]["uid"])
            self.alive.add(name)

    async def _remove(self, name: str) -> None:
        self.alive.discard(name)  # whether or not the request arrives, it may go from now on
        with contextlib.suppress(ApiError):
            await self.client.delete(PODS, name, namespace="default")

    # Death

    def daemon(self) -> int:
        found = endpoint.find(self.data)
        assert found is not None
        return found.pid

    def pods_on_disk(self) -> list[tuple[Path, Object]]:
        folders = list((self.data / "pods").iterdir()) if (self.data / "pods").exists() else []
        return [(folder, state) for folder in folders if (state := wire.read_json(str(folder / wire.STATUS)))]

    async def kill_control_plane(self) -> None:
        await end(self.daemon())
        await self.client.close()
        await self.up()

    async def kill_process_group(self) -> None:
        pid = self.daemon()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        await end(pid)
        await self.client.close()
        await self.up()

    async def kill_zygote(self) -> None:
        for child in processes.children(self.daemon()):
            if b"zygote" in Path(f"/proc/{child}/cmdline").read_bytes():
                await end(child)

    async def kill_shim(self) -> None:
        await self._hit(lambda state: state["shim"]["pid"])

    async def kill_container(self) -> None:
        await self._hit(lambda state: state["containers"]["main"]["pid"])

    async def _hit(self, victim: Callable[[Object], int]) -> None:
        """One process of a pod that has not been hit before: twice in a row would be a matter of back-off."""
        choices = []
        for folder, state in self.pods_on_disk():
            name = str((wire.read_json(str(folder / wire.SPEC)) or {}).get("name"))
            main = (state.get("containers") or {}).get("main")
            if name in self.alive - self.hit and main and main["pid"]:
                choices.append((name, victim(state), int(main["pid"])))
        if choices:
            name, pid, first = self.rng.choice(choices)
            self.hit.add(name)
            await end(pid)
            await end(first)  # which goes with its shim

    async def power_cut(self) -> None:
        """Every process goes; the disk stays."""
        pid = self.daemon()
        _kill([pid, *processes.children(pid), *(state["shim"]["pid"] for _, state in self.pods_on_disk())])
        await end(pid)
        await eventually(lambda: not _kill(self.strays()))  # again: what was killed may just have made a child
        self.hit |= self.alive
        await self.client.close()
        await self.up()

    # Truth

    async def settle(self) -> float:
        """Seconds until all that was acknowledged is Ready and nothing else is there, and each tells of what runs."""
        began = asyncio.get_running_loop().time()

        async def true() -> bool:
            pods = (await self.client.list(PODS, "default")).items
            ready = {pod["metadata"]["name"] for pod in pods if is_ready(pod)}
            going = {pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")}
            unsure = {pod["metadata"]["name"] for pod in pods} - self.alive - going
            for name in unsure:  # made, or not yet removed, when nobody was there to answer
                await self._remove(name)
            return self.alive <= ready and not unsure and not going and self._tell_the_truth(pods)

        await eventually(true, what=f"{sorted(self.alive)} are ready and alone")
        return asyncio.get_running_loop().time() - began

    def _tell_the_truth(self, pods: list[Object]) -> bool:
        """Whether each counts the restarts of the run whose process lives."""
        runs = {folder.name: (state.get("containers") or {}).get("main") for folder, state in self.pods_on_disk()}
        return all(
            run and run["attempt"] == state_of(pod)["restartCount"] and not processes.is_zombie(run["pid"])
            for pod, run in ((pod, runs.get(pod["metadata"]["uid"])) for pod in pods)
        )

    async def check(self) -> None:
        assert not (self.out / "twice").exists(), (self.out / "twice").read_text()
        for pod in (await self.client.list(PODS, "default")).items:
            name, restarts = pod["metadata"]["name"], state_of(pod)["restartCount"]
            assert restarts <= (1 if name in self.hit else 0), f"{name} was restarted {restarts} times"
            starts = len((self.out / name).read_text().splitlines()) if (self.out / name).exists() else 0
            assert starts <= restarts + 1, f"{name} started {starts} times, and tells of {restarts} restarts"

    def strays(self) -> list[int]:
        marks = {f"{processes.POD_MARK}={uid}".encode() for uid in self.uids}
        return [pid for pid in processes.all_pids() if any(processes.environment_has(pid, (mark,)) for mark in marks)]

    async def leave(self) -> None:
        """Remove everything, and look what is left."""
        for pod in (await self.client.list(PODS, "default")).items:
            with contextlib.suppress(NotFound):
                await self.client.delete(PODS, pod["metadata"]["name"], namespace="default")
        self.alive.clear()
        await self.settle()
        await eventually(lambda: not list((self.data / "pods").iterdir()))
        await eventually(lambda: not self.strays())
        assert str(self.data) not in Path("/proc/self/mountinfo").read_text()


def _kill(pids: list[int]) -> list[int]:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


async def end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    await eventually(lambda: processes.is_zombie(pid))


@contextlib.asynccontextmanager
async def platform_under_kills(folder: Path, seed: int) -> AsyncIterator[PlatformUnderKills]:
    world = PlatformUnderKills(folder, random.Random(seed))
    await world.up()
    try:
        yield world
    finally:
        await world.down()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PlatformUnderKills]:
    async with platform_under_kills(tmp_path, 20) as world:
        yield world


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("rounds", [pytest.param(7, id="every death"), pytest.param(200, marks=pytest.mark.soak)])
async def test_whatever_is_killed_no_pod_is_lost_or_runs_twice(world: PlatformUnderKills, rounds: int) -> None:
    deaths = [world.kill_shim, world.kill_container, world.kill_zygote, world.kill_process_group]
    deaths += [world.kill_control_plane, world.kill_shim, world.kill_container]
    world.rng.shuffle(deaths)
    for number in range(rounds):
        load = asyncio.create_task(world.churn())
        await asyncio.sleep(world.rng.uniform(0.05, 0.5))  # the moment of the kill, not a wait for anything
        await deaths[number % len(deaths)]()
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        seconds = await world.settle()
        await world.check()
        assert seconds < TRUE_AGAIN, f"round {number}: statuses were true again after {seconds:.1f} s"
    await world.leave()


async def test_after_a_power_cut_everything_comes_back(world: PlatformUnderKills) -> None:
    load = asyncio.create_task(world.churn())
    await eventually(lambda: len(world.alive) == MOST_PODS)
    load.cancel()
    await asyncio.gather(load, return_exceptions=True)
    await world.settle()
    await world.power_cut()

    async def restarted() -> bool:
        pods = (await world.client.list(PODS, "default")).items
        return all(state_of(pod)["restartCount"] for pod in pods)

    await eventually(restarted)  # at first the statuses are those from before the cut
    await world.settle()
    await world.check()
    pods = (await world.client.list(PODS, "default")).items
    assert {state_of(pod)["lastState"]["terminated"]["exitCode"] for pod in pods} == {137}
    await world.leave()
