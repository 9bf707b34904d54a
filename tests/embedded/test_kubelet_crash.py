"""`kill -9` of the control plane, of shims, of everything: no pod is lost, none runs twice, none is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import unit.local.kubelet.control_plane
from harness import PATIENCE, eventually
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.kubelet.node.node import NodeConfig
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.shim import processes, wire
from unit.local.kubelet.machine import NODE, TestMachine, is_ready, running_machine, shell_pod, state_of


class Doomed:
    """A control plane that will be killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def create(self, *pods: Object) -> None:
        assert self.process.stdin is not None
        for pod in pods:
            self.process.stdin.write(json.dumps(pod).encode() + b"\n")
        await self.process.stdin.drain()

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@contextlib.asynccontextmanager
async def control_plane(data: Path) -> AsyncIterator[Doomed]:
    program = unit.local.kubelet.control_plane.__file__
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, str(data), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"ready\n"
        yield Doomed(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        # Closed here, not by the garbage collector after the loop.
        process._transport.close()  # type: ignore[attr-defined]


def counting_pod(name: str, folder: Path, *, then: str, policy: str = "Always") -> Object:
    """Every start of its program leaves a line, so one too many is seen."""
    return shell_pod(
        f"echo start >> /out/{name}; {then}",
        name=name,
        policy=policy,
        container={"volumeMounts": [{"name": "out", "mountPath": "/out"}]},
        volumes=[{"name": "out", "hostPath": {"path": str(folder)}}],
    )


def count(folder: Path, name: str) -> int:
    file = folder / name
    return len(file.read_text().splitlines()) if file.exists() else 0


async def test_pods_outlive_a_killed_control_plane_and_are_found_again(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    async with control_plane(data) as doomed:
        wait = "while [ ! -e /out/go ]; do sleep 0.02; done; exit 5"
        await doomed.create(
            *(counting_pod(f"p{n}", out, then=wait, policy="Never") for n in range(3)),
            counting_pod("long", out, then="sleep 600"),
        )
        await eventually(lambda: all(count(out, name) for name in ("p0", "p1", "p2", "long")))
        await doomed.kill()
    (out / "go").touch()  # they end while nobody looks
    async with running_machine(data) as machine:
        for number in range(3):
            pod = await machine.phase(f"p{number}", "Failed")
            assert state_of(pod)["state"]["terminated"]["exitCode"] == 5
        long = await machine.until("long", is_ready)
        assert state_of(long)["restartCount"] == 0
    assert [count(out, name) for name in ("p0", "p1", "p2", "long")] == [1, 1, 1, 1]


async def test_after_a_power_cut_pods_start_again_by_their_policy(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    async with control_plane(data) as doomed:
        await doomed.create(
            counting_pod("again", out, then="sleep 600"),
            counting_pod("once", out, then="sleep 600", policy="Never"),
        )
        await eventually(lambda: count(out, "again") and count(out, "once"))
        shims = [wire.lock_holder(str(folder)) for folder in (data / "pods").iterdir()]
        await doomed.kill()
        for shim in shims:
            os.kill(shim or 0, signal.SIGKILL)
    async with running_machine(data) as machine:
        await machine.until("again", lambda pod: state_of(pod).get("restartCount") == 1 and is_ready(pod))
        once = await machine.phase("once", "Failed")
        assert state_of(once)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
        await eventually(lambda: count(out, "again") > 1)
    assert (count(out, "again"), count(out, "once")) == (2, 1)


async def test_a_pod_deleted_by_force_while_nobody_looked_is_cleared_away(tmp_path: Path) -> None:
    async with running_machine(tmp_path) as machine:
        pod = await machine.run("echo up; sleep 600")
        await machine.printed("pod", "up")
        shim = wire.lock_holder(str(machine.pod_dir(pod)))
        assert shim is not None
        await machine.kubelet.stop()
        await machine.client.delete(PODS, "pod", namespace="default", grace_period=0)
        await machine.start_kubelet()
        await eventually(lambda: not machine.pod_dir(pod).exists())
        assert not Path(f"/proc/{shim}").exists() or processes.is_zombie(shim)


async def test_pods_of_a_lost_node_run_on_and_are_found_when_it_comes_back(tmp_path: Path) -> None:
    async with running_machine(tmp_path) as machine:
        pod = await machine.run("echo up; sleep 600")
        await machine.printed("pod", "up")
        shim = wire.lock_holder(str(machine.pod_dir(pod)))
        await machine.kubelet.remove_node(NODE)
        assert machine.kubelet.worker("default", "pod") is None
        assert wire.lock_holder(str(machine.pod_dir(pod))) == shim
        await machine.kubelet.add_node(NodeConfig(NODE))
        await eventually(lambda: machine.kubelet.worker("default", "pod"))
        assert await machine.exec("pod", "echo", "here") == (0, "here\n")
        assert wire.lock_holder(str(machine.pod_dir(pod))) == shim


async def test_deletion_asked_for_while_nobody_looked_is_carried_out(tmp_path: Path) -> None:
    async with running_machine(tmp_path) as machine:
        await machine.run("trap 'exit 0' TERM; echo up; while :; do sleep 0.02; done")
        await machine.printed("pod", "up")
        await machine.kubelet.stop()
        await machine.client.delete(PODS, "pod", namespace="default")
        await machine.start_kubelet()
        await machine.gone("pod")


async def test_the_status_of_a_ready_pod_stays_as_it_is_when_the_kubelet_restarts(tmp_path: Path) -> None:
    async with running_machine(tmp_path) as machine:
        probe = {"exec": {"command": ["true"]}, "periodSeconds": 60}
        await machine.run("sleep 600", container={"readinessProbe": probe, "startupProbe": probe})
        before = await machine.until("pod", is_ready)
        await machine.kubelet.stop()
        await machine.start_kubelet()
        await machine.run("true", name="other")
        await machine.phase("other", "Succeeded")  # by now the first pod was looked at
        after = await machine.client.get(PODS, "pod", "default")
        assert after["status"] == before["status"]


async def test_a_machine_switched_off_leaves_no_process_and_comes_back(tmp_path: Path) -> None:
    async with running_machine(tmp_path) as machine:
        pod = await machine.run("echo up; sleep 600", policy="Always")
        await machine.printed("pod", "up")
        await machine.kubelet.stop(pods=True)
        assert wire.lock_holder(str(machine.pod_dir(pod))) is None
        assert list(processes.strays(pod["metadata"]["uid"])) == []
        await machine.start_kubelet()
        again = await machine.until("pod", lambda pod: state_of(pod).get("restartCount") == 1 and is_ready(pod))
        assert again["status"]["podIP"] == pod.get("status", {}).get("podIP", again["status"]["podIP"])


async def test_a_pod_that_may_not_be_restarted_failed_with_its_node_when_the_machine_was_switched_off(
    tmp_path: Path,
) -> None:
    async with running_machine(tmp_path) as machine:
        await machine.run("trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done", policy="Never")
        await machine.printed("pod", "up")
        await machine.kubelet.stop(pods=True)
        await machine.start_kubelet()
        pod = await machine.phase("pod", "Failed")
        assert pod["status"]["reason"] == "Terminated"
        (doom,) = [c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert (doom["status"], doom["reason"]) == ("True", "TerminationByKubelet")
        assert state_of(pod)["state"]["terminated"]["reason"] == "NodeShutdown"


# Statuses are true again by news, not by time


def stopped_clock() -> FakeClock:
    """No delay, period or patience of the kubelet ever ends: what it reports after a kill it learned from the kill.

    So statuses are as late as the machine is busy, and no later. `python -m bench kills` has the seconds.
    """
    return FakeClock(start=time.time())


def container(record: Object) -> list[int]:
    return [int(record["containers"]["main"]["pid"])]


def shim(record: Object) -> list[int]:
    return [int(record["shim"]["pid"])]


def whole_pod(record: Object) -> list[int]:
    return [*shim(record), *processes.descendants(*shim(record))]


PARTS = (container, shim, whole_pod)
part = pytest.mark.parametrize("victims", PARTS, ids=lambda victims: victims.__name__)


def kill(machine: TestMachine, pod: Object, victims: Callable[[Object], list[int]]) -> None:
    record = wire.read_json(str(machine.pod_dir(pod) / wire.STATUS))
    assert record is not None
    for pid in victims(record):
        processes.send(pid, signal.SIGKILL)  # some go with the first


def runs_again(pod: Object) -> bool:
    return state_of(pod).get("restartCount") == 1 and is_ready(pod)


@part
async def test_a_killed_part_is_noticed_by_its_death(tmp_path: Path, victims: Callable[[Object], list[int]]) -> None:
    async with running_machine(tmp_path, clock=stopped_clock()) as machine:
        pod = await machine.run("echo up; sleep 600", policy="Always")
        await machine.printed("pod", "up")
        kill(machine, pod, victims)
        pod = await machine.until("pod", runs_again)
        assert state_of(pod)["lastState"]["terminated"]["exitCode"] == 137


async def test_what_was_killed_while_nobody_looked_is_noticed_at_the_start(tmp_path: Path) -> None:
    async with running_machine(tmp_path, clock=stopped_clock()) as machine:
        pods = {victims: await machine.run("echo up; sleep 600", name=f"p{number}", policy="Always")
                for number, victims in enumerate(PARTS)}  # fmt: skip
        for number in range(len(pods)):
            await machine.printed(f"p{number}", "up")
        await machine.kubelet.stop()
        for victims, pod in pods.items():
            kill(machine, pod, victims)
        await machine.start_kubelet()
        for number in range(len(pods)):
            await machine.until(f"p{number}", runs_again)


async def test_a_killed_parent_of_shims_costs_no_pod_and_no_start(tmp_path: Path) -> None:
    async with running_machine(tmp_path, clock=stopped_clock()) as machine:
        await machine.run("echo up; sleep 600", policy="Always")
        await machine.printed("pod", "up")
        zygote = machine.kubelet.machine.zygote
        assert isinstance(zygote, ZygoteClient)
        assert zygote.pid is not None
        os.kill(zygote.pid, signal.SIGKILL)
        await machine.run("true", name="other")
        await machine.phase("other", "Succeeded")
        assert state_of(await machine.client.get(PODS, "pod", "default"))["restartCount"] == 0
