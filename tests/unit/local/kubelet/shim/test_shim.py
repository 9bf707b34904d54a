"""A pod's supervisor with real processes: starting, output, ending, and outliving the process that started it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.pod.runtime import PodRuntime, ShimError, last_state
from paddlecloud.local.kubelet.shim import processes, wire
from unit.local.kubelet.conftest import ShimHarness, output


async def gone(pid: int) -> None:
    """Wait for the end of a process that may be nobody's child here."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), PATIENCE)
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def test_a_container_reports_its_exit_code_and_all_its_output(shims: ShimHarness) -> None:
    record, text = await shims.run("echo out; echo err >&2; exit 3")
    assert (record["exit_code"], record["reason"]) == (3, "Error")
    assert sorted(text.split()) == ["err", "out"]


async def test_a_container_ended_by_a_signal_says_which(shims: ShimHarness) -> None:
    record, _ = await shims.run("kill -SEGV $$")
    assert (record["exit_code"], record["signal"]) == (139, 11)


async def test_a_program_that_does_not_exist_is_a_start_error_with_its_name(shims: ShimHarness) -> None:
    record, _ = await shims.run("", argv=("no-such-program",))
    assert (record["exit_code"], record["reason"]) == (128, "StartError")
    assert record["message"] == 'exec: "no-such-program": executable file not found in $PATH'
    assert record["started"] is None


async def test_a_missing_working_directory_is_named(shims: ShimHarness) -> None:
    record, _ = await shims.run("true", cwd="/no/such/place")
    assert record["message"].startswith("working directory /no/such/place")


async def test_an_attempt_ordered_twice_runs_once(shims: ShimHarness, tmp_path: Path) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    spec = shims.container(root, f"echo run >> {tmp_path}/count")
    await runtime.start(spec)
    await runtime.start(spec)
    await shims.exited(runtime)
    await runtime.start(spec)
    await runtime.start(spec._replace(attempt=1, log_path=str(root / "logs/main/1.log")))
    await shims.exited(runtime, attempt=1)
    assert (tmp_path / "count").read_text() == "run\nrun\n"
    assert runtime.state["previous"]["main"]["attempt"] == 0


async def test_a_pod_directory_has_one_shim(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    first = await shims.spawn(root)
    await first.ready.wait()
    second = await PodRuntime.spawn(root, shims.zygote)
    await asyncio.wait_for(second.closed(), PATIENCE)
    assert first.connected
    assert wire.lock_holder(str(root)) == first.state["shim"]["pid"]


async def test_stopping_asks_first_and_kills_after_the_grace_period(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done"))
    await shims.running(runtime)
    await wait_for_output(root, "up")
    await runtime.stop("main", grace=PATIENCE)
    assert (await shims.exited(runtime))["exit_code"] == 7

    stubborn = shims.container(root, "trap '' TERM; echo up; while :; do sleep 0.01; done", name="stubborn")
    await runtime.start(stubborn)
    await wait_for_output(root, "up", name="stubborn")
    await runtime.stop("stubborn", grace=0.2)
    assert (await shims.exited(runtime, "stubborn"))["exit_code"] == 137


async def wait_for_output(root: Path, text: str, *, name: str = "main") -> None:
    await eventually(lambda: output(root, name), lambda printed: text in printed)


async def test_everything_a_container_started_ends_with_it(shims: ShimHarness, tmp_path: Path) -> None:
    """Also what left its session and its parent."""
    record, text = await shims.run("setsid sh -c 'echo $$; exec sleep 600' & (sleep 600 & echo $!); sleep 0.2")
    assert record["exit_code"] == 0
    for pid in map(int, text.split()):
        await gone(pid)


async def test_a_shim_that_is_asked_to_end_goes_last(shims: ShimHarness) -> None:
    """Who waits for it waits for all that it had; much memory takes its time to die."""
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    large = "import time; a = bytearray(b'x') * (256 << 20); print('up', flush=True); time.sleep(600)"
    await runtime.start(shims.container(root, f'setsid -f sleep 600; exec python3 -c "{large}"'))
    await eventually(lambda: output(root) == "up\n")
    pids = list(processes.descendants(runtime.state["shim"]["pid"]))
    assert len(pids) == 2
    await runtime.shutdown()
    assert [pid for pid in pids if os.path.exists(f"/proc/{pid}")] == []


async def test_containers_of_one_pod_do_not_end_each_other(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "sleep 600 & wait", name="long"))
    await shims.running(runtime, "long")
    await runtime.start(shims.container(root, "sleep 600 & true", name="short"))
    await shims.exited(runtime, "short")
    assert runtime.state["containers"]["long"]["phase"] == "running"
    assert len(list(processes.descendants(runtime.state["containers"]["long"]["pid"]))) == 1


async def test_a_pod_outlives_its_kubelet_and_is_found_again(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "read line < /dev/null; while [ ! -e /tmp/go ]; do sleep 0.01; done"))
    pid = (await shims.running(runtime))["pid"]
    await runtime.detach()
    await shims.zygote.stop()

    again = await shims.attach(root)
    assert again is not None
    assert again.state["containers"]["main"]["pid"] == pid
    await again.stop("main", grace=PATIENCE)
    assert (await shims.exited(again))["exit_code"] == 143


