"""The parts of a machine that can be judged without one: cgroup trees, routes, and what is refused before a start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from .harness import cgroups, network, preflight
from .harness.cluster import Options
from .harness.errors import HarnessError, with_log
from .harness.layout import CGROUP, Layout, Node
from .harness.machine import fuse_connections

SAY: Callable[[str], None] = lambda line: None  # noqa: E731


def test_a_hybrid_host_gets_the_nodes_cgroup_in_every_tree_and_loses_it_in_every_tree(tmp_path: Path) -> None:
    trees = ("cpu", "cpuset", "memory", "unified")
    for tree in trees:
        (tmp_path / tree).mkdir()
        (tmp_path / tree / "cgroup.procs").touch()
    (tmp_path / "unified" / "cgroup.controllers").write_text("hugetlb\n")
    switch = tmp_path / "unified" / "cgroup.subtree_control"
    switch.touch()
    (tmp_path / "elsewhere").mkdir()
    cgroups.make(Node(2), tmp_path)
    assert switch.read_text() == "", (
        "controllers are those of version 1, and a group with processes may not pass any on"
    )
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*"))
    assert made == [f"{tree}/{CGROUP}/node2" for tree in trees]
    cgroups.make(Node(3), tmp_path)
    (tmp_path / "cpu" / Node(2).cgroup / "kubepods" / "pod1").mkdir(parents=True)
    cgroups.remove(tmp_path, below=Node(2).cgroup)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*"))
    assert left == [f"{tree}/{CGROUP}/node3" for tree in trees]
    cgroups.remove(tmp_path)
    assert not list(tmp_path.glob(f"*/{CGROUP}"))


def test_version_2_passes_its_controllers_down(tmp_path: Path) -> None:
    for group in (tmp_path, tmp_path / CGROUP):
        group.mkdir(exist_ok=True)
        (group / "cgroup.controllers").write_text("cpu memory\n")
        (group / "cgroup.subtree_control").touch()
    cgroups.make(Node(1), tmp_path)
    assert (tmp_path / CGROUP / "node1").is_dir()
    assert (tmp_path / CGROUP / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_every_machine_knows_the_way_to_every_pod_but_its_own() -> None:
    routes = network.pod_routes(without=Node(2))
    assert "10.244.1.0/24 via 10.201.0.11" in routes
    assert not any(route.startswith(Node(2).pods) for route in routes)
    assert len(routes) == 8


@pytest.mark.parametrize(
    ("route", "clashes"),
    [
        ("default via 192.168.1.1 dev eth0", False),
        ("10.0.0.0/8 via 10.9.9.1 dev tun0", False),
        ("10.244.3.0/24 dev cni0 proto kernel scope link src 10.244.3.1", True),
        ("blackhole 10.96.0.0/16", True),
        ("10.201.0.0/24 dev pdc0 proto kernel scope link src 10.201.0.254", False),
        ("10.201.0.7 dev tap1 scope link", True),
    ],
)
def test_only_routes_into_the_clusters_networks_clash(route: str, clashes: bool) -> None:
    assert bool(network.clashing_routes(route)) is clashes


def test_file_systems_that_a_machine_serves_are_distinguished_from_others() -> None:
    mounts = """\
160 6229 0:219 / /var/lib/jfs/photos rw,nosuid shared:18 - fuse.juicefs JuiceFS:photos rw,user_id=0
161 6253 0:7 / /sys/fs/fuse/connections rw - fusectl none rw
162 6253 254:0 /fuse /fuse rw - ext4 /dev/vda rw
163 6253 0:80 / /mnt rw - fuse sshfs rw
"""
    assert fuse_connections([mounts, ""]) == {"219", "80"}


def test_without_root_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HarnessError, match="sudo make cluster") as caught:
        preflight.check(Layout(tmp_path), say=SAY)
    assert caught.value.reason == "NoRoot"


def test_a_full_disk_is_named_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=50 << 20))
    with pytest.raises(HarnessError, match="has 50 MiB free.*PDC_CLUSTER_CACHE") as caught:
        preflight.check_space(Layout(tmp_path))
    assert caught.value.reason == "DiskFull"


@pytest.mark.parametrize("number", [0, 10])
def test_the_number_of_nodes_is_bounded(number: int) -> None:
    with pytest.raises(HarnessError, match="1 to 9 nodes"):
        Options(nodes=number)


def test_an_error_ends_with_the_end_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_text("\n".join(f"line {number}" for number in range(20)))
    message = with_log("etcd is gone", log, lines=2)
    assert message.startswith("etcd is gone; the end of")
    assert message.splitlines()[1:] == ["    line 18", "    line 19"]
    assert "no log at" in with_log("etcd is gone", tmp_path / "missing")


def test_a_limit_of_inotify_that_is_too_low_for_two_clusters_is_raised_and_said_once(tmp_path: Path) -> None:
    limit, said = tmp_path / "max_user_instances", list[str]()
    limit.write_text("128\n")
    preflight.allow_inotify(limit, said.append)
    assert int(limit.read_text()) == preflight.INOTIFY_INSTANCES
    limit.write_text("8192\n")
    preflight.allow_inotify(limit, said.append)
    assert int(limit.read_text()) == 8192
    (text,) = said
    assert "from 128 to 1024" in text
