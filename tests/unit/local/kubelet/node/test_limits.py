"""Whose cgroup may be used, what is written into it, and what the kernel then does.

The last part runs where the platform was given a cgroup (`pdc doctor` says how), or where the tests run as root: then
one is made for each test and removed after it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness import need
from paddlecloud.local.kubelet.node import limits
from paddlecloud.local.kubelet.node.limits import Enforcement, Hierarchy, PodCgroups
from paddlecloud.local.kubelet.shim import cgroups
from paddlecloud.local.kubelet.shim.cgroups import CgroupPath, Limits
from unit.local.kubelet.conftest import ShimHarness, output

from . import cgroup_places

HYBRID_MOUNTS = """\
20 1 0:19 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
21 20 0:20 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
22 20 0:21 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
23 20 0:22 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
24 20 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
HYBRID_MEMBERSHIP = """\
4:memory:/manager/7
3:freezer:/
2:cpu,cpuacct:/
0::/
"""


def test_every_tree_is_found_with_the_place_of_this_process() -> None:
    assert limits.hierarchies(mountinfo=HYBRID_MOUNTS, membership=HYBRID_MEMBERSHIP) == [
        Hierarchy(1, frozenset({"cpu"}), "/sys/fs/cgroup/cpu,cpuacct", "/"),
        Hierarchy(1, frozenset({"memory"}), "/sys/fs/cgroup/memory", "/manager/7"),
        Hierarchy(2, frozenset(), "/sys/fs/cgroup/unified", "/"),
    ]


@pytest.mark.parametrize(
    ("version", "asked", "written"),
    [
        (2, Limits(), {}),
        (
            2,
            Limits(memory=1 << 20, cpu_millis=1500, pids=9),
            {
                ("memory", "memory.max"): "1048576",
                ("memory", "memory.swap.max"): "0",
                ("memory", "memory.oom.group"): "1",
                ("cpu", "cpu.max"): "150000 100000",
                ("pids", "pids.max"): "9",
            },
        ),
        (
            1,
            Limits(memory=1 << 20, cpu_millis=500, pids=9),
            {
                ("memory", "memory.limit_in_bytes"): "1048576",
                ("memory", "memory.memsw.limit_in_bytes"): "1048576",
                ("cpu", "cpu.cfs_period_us"): "100000",
                ("cpu", "cpu.cfs_quota_us"): "50000",
                ("pids", "pids.max"): "9",
            },
        ),
        (1, Limits(cpu_millis=1), {("cpu", "cpu.cfs_period_us"): "100000", ("cpu", "cpu.cfs_quota_us"): "1000"}),
    ],
)
def test_limits_in_the_words_of_each_version(version: int, asked: Limits, written: dict[tuple[str, str], str]) -> None:
    found = {(controller, file): text for controller, file, text, _ in cgroups.settings(version, asked)}
    assert found == written


