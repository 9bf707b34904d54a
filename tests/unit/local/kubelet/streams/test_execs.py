"""Programs run beside a container: in its root, with its environment, over pipes or a terminal."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from harness import PATIENCE
from paddlecloud.local.kubelet.pod.runtime import ShimError
from paddlecloud.local.kubelet.shim.sandbox import Mount
from paddlecloud.local.kubelet.streams.execs import ExecSession, open_exec, run_exec
from unit.local.kubelet.conftest import ShimHarness


async def pod_with_volume(shims: ShimHarness, tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "file").write_text("in the volume\n")
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    mounts = (Mount("/data/deep", str(tmp_path / "volume")),)
    await runtime.start(shims.container(root, "sleep 600", mounts=mounts, env={"OWN": "value"}))
    await shims.running(runtime)
    return root


async def everything(session: ExecSession) -> tuple[dict[str, bytes], int]:
    found = {"stdout": b"", "stderr": b""}

    async def collect() -> int:
        while (piece := await session.read()) is not None:
            found[piece.stream] += piece.data
        return await session.wait()

    code = await asyncio.wait_for(collect(), PATIENCE)
    await session.close()
    return found, code


async def test_it_sees_the_containers_root_and_environment(shims: ShimHarness, tmp_path: Path) -> None:
    root = await pod_with_volume(shims, tmp_path)
    command = ["sh", "-c", "cat /data/deep/file; echo $OWN; hostname; echo no >&2; exit 5"]
    found, code = await everything(open_exec(root, "main", command))
    assert found == {"stdout": b"in the volume\nvalue\nhost-pod\n", "stderr": b"no\n"}
    assert code == 5


async def test_standard_input_is_carried_and_ended(shims: ShimHarness, tmp_path: Path) -> None:
    session = open_exec(await pod_with_volume(shims, tmp_path), "main", ["md5sum"], stdin=True)
    for _ in range(40):
        await session.write(b"x" * 50_000)  # more than a pipe holds
    session.close_stdin()
    found, code = await everything(session)
    assert found["stdout"].split()[0].decode() == hashlib.md5(b"x" * 2_000_000).hexdigest()
    assert code == 0


async def test_a_terminal_is_one_and_has_the_size_given(shims: ShimHarness, tmp_path: Path) -> None:
    root = await pod_with_volume(shims, tmp_path)
    session = open_exec(root, "main", ["sh", "-c", "read go; tty -s && stty size; exit 3"], stdin=True, tty=True)
    session.resize(120, 33)
    await session.write(b"go\n")
    found, code = await everything(session)
    assert b"33 120" in found["stdout"]
    assert code == 3


async def test_a_program_that_is_not_there_says_so(shims: ShimHarness, tmp_path: Path) -> None:
    found, code = await everything(open_exec(await pod_with_volume(shims, tmp_path), "main", ["nothing-here"]))
    assert b'exec: "nothing-here": executable file not found in $PATH' in found["stderr"]
    assert code == 128


async def test_it_ends_with_its_session(shims: ShimHarness, tmp_path: Path) -> None:
    session = open_exec(await pod_with_volume(shims, tmp_path), "main", ["sh", "-c", "echo $$; sleep 600"])
    piece = await asyncio.wait_for(session.read(), PATIENCE)
    assert piece is not None
    pid = int(piece.data)
    handle = os.pidfd_open(pid)
    await session.close()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), PATIENCE)
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


async def test_a_container_that_does_not_run_is_refused(shims: ShimHarness, tmp_path: Path) -> None:
    root = await pod_with_volume(shims, tmp_path)
    with pytest.raises(ShimError, match="container other is not running"):
        await run_exec(root, "other", ["true"], timeout=PATIENCE)


async def test_one_that_takes_too_long_is_ended(shims: ShimHarness, tmp_path: Path) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await run_exec(await pod_with_volume(shims, tmp_path), "main", ["sleep", "600"], timeout=0.1)
