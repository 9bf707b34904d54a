"""Version 2 of cgroups where this machine gives memory, cpu and pids to version 1, as some do: in two halves.

What the tree itself does (places for pods and containers, joining, moving out of the way of one's own children, ending
everything in one at once, removal) is seen on the kernel's own version 2, with whatever controller it has to spare.
What is written into files of memory, cpu and pids, and read from them, is seen on plain files of the same names. Where
version 2 has all three, `test_limits` sees both halves together.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness import eventually, need, until
from paddlecloud.local.kubelet.node.limits import Enforcement, PodCgroups
from paddlecloud.local.kubelet.shim import cgroups
from paddlecloud.local.kubelet.shim.cgroups import CgroupPath, Limits
from unit.local.kubelet.conftest import ShimHarness, output

from . import cgroup_places


def _unified() -> tuple[str, list[str]]:
    """Where version 2 is mounted and which of its controllers children may have."""
    for tree in cgroup_places.trees():
        if tree.version == 2:
            return tree.mount, Path(tree.mount, "cgroup.subtree_control").read_text().split()
    return "", []


@pytest.fixture
def place() -> Iterator[CgroupPath]:
    """A cgroup of the real version 2, for this test alone."""
    mount, controllers = _unified()
    path = os.path.join(mount, cgroup_places.NAME)
    can = bool(controllers) and os.access(mount, os.W_OK)
    need("cgroup2", have=can, hint="root, and a mounted cgroup2 whose cgroup.subtree_control names a controller")
    os.mkdir(path)
    yield CgroupPath(2, {controllers[0]: path})
    left = [folder for folder, _, _ in os.walk(path)]
    cgroups.remove(CgroupPath(2, {"": path}))
    assert left == [path], "something was left behind"


@pytest.fixture
async def given(shims: ShimHarness, place: CgroupPath) -> AsyncIterator[PodCgroups]:
    async with cgroup_places.lent_to_pods(Enforcement(place), shims) as pods:
        yield pods


async def test_a_container_and_what_is_run_beside_it_share_a_place_of_their_own(
    given: PodCgroups, shims: ShimHarness
) -> None:
    from paddlecloud.local.kubelet.streams.execs import run_exec

    pod = given.pod("uid")
    assert pod is not None
    root = shims.pod_dir(cgroup=pod)
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "exec sleep 60"))
    first = (await shims.running(runtime))["pid"]
    code, text = await run_exec(root, "main", ["cat", "/proc/self/cgroup"], timeout=10)
    mine = next(line for line in text.splitlines() if line.startswith("0::"))
    assert (code, mine.endswith("/uid/main.0")) == (0, True)
    assert cgroups.members(pod.below("main.0")) == [first]


async def test_a_crowd_that_left_its_parents_ends_with_its_container(given: PodCgroups, shims: ShimHarness) -> None:
    pod = given.pod("several")
    assert pod is not None
    root = shims.pod_dir(cgroup=pod)
    runtime = await shims.spawn(root)
    script = "for i in $(seq 30); do setsid -f sleep 600; done; echo bred; exec sleep 600"
    await runtime.start(shims.container(root, script))
    await shims.running(runtime)
    await eventually(lambda: output(root) == "bred\n")
    assert len(cgroups.members(pod.below("main.0"))) == 31
    await runtime.stop("main", grace=0)
    assert (await shims.exited(runtime))["exit_code"] == 137
    await eventually(lambda: not cgroups.members(pod.below("main.0")))


def test_the_kernel_ends_everything_in_a_place_at_once(place: CgroupPath) -> None:
    leaf = place.below("leaf")
    cgroups.make(leaf, Limits(memory=1, cpu_millis=1, pids=1))  # of controllers that the place does not have: nothing
    script = 'echo 0 > "$1"; for i in $(seq 20); do setsid -f sleep 600; done; echo ready; exec sleep 600'
    processes = subprocess.Popen(
        ["sh", "-c", script, "sh", os.path.join(leaf.paths[0], cgroups.PROCS)], stdout=subprocess.PIPE
    )
    assert processes.stdout is not None
    with processes, processes.stdout:
        assert processes.stdout.readline() == b"ready\n"
        assert not cgroups.remove(leaf), "somebody is in it"
        assert cgroups.kill(leaf)
        assert processes.wait(timeout=10) == -9
    until(lambda: cgroups.remove(leaf))
    assert not os.path.exists(leaf.paths[0])


DELEGATED = """
import os, sys
from paddlecloud.local.kubelet.shim import cgroups, limits

controller, path = sys.argv[1:]
limits.CONTROLLERS = cgroups.CONTROLLERS = (controller,)  # the one that this kernel has to spare
cgroups.join(cgroups.CgroupPath(2, {controller: path}))
elsewhere = {limits.NAME_VARIABLE: "pdc-test-none"}  # not the place that this machine may have for platforms
assert limits.find(environ=elsewhere).place is None, "not ours merely because we are in it"
os.setxattr(path, "trusted.delegate", b"1")
for life in range(2):
    found = limits.find(environ=elsewhere)
    assert (found.own, found.place.paths) == (True, [path]), found
    pods = limits.PodCgroups(found, data="data")
    pods.start()
    assert pods.enforcement.place is not None, pods.enforcement.reason
    print(open("/proc/self/cgroup").read().split("0::")[1].split()[0])
    pods.stop()
"""


def test_a_delegated_place_is_cleared_for_its_children_and_found_again(place: CgroupPath) -> None:
    """The kernel refuses children with limits to a place that holds a process: the platform moves one down."""
    ((controller, path),) = place.dirs.items()
    done = subprocess.run([sys.executable, "-c", DELEGATED, controller, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    mount, _ = _unified()
    assert done.stdout.split() == [f"{path.removeprefix(mount)}/control"] * 2
    os.rmdir(os.path.join(path, "control"))


# Files of the same names

FILES = ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max", "cgroup.subtree_control")


@pytest.fixture
def files(tmp_path: Path) -> CgroupPath:
    for name in FILES:
        (tmp_path / name).touch()
    return CgroupPath(2, dict.fromkeys(cgroups.CONTROLLERS, str(tmp_path)))


def test_limits_are_written_where_version_2_reads_them(files: CgroupPath, tmp_path: Path) -> None:
    cgroups.make(files, Limits(memory=48 << 20, cpu_millis=200, pids=40))
    cgroups.open_to_children(files)
    assert {name: (tmp_path / name).read_text() for name in FILES} == {
        "memory.max": "50331648",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "20000 100000",
        "pids.max": "40",
        "cgroup.subtree_control": "+cpu +memory +pids",
    }


def test_a_kernel_without_swap_accounts_is_no_failure_and_one_without_memory_limits_is(
    files: CgroupPath, tmp_path: Path
) -> None:
    (tmp_path / "memory.swap.max").unlink()
    cgroups.make(files, Limits(memory=1 << 20))
    assert (tmp_path / "memory.max").read_text() == "1048576"
    (tmp_path / "memory.max").unlink()
    with pytest.raises(OSError, match=r"memory\.max"):
        cgroups.make(files, Limits(memory=1 << 20))


@pytest.mark.parametrize(
    ("events", "ran_out"),
    [
        ("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n", False),
        ("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n", True),
        (None, False),
    ],
    ids=["it reached its limit", "it was ended for it", "it is gone"],
)
def test_the_end_for_memory_is_read_from_the_events(
    files: CgroupPath, tmp_path: Path, events: str | None, ran_out: bool
) -> None:
    if events is not None:
        (tmp_path / "memory.events").write_text(events)
    assert cgroups.ran_out_of_memory(files) is ran_out