async def test_a_killed_zygote_is_replaced_and_its_shims_live_on(shims: ShimHarness) -> None:
    first = await shims.spawn(shims.pod_dir("first"))
    await first.ready.wait()
    assert shims.zygote.pid is not None
    os.kill(shims.zygote.pid, signal.SIGKILL)
    await gone(shims.zygote.pid or 0)
    second = await shims.spawn(shims.pod_dir("second"))
    await asyncio.wait_for(second.ready.wait(), PATIENCE)
    assert first.connected
    assert second.connected


async def test_a_killed_shim_takes_its_containers_along_and_leaves_its_record(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "sleep 600 & wait"))
    pid = (await shims.running(runtime))["pid"]
    os.kill(runtime.state["shim"]["pid"], signal.SIGKILL)
    await asyncio.wait_for(runtime.closed(), PATIENCE)
    await gone(pid)
    assert wire.lock_holder(str(root)) is None
    assert await PodRuntime.attach(root) is None
    processes.kill_all(lambda: processes.strays(shims.uid("pod")))
    state = last_state(root)
    assert state is not None
    assert state["containers"]["main"]["phase"] == "running"


async def test_orders_to_a_shim_that_is_gone_say_so(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    await runtime.ready.wait()
    await runtime.shutdown()
    with pytest.raises(ShimError) as caught:
        await runtime.start(shims.container(root, "true"))
    assert caught.value.lost


async def test_a_container_over_its_memory_limit_is_ended_as_oom_killed(shims: ShimHarness) -> None:
    grow = "import time; kept = b'x' * (64 << 20); time.sleep(600)"
    record, _ = await shims.run("", argv=("/usr/bin/env", "python3", "-c", grow), memory_limit=32 << 20)
    assert (record["reason"], record["exit_code"]) == ("OOMKilled", 137)
    assert "Mi of memory; its limit is 32Mi" in record["message"]


async def test_a_container_inherits_nothing_but_its_standard_streams(shims: ShimHarness) -> None:
    """A control socket in a container would let it give orders to its own shim."""
    _, text = await shims.run("ls /proc/$$/fd")
    assert text.split() == ["0", "1", "2"]


async def test_the_zygote_starts_without_the_platforms_imports() -> None:
    """What it imports every pod pays for in memory."""
    zygote = ZygoteClient()
    await zygote.start()
    try:
        libraries = Path(f"/proc/{zygote.pid}/maps").read_text()
        assert "msgspec" not in libraries
        assert "aiohttp" not in libraries
    finally:
        await zygote.stop()


async def test_a_crowd_of_processes_ends_with_its_container_and_leaves_no_zombies(shims: ShimHarness) -> None:
    """Each forks in its own session; the shim stops them before it kills, so none escapes by forking."""
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    breed = "for i in $(seq 60); do setsid sh -c 'sleep 600 & sleep 600' & done; echo bred; sleep 600"
    await runtime.start(shims.container(root, breed))
    await wait_for_output(root, "bred")
    await runtime.stop("main", grace=0)
    assert (await shims.exited(runtime))["exit_code"] == 137
    shim = runtime.state["shim"]["pid"]
    await eventually(lambda: list(processes.descendants(shim)), [])
