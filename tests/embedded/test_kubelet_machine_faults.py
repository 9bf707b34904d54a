"""A machine with many pods, taken ports, orphaned processes, a clock that jumps and a full disk."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness import PATIENCE, eventually, need
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import SystemClock
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.kubelet.shim import processes, wire
from paddlecloud.platform import kubeconfig
from unit.local.kubelet.machine import TestMachine, is_ready, running_machine, shell_pod, state_of

# Many


def proportional_megabytes(pid: int) -> float:
    """Memory of a process, with what it shares counted in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [pytest.param(100, id="100"), pytest.param(500, marks=pytest.mark.soak)])
async def test_many_pods_at_once_run_cost_little_and_leave_nothing(tmp_path: Path, count: int) -> None:
    async with running_machine(tmp_path) as machine:
        waiting = PATIENCE * max(1, count // 50)
        watching = asyncio.create_task(all_ready(machine, count))
        created = await asyncio.gather(*(machine.run("exec sleep 600", name=f"p{n}") for n in range(count)))
        pods = await asyncio.wait_for(watching, waiting)
        assert len({pod["status"]["podIP"] for pod in pods}) == count
        shims = [wire.lock_holder(str(machine.pod_dir(pod))) for pod in created]
        megabytes = sum(proportional_megabytes(shim) for shim in shims if shim) / count
        assert megabytes < 4, f"{megabytes:.1f} MB of memory for the supervisor of each pod"
        for pod in created:
            await machine.client.delete(PODS, pod["metadata"]["name"], namespace="default", grace_period=1)
        marks = {pod["metadata"]["uid"] for pod in created}
        await asyncio.wait_for(emptied(machine), waiting)
        assert not [pid for pid in processes.all_pids() if pod_of(pid) in marks]


async def all_ready(machine: TestMachine, count: int) -> list[Object]:
    ready = {}
    async for event in machine.client.watch(PODS, "default"):
        if is_ready(event.object):
            ready[event.object["metadata"]["name"]] = event.object
        if len(ready) == count:
            return list(ready.values())
    raise AssertionError("the watch ended")


async def emptied(machine: TestMachine) -> None:
    while any((machine.data / "pods").iterdir()):
        await asyncio.sleep(0.02)


def pod_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = entry.decode(errors="replace").partition("=")
            if name == processes.POD_MARK:
                return value
    return ""


# Ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which a program of the machine's owner listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


SERVE = "import http.server; http.server.ThreadingHTTPServer(('{host}', {port}), http.server.SimpleHTTPRequestHandler)"


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
async def test_a_port_that_the_owner_of_the_machine_uses_is_free_in_pods(tmp_path: Path, taken: int, host: str) -> None:
    async with running_machine(tmp_path) as machine:
        program = SERVE.format(host=host, port=taken) + ".serve_forever()"
        probe = {"tcpSocket": {"port": taken}, "periodSeconds": 1}
        await machine.run(f'exec python3 -c "{program}"', container={"readinessProbe": probe})
        pod = await machine.until("pod", is_ready)
        assert state_of(pod)["restartCount"] == 0


async def test_a_port_taken_on_all_addresses_is_a_failure_that_says_so_and_heals(tmp_path: Path) -> None:
    async with running_machine(tmp_path) as machine:
        with socket.socket() as server:
            server.bind(("0.0.0.0", 0))
            server.listen()
            port = server.getsockname()[1]
            probe = {"tcpSocket": {"port": port}, "periodSeconds": 1}
            program = SERVE.format(host="", port=port) + ".serve_forever()"
            await machine.run(
                f'python3 -c "{program}" || {{ until [ -e /tmp/again ]; do sleep 0.02; done; exit 1; }}',
                policy="Always",
                container={"readinessProbe": probe},
            )
            await machine.printed("pod", "Address already in use")
        assert (await machine.exec("pod", "touch", "/tmp/again"))[0] == 0
        # Until then a probe may have reached the other server: pods share the machine's network.
        await machine.until("pod", lambda pod: is_ready(pod) and state_of(pod)["restartCount"] == 1)


# Processes


async def test_orphaned_processes_are_reaped(tmp_path: Path) -> None:
    """The first process of a container rarely waits for orphans; its supervisor does."""
    async with running_machine(tmp_path) as machine:
        orphans = "for i in $(seq 50); do sh -c 'sleep 0.01 & exit' & done; wait; echo forked; exec sleep 600"
        await machine.run(orphans)
        await machine.printed("pod", "forked")
        worker = machine.kubelet.worker("default", "pod")
        assert worker is not None
        shim = worker.shim
        assert shim is not None
        await eventually(lambda: len(list(processes.descendants(shim))) == 1)


# Time


class WrongClock(SystemClock):
    def __init__(self) -> None:
        self.offset = 0.0

    def now(self) -> float:
        return super().now() + self.offset


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0], ids=["forward", "back"])
async def test_a_clock_that_jumps_neither_ends_nor_holds_up_pods(tmp_path: Path, jump: float) -> None:
    clock = WrongClock()
    async with running_machine(tmp_path, clock=clock) as machine:
        await machine.run("echo up; sleep 600", name="before", policy="Always")
        await machine.printed("before", "up")
        clock.offset = jump
        await machine.run("echo up; exit 1", name="failing", policy="Always")
        await machine.until("failing", lambda pod: state_of(pod).get("restartCount", 0) >= 1)
        worker = machine.kubelet.worker("default", "before")
        assert worker is not None
        worker.objects_changed()
        await machine.run("true", name="after")
        await machine.phase("after", "Succeeded")
        before = await machine.client.get(PODS, "before", "default")
        assert (before["status"]["phase"], state_of(before)["restartCount"]) == ("Running", 0)
        await machine.client.delete(PODS, "before", namespace="default", grace_period=1)
        await machine.gone("before")


