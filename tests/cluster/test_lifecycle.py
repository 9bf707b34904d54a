"""Clusters come and go: nothing is left of them, and every way of dying in between is recovered from."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import need, until

from .harness import preflight
from .harness.cluster import Cluster, Options
from .harness.errors import HarnessError
from .harness.lanes import open_lanes
from .harness.layout import CGROUP, Layout
from .harness.machine import Machine, running_machines
from .harness.node import KERNEL_SETTINGS, PRIVATE_FOLDERS

pytestmark = [pytest.mark.lifecycle, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
NETNS = "/run/netns"
COMMAND = [sys.executable, "-m", "cluster.harness"]
ENV = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}


def harness(
    *arguments: str, check: bool = True, before: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    """One command of the harness; `before` is a command that runs it, such as unshare."""
    command = [*before, *COMMAND, *arguments]
    done = subprocess.run(command, env={**ENV, **env}, cwd=ROOT, capture_output=True, text=True, timeout=240)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(arguments)} exited {done.returncode}:\n{done.stderr}")
    return done


@pytest.fixture(scope="module", autouse=True)
def _no_cluster_before_or_after() -> Iterator[None]:
    need("cluster", have=os.geteuid() == 0, hint="starting one needs root")
    if running_machines(Layout.default()):
        pytest.skip("a cluster is running: `make cluster-down` first")
    harness("build")
    yield
    harness("down")


def lines(*command: str) -> set[str]:
    return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines())


def traces() -> dict[str, set[str]]:
    """Everything that a cluster makes outside its cache.

    Not what the machine's own tools leave once they were used: `ip netns` a mount of its folder, iptables an empty
    table. A process that has ended is none, whenever the host's init collects it.
    """
    ours = (str(Layout.default().cache), "containerd", "nsenter", "paddlecloud-machine")
    folders = {folder for folder in PRIVATE_FOLDERS if Path(folder).exists()}
    groups = {str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{CGROUP}")}
    kernel = {f"{name}={Path('/proc/sys', name).read_text()}" for name in KERNEL_SETTINGS}
    return {
        "processes": {
            command
            for command in lines("ps", "-eo", "args")
            if any(word in command for word in ours) and not command.endswith("<defunct>")
        },
        "mounts": {line for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[1] != NETNS},
        "links": {line.split(":")[1] for line in lines("ip", "-o", "link")},
        "routes": lines("ip", "route"),
        "rules": {line for line in lines("iptables-save") if line.startswith("-") or " - [" in line},
        "network namespaces": lines("ip", "netns", "list"),
        "cgroups": groups,
        "folders": folders,
        "kernel": kernel,
    }


def assert_only(before: dict[str, set[str]]) -> None:
    """Nothing is there that was not; the host's init may take a moment to collect the dead."""
    try:
        until(lambda: traces() == before, timeout=10)
    except AssertionError:
        assert traces() == before


@pytest.mark.core
def test_nothing_is_left_of_a_cluster() -> None:
    before = traces()
    began = time.monotonic()
    kubeconfig = Path(harness("up").stdout.strip())
    took = time.monotonic() - began
    assert kubeconfig.exists()
    assert traces() != before
    harness("down")
    assert_only(before)
    assert not kubeconfig.exists()
    assert took < 60, "a warm start takes seconds; this one points to a stuck step"


