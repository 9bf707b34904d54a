"""A program started by a fork from a warm parent cannot tell that from its own start."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from paddlecloud.local.kubelet.node.zygote_client import ZygoteClient
from paddlecloud.local.kubelet.shim.sandbox import Mount
from unit.local.kubelet.conftest import ShimHarness

from .warm_probes import COLD, MAIN, ORDER_BEGINS, SAME_WARM, TOY, Probe

PYTHONS = {"{other}": sys._base_executable, "{python3}": "python3"}  # type: ignore[attr-defined]


class Run(NamedTuple):
    exit_code: int
    signal: int | None
    stdout: str
    stderr: str
    log: list[tuple[str, str]]
    """Both streams in the order of the log, from where the program says that its order is known."""


class WarmAndCold:
    """One folder with a program, and two ways to start it."""

    def __init__(self, folder: Path, warm: ShimHarness, cold: ShimHarness) -> None:
        self.folder = folder
        self.app = folder
        self.warm, self.cold = warm, cold
        self._serial = itertools.count()

    def write(self, probe: Probe) -> None:
        self.app = self.folder / f"app-{next(self._serial)}"
        (self.app / "sub").mkdir(parents=True)
        (self.app / "shadowed").mkdir()
        (self.app / "shadowed" / "tempfile.py").write_text("def gettempdir(): return 'a folder of its own'\n")
        (self.app / "shadowed" / MAIN).write_text("import toy, tempfile\nprint(tempfile.gettempdir())\n")
        (self.app / "helper.py").write_text("VALUE = 41\n")
        (self.app / MAIN).write_text(f"{probe.before}\nimport toy\nimport sys\n{probe.code}\n")
        (self.app / f"{MAIN}.started").write_text(str(time.time()))
        (self.app / "sub" / "link.py").symlink_to(self.app / MAIN)

    def argv(self, probe: Probe) -> tuple[str, ...]:
        code = f"import toy, sys\n{probe.code}"
        python = PYTHONS.get(probe.argv[0], "python")
        given = (MAIN,) if probe.argv[0] in PYTHONS else probe.argv
        return python, *(word.replace("{code}", code).replace("{folder}", str(self.app)) for word in given)

    async def run(self, harness: ShimHarness, probe: Probe, *, forbid: str = "", **fields: Any) -> tuple[Run, int]:
        """How it ended and what it printed; and how many of its processes imported the module themselves."""
        before = self._imports()
        root = harness.pod_dir(f"pod-{next(self._serial)}", forbid=forbid)
        runtime = await harness.spawn(root)
        env = {**self.env(), **{k: v.replace("{folder}", str(self.folder)) for k, v in probe.env.items()}}
        mine = root / "home"
        mine.mkdir(mode=0o777)
        mounts = (Mount(env["HOME"], str(mine)),)
        fields = {"cwd": str(self.app), "mounts": mounts, "umask": 0o027, **fields}
        await runtime.start(harness.container(root, "", argv=self.argv(probe), env=env, **fields))
        record = await harness.exited(runtime)
        streams = [_printed(root / "logs/main/0.log", name) for name in ("stdout", "stderr")]
        log = _ordered(root / "logs/main/0.log")
        return Run(record["exit_code"], record["signal"], *streams, log), self._imports() - before

    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": str(self.folder / "lib"),
            "PADDLECLOUD_POD_UID": f"{os.getpid()}-warm-or-cold",
            "TOY_FOLDER": str(self.folder),
            "TOY_REMOVED": "x",
        }

    def _imports(self) -> int:
        counter = self.folder / "imports"
        return len(counter.read_text().splitlines()) if counter.exists() else 0


def _chunks(log: Path) -> list[tuple[str, str]]:
    """What was read from which stream. Where a line was cut depends on the moment of reading."""
    lines = [line.split(" ", 3) for line in log.read_text().splitlines(keepends=True)]
    return [(name, text.removesuffix("\n") if tag == "P" else text) for _, name, tag, text in lines]


def _printed(log: Path, stream: str) -> str:
    """To one stream, without the addresses of objects."""
    text = "".join(text for name, text in _chunks(log) if name == stream)
    return re.sub(r"\b0x[0-9a-f]+", "0x", text)


def _ordered(log: Path) -> list[tuple[str, str]]:
    grouped = itertools.groupby(_chunks(log), lambda chunk: chunk[0])
    texts = [(name, "".join(text for _, text in chunks)) for name, chunks in grouped]
    for position, (name, text) in enumerate(texts):
        _, mark, rest = text.partition(f"{ORDER_BEGINS}\n")
        if mark:
            return [(name, rest)] * bool(rest) + texts[position + 1 :]
    return []


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worlds(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WarmAndCold]:
    folder = tmp_path_factory.mktemp("worlds")
    for name in ("lib", "warm", "cold"):
        (folder / name).mkdir()
    (folder / "lib" / "toy.py").write_text(TOY)
    worlds = WarmAndCold(
        folder, ShimHarness(folder / "warm", ZygoteClient()), ShimHarness(folder / "cold", ZygoteClient())
    )
    worlds.warm.zygote = ZygoteClient(python=sys.executable, preload=("toy",), environment=worlds.env())
    assert await worlds.warm.zygote.start()
    yield worlds
    await worlds.warm.close()
    await worlds.cold.close()


@pytest.mark.parametrize("name", SAME_WARM)
async def test_a_program_started_warm_observes_what_one_started_cold_does(worlds: WarmAndCold, name: str) -> None:
    probe = SAME_WARM[name]
    worlds.write(probe)
    cold, imports = await worlds.run(worlds.cold, probe)
    warm, fewer = await worlds.run(worlds.warm, probe)
    assert warm._asdict() == cold._asdict()
    if not (name.endswith(("code", "clusters")) and sys.version_info >= (3, 13)):
        assert fewer == imports - 1, "it was started cold"


async def test_the_order_between_the_streams_is_that_of_the_program(worlds: WarmAndCold) -> None:
    """Which the comparison above rests on: without lines from both it would compare nothing."""
    probe = SAME_WARM["order of the streams, flushed"]
    worlds.write(probe)
    warm, _ = await worlds.run(worlds.warm, probe)
    assert warm.log[:10] == [(f"std{name}", f"{name} {i}\n") for i in range(5) for name in ("out", "err")]


@pytest.mark.parametrize("preload", [(), ("toy",)], ids=["cold", "warm"])
async def test_a_program_ignores_no_signal_because_the_platform_does(
    worlds: WarmAndCold, tmp_path: Path, preload: tuple[str, ...]
) -> None:
    probe = SAME_WARM["signals in /proc"]
    worlds.write(probe)
    expected, _ = await worlds.run(worlds.cold, probe)
    ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)  # as `nohup pdc up &` in a script does
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        zygote = (
            ZygoteClient(python=sys.executable, preload=preload, environment=worlds.env())
            if preload
            else ZygoteClient()
        )
        assert await zygote.start()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    harness = ShimHarness(tmp_path, zygote)
    try:
        found, _ = await worlds.run(harness, probe)
    finally:
        await harness.close()
    assert found == expected


@pytest.mark.parametrize("name", COLD)
async def test_what_a_fork_cannot_do_is_started_cold(worlds: WarmAndCold, name: str) -> None:
    probe = COLD[name]
    worlds.write(probe)
    cold, imports = await worlds.run(worlds.cold, probe)
    assert await worlds.run(worlds.warm, probe) == (cold, imports)


@pytest.mark.parametrize("name", ["streams", "identity", "signals in /proc", "command line in /proc", "modules"])
async def test_a_program_in_a_user_namespace_starts_warm_too(worlds: WarmAndCold, name: str) -> None:
    probe = SAME_WARM[name]
    worlds.write(probe)
    cold, imports = await worlds.run(worlds.cold, probe, forbid="root")
    assert await worlds.run(worlds.warm, probe, forbid="root") == (cold, imports - 1)


async def test_another_user_than_root_starts_cold_because_only_exec_takes_its_capabilities(worlds: WarmAndCold) -> None:
    probe = SAME_WARM["identity"]
    worlds.write(probe)
    cold, imports = await worlds.run(worlds.cold, probe, uid=12345, gid=0)
    assert await worlds.run(worlds.warm, probe, uid=12345, gid=0) == (cold, imports)


async def test_programs_of_one_parent_have_random_states_of_their_own(worlds: WarmAndCold) -> None:
    chance = Probe(
        "import multiprocessing, os, random, uuid\n"
        "print(random.random(), multiprocessing.current_process().authkey.hex(), uuid.uuid4(), os.urandom(8).hex())"
    )
    worlds.write(chance)
    first, fewer = await worlds.run(worlds.warm, chance)
    assert fewer == 0
    second, _ = await worlds.run(worlds.warm, chance)
    printed = [run.stdout.splitlines()[1].split() for run in (first, second)]
    assert all(one != other for one, other in zip(*printed, strict=True))