# Disk


@pytest.fixture
async def small_disk(tmp_path: Path) -> AsyncIterator[tuple[Client, Path]]:
    """A control plane whose data directory is a disk of 24 MB of its own, in its own mount namespace."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    probe = await asyncio.create_subprocess_exec(*unshare, "true", stderr=asyncio.subprocess.DEVNULL)
    need("namespaces", have=await probe.wait() == 0, hint="pdc doctor")
    data = tmp_path / "data"
    data.mkdir()
    program = Path(__file__).parents[1] / "unit" / "local" / "kubelet" / "control_plane.py"
    script = 'mount -t tmpfs -o size=24m,mode=700 disk "$1" && exec "$2" "$3" "$1"'
    process = await asyncio.create_subprocess_exec(
        *unshare, "sh", "-c", script, "sh", str(data), sys.executable, str(program),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"ready\n"
        inside = Path(f"/proc/{process.pid}/root{data}")
        port = int(await asyncio.wait_for(process.stdout.readline(), PATIENCE))
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_for(inside, port))
        client = Client(HttpTransport(config.load(kubeconfig=str(kubeconfig))))
        yield client, inside
        await client.close()
    finally:
        for folder in (Path(f"/proc/{process.pid}/root{data}") / "pods").glob("*"):
            if shim := wire.lock_holder(str(folder)):
                processes.kill_all(lambda shim=shim: (shim, *processes.descendants(shim)))  # type: ignore[misc]
        process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


def kubeconfig_for(data: Path, port: int) -> str:
    ca = base64.b64encode((data / "pki" / "ca.crt").read_bytes()).decode()
    token = (data / "pki" / "admin.token").read_text().strip()
    return json.dumps(kubeconfig.content(url=f"https://127.0.0.1:{port}", ca=ca, token=token))


async def until(client: Client, name: str, condition: Callable[[Object], object]) -> None:
    """By asking again, since a server without room may break off a watch."""

    async def look() -> object:
        with contextlib.suppress(ApiError):
            return condition(await client.get(PODS, name, "default"))
        return False

    await eventually(look, what=name)


async def test_a_full_disk_costs_log_lines_and_writes_but_no_pod(small_disk: tuple[Client, Path]) -> None:
    client, data = small_disk

    await client.create(PODS, shell_pod("exec sleep 600", name="quiet", policy="Always"), namespace="default")
    await until(client, "quiet", is_ready)
    flood = "yes 0123456789012345678901234567890123456789 | head -c 60000000; echo over; exec sleep 600"
    loud = await client.create(PODS, shell_pod(flood, name="loud", policy="Always"), namespace="default")
    await until(client, "loud", is_ready)
    await eventually(lambda: free(data) == 0)
    refused = ""
    for number in range(200):
        try:
            await client.create(PODS, shell_pod("true", name=f"late{number}"), namespace="default")
        except ApiError as error:
            refused = str(error)
            break
    assert "disk" in refused or "space" in refused, refused
    assert is_ready(await client.get(PODS, "quiet", "default"))
    for log in (data / "pods" / loud["metadata"]["uid"] / "logs" / "main").iterdir():
        log.write_bytes(b"")  # somebody makes room
    await eventually(lambda: free(data) > 1 << 20)
    await until(client, "quiet", is_ready)

    async def created() -> bool:
        with contextlib.suppress(ApiError):
            await client.create(PODS, shell_pod("true", name="again"), namespace="default")
            return True
        return False

    await eventually(created)
    await until(client, "again", lambda pod: pod["status"].get("phase") == "Succeeded")
    for name in ("quiet", "loud"):
        assert state_of(await client.get(PODS, name, "default"))["restartCount"] == 0


def free(data: Path) -> int:
    disk = os.statvfs(data)
    return disk.f_bavail * disk.f_frsize