@pytest.mark.core
def test_a_start_that_was_killed_is_recovered_from() -> None:
    before = traces()
    layout = Layout.default()
    first = subprocess.Popen([*COMMAND, "up"], env=ENV, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: layout.log("node1", "containerd").exists(), timeout=60, every=0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert running_machines(layout), "the test killed too late or too early to mean anything"
    harness("up")
    assert harness("status").stdout.splitlines()[0].startswith("control:")
    harness("down")
    assert_only(before)


@pytest.mark.full
def test_a_second_run_at_the_same_time_is_asked_to_wait() -> None:
    first = subprocess.Popen([*COMMAND, "up"], env=ENV, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until(lambda: bool(running_machines(Layout.default())), timeout=60, every=0.01)
        second = harness("up", check=False)
    finally:
        first.communicate(timeout=120)
    assert second.returncode == 1
    assert f"process {first.pid}" in second.stderr
    harness("down")


@pytest.mark.full
def test_two_clusters_at_the_same_time_are_strangers_and_one_outlives_the_other() -> None:
    before = traces()
    with open_lanes(2) as (first, second):
        harness("up")
        inside = Path(harness("up", before=tuple(second.prefix), **second.environment).stdout.strip())
        ask = ["kubectl", "--kubeconfig", str(inside), "get", "nodes", "--output=name"]
        assert lines(*second.prefix, *ask) == {"node/node1"}
        harness("down", before=tuple(second.prefix), **second.environment)
        assert harness("status", **first.environment).stdout.startswith("control:")
        ask[2] = str(Layout.default().kubeconfig)
        assert lines(*ask) == {"node/node1"}
        harness("down")
    assert_only(before)


@pytest.mark.core
def test_addresses_that_the_host_uses_are_named() -> None:
    subprocess.run(["ip", "route", "add", "blackhole", "10.244.77.0/24"], check=True, timeout=10)
    try:
        refused = harness("up", check=False)
    finally:
        subprocess.run(["ip", "route", "del", "blackhole", "10.244.77.0/24"], check=True, timeout=10)
    assert refused.returncode == 1
    assert "10.244.77.0/24" in refused.stderr


@pytest.mark.full
def test_ports_that_the_host_uses_do_not_matter_and_a_component_that_dies_is_seen_or_comes_back() -> None:
    with ExitStack() as stack:
        for port in (6443, 2379, 5000, 10250):  # taken, here or by a cluster of somebody else's: it is all the same
            server = stack.enter_context(socket.socket())
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                server.bind(("0.0.0.0", port))
            except OSError:
                continue
            server.listen()
        harness("up")
    Machine(Layout.default(), "control").kill("kube-scheduler")
    until(lambda: "kube-scheduler" not in harness("status").stdout.split(), timeout=10)
    node = Machine(Layout.default(), "node1")
    first = {pid for pid, command in node.processes().items() if Path(command[0]).name == "kubelet"}
    node.kill("kubelet")
    until(lambda: node.runs("kubelet") and not first & set(node.processes()), timeout=30)
    harness("down")


@pytest.mark.core
def test_without_root_it_says_what_is_missing() -> None:
    refused = harness("up", check=False, before=("unshare", "--user"))
    assert refused.returncode == 1
    assert "needs root" in refused.stderr
    assert "sudo make cluster" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.core
def test_a_kernel_without_packet_filters_is_found_out_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "iptables").write_text("#!/bin/sh\necho no such table >&2\nexit 3\n")
    (tmp_path / "iptables").chmod(0o755)
    refused = harness("up", check=False, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert refused.returncode == 1
    assert "packet filters do not work here: no such table" in refused.stderr
    assert not running_machines(Layout.default())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A cache on its own disk, with what was built before, and 5 MiB of room."""
    place = tmp_path / "cache"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", str(place)], check=True, timeout=10)
    for name in ("engines", "images"):
        (place / name).symlink_to(Layout.default().cache / name)
    yield place
    harness("down", PDC_CLUSTER_CACHE=str(place))
    subprocess.run(["umount", str(place)], check=True, timeout=10)


@pytest.mark.core
def test_a_disk_without_room_is_named_before_anything_starts(small_disk: Path) -> None:
    refused = harness("up", check=False, PDC_CLUSTER_CACHE=str(small_disk))
    assert refused.returncode == 1
    assert f"{small_disk} has 4 MiB free" in refused.stderr
    assert "make room" in refused.stderr


@pytest.mark.full
def test_a_disk_that_fills_up_during_the_start_is_named_and_with_room_it_goes_on(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_SPACE", 1 << 20)
    with pytest.raises(HarnessError, match=r"disk of .* is full .* make room and run `make cluster`") as caught:
        Cluster(Layout(small_disk), say=print).up(Options())
    assert caught.value.reason == "DiskFull"
    subprocess.run(["mount", "-o", "remount,size=4g", str(small_disk)], check=True, timeout=10)
    harness("up", PDC_CLUSTER_CACHE=str(small_disk))
    assert set(running_machines(Layout(small_disk))) == {"control", "node1"}


@pytest.mark.core
def test_down_without_a_cluster_is_no_error() -> None:
    harness("down")
    assert harness("status", check=False).returncode == 3