class Tree:
    """A machine's cgroups as plain directories: enough to decide where pods belong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        self.proc.mkdir()
        self._mounts: list[str] = []
        self._membership: list[str] = []

    def add(self, version: int, controllers: str = "", *, own: str = "/") -> Path:
        mount = self.folder / (controllers or "unified")
        mount.mkdir()
        kind, options = ("cgroup2", "rw") if version == 2 else ("cgroup", f"rw,{controllers}")
        self._mounts.append(f"20 1 0:1 / {mount} rw - {kind} none {options}")
        self._membership.append(f"{0 if version == 2 else 1}:{controllers if version == 1 else ''}:{own}")
        (self.proc / "mountinfo").write_text("\n".join(self._mounts))
        (self.proc / "cgroup").write_text("\n".join(self._membership))
        return mount

    def find(self, **environ: str) -> Enforcement:
        return limits.find(environ=environ, proc=str(self.proc))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def offer(folder: Path, controllers: str = "cpu io memory pids") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    return folder


def test_a_writable_cgroup_is_not_ours_for_that(tree: Tree) -> None:
    """Root may write to all of them: the one that this process is in belongs to the program that put it there."""
    memory = tree.add(1, "memory", own="/manager/7")
    tree.add(1, "cpu")
    found = tree.find()
    assert found.place is None
    assert f"it runs in {memory}/manager/7, {tree.folder}/cpu, which others manage" in found.reason
    assert found.fix == f"sudo install -d -o $USER {tree.folder}/cpu/paddlecloud {memory}/paddlecloud"
    assert found.describe().startswith("memory: watched, cpu: not enforced, pids: watched (no cgroup was given")


def test_a_cgroup_of_our_name_is_ours_in_the_trees_that_have_it(tree: Tree) -> None:
    tree.add(1, "memory", own="/manager/7")
    cpu = tree.add(1, "cpu")
    (cpu / "paddlecloud").mkdir()
    found = tree.find()
    assert found.place == CgroupPath(1, {"cpu": str(cpu / "paddlecloud")})
    assert found.describe() == "memory: watched, cpu: cgroup, pids: watched (memory, pids not available there)"


def test_another_name_can_be_given(tree: Tree) -> None:
    mount = offer(tree.add(2))
    mine = offer(mount / "mine")
    assert tree.find().place is None
    found = tree.find(PADDLECLOUD_CGROUP="/mine")
    assert found.place == CgroupPath(2, {"cpu": str(mine), "memory": str(mine), "pids": str(mine)})
    assert found.describe() == "memory: cgroup, cpu: cgroup, pids: cgroup"


def test_the_own_cgroup_is_ours_once_its_manager_gave_it_away(tree: Tree) -> None:
    mount = offer(tree.add(2, own="/user.slice/run-1.scope"))
    scope = offer(mount / "user.slice" / "run-1.scope", "memory pids")
    assert tree.find().place is None
    try:
        os.setxattr(scope, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"this file system keeps no attributes: {error}")
    found = tree.find()
    assert found.own
    assert found.place == CgroupPath(2, {"memory": str(scope), "pids": str(scope)})
    assert "cpu not available" in found.reason
    (tree.proc / "cgroup").write_text("0::/user.slice/run-1.scope/control")  # where the first platform moved itself
    assert tree.find() == found


def test_switched_off_is_said(tree: Tree) -> None:
    (tree.add(1, "memory") / "paddlecloud").mkdir()
    found = limits.find(environ={}, proc=str(tree.proc), forbid="user,cgroups")
    assert (found.place, found.reason) == (None, "cgroups are switched off")


@pytest.mark.parametrize(
    ("root", "systemd", "fix"),
    [
        (True, True, "systemd-run --scope -p Delegate=yes pdc up"),
        (False, True, "systemd-run --user --scope -p Delegate=yes pdc up"),
        (
            True,
            False,
            "sudo sh -c 'echo +cpu +memory +pids > {mount}/cgroup.subtree_control; mkdir {mount}/paddlecloud'",
        ),
    ],
)
def test_the_command_that_would_give_one(tmp_path: Path, root: bool, systemd: bool, fix: str) -> None:
    mount = offer(tmp_path / "unified")
    trees = [Hierarchy(2, frozenset(), str(mount), "/")]
    running = tmp_path if systemd else tmp_path / "none"
    assert limits.fix_for(trees, root=root, systemd=str(running)) == fix.format(mount=mount)


def test_a_place_that_cannot_be_used_is_reported_and_left(tmp_path: Path) -> None:
    """It was there when it was looked for; now the kernel refuses (here: plain files, no controllers)."""
    place = CgroupPath(2, {"memory": str(tmp_path / "gone")})
    pods = PodCgroups(Enforcement(place), data="/data")
    pods.start()
    assert pods.enforcement.place is None
    assert "cannot be used" in pods.enforcement.reason
    assert pods.pod("uid") is None


# What the kernel does


@pytest.fixture
def lent() -> Iterator[Enforcement]:
    """The cgroup that the platform was given here; else one that root makes for the test and removes after it."""
    found = limits.find()
    made: list[str] = []
    if found.place is None:
        for tree in cgroup_places.trees():
            with contextlib.suppress(OSError):
                os.mkdir(path := os.path.join(tree.mount, cgroup_places.NAME))
                made.append(path)
        found = limits.find(environ={limits.NAME_VARIABLE: cgroup_places.NAME}) if made else found
    need("cgroup", have=found.place is not None, hint=f"{found.reason}; to give it one: {found.fix}")
    yield found
    for path in made:
        os.rmdir(path)


@pytest.fixture
async def given(shims: ShimHarness, lent: Enforcement) -> AsyncIterator[PodCgroups]:
    async with cgroup_places.lent_to_pods(lent, shims) as pods:
        yield pods


BOMB = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo all; wait"


async def test_the_kernel_ends_a_container_over_its_memory_limit(given: PodCgroups, shims: ShimHarness) -> None:
    root = shims.pod_dir(cgroup=given.pod("memory"))
    runtime = await shims.spawn(root)
    hungry = "a = bytearray(200 << 20); print('survived')"
    await runtime.start(shims.container(root, "", argv=("python3", "-c", hungry), memory_limit=48 << 20))
    record = await shims.exited(runtime)
    assert (record["exit_code"], record["reason"]) == (137, "OOMKilled")
    assert "its limit of 48Mi" in record["message"]
    assert "survived" not in output(root)


async def test_a_processor_limit_is_a_share_of_time(given: PodCgroups, shims: ShimHarness) -> None:
    root = shims.pod_dir(cgroup=given.pod("cpu"))
    runtime = await shims.spawn(root)
    busy = (
        "import time\nbegan, used = time.monotonic(), time.process_time()\n"
        "while time.monotonic() - began < 2: pass\nprint((time.process_time() - used) / 2)"
    )
    await runtime.start(shims.container(root, "", argv=("python3", "-c", busy), cpu_millis=200))
    await shims.exited(runtime)
    assert 0.05 < float(output(root)) < 0.4


async def test_a_pod_has_no_more_processes_than_it_may(given: PodCgroups, shims: ShimHarness) -> None:
    root = shims.pod_dir(cgroup=given.pod("pids"), pids_limit=40)
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, BOMB))
    record = await shims.exited(runtime)
    assert record["exit_code"] != 0
    assert "all" not in output(root)
    assert "fork" in output(root).lower()


async def test_what_is_run_beside_a_container_shares_its_limits(given: PodCgroups, shims: ShimHarness) -> None:
    from paddlecloud.local.kubelet.streams.execs import run_exec

    place = given.pod("exec")
    assert place is not None
    root = shims.pod_dir(cgroup=place)
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "exec sleep 60"))
    first = (await shims.running(runtime))["pid"]
    began = time.monotonic()
    code, text = await run_exec(root, "main", ["sh", "-c", "echo $$; cat /proc/self/cgroup"], timeout=10)
    assert (code, time.monotonic() - began < 10) == (0, True)
    assert "/main.0" in text
    assert cgroups.members(place.below("main.0")) == [first]
