"""What a machine must have for a cluster, found out before anything is started, and what to do where it has not."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from . import network
from .errors import HarnessError
from .layout import Layout
from .machine import other_clusters, running_machines

_SPACE = 3 << 30  # bytes for images and pods of a base cluster

INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 1024
"""Of all processes of root. Debian allows 128, and a kubelet that gets none ends: two clusters beside other programs
need more, since each kubelet, containerd and shim watches files."""

PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "sysctl": "procps",
    "mount": "mount",
}
"""Programs and the Debian packages they come from."""


def check(layout: Layout, *, say: Callable[[str], None]) -> None:
    """Raise the first thing that stands in the way. Missing Debian packages are installed, and it says so."""
    if os.geteuid() != 0:
        raise HarnessError(
            "a real cluster needs root for namespaces, mounts and packet filters: run `sudo make cluster`",
            reason="NoRoot",
        )
    install_packages(say)
    _kernel(layout)
    allow_inotify(INOTIFY, say)
    check_space(layout)
    _addresses(layout)


def install_packages(say: Callable[[str], None]) -> None:
    """Programs of the distribution that a cluster consists of or is made with."""
    bridge = any(Path(folder, "bridge").exists() for folder in ("/usr/lib/cni", "/opt/cni/bin"))
    install_programs(PROGRAMS, say, () if bridge else ("containernetworking-plugins",))


def install_programs(programs: Mapping[str, str], say: Callable[[str], None], missing: Iterable[str] = ()) -> None:
    """Those that are not there, from the packages they come from; `missing` are packages known to be."""
    wanted = {package for program, package in programs.items() if shutil.which(program) is None}
    packages = sorted({*wanted, *missing})
    if not packages:
        return
    if shutil.which("apt-get") is None:
        raise HarnessError(
            f"these Debian packages, or what they hold, are missing: {' '.join(packages)}", reason="NoPrograms"
        )
    say(f"installing {' '.join(packages)} with apt-get")
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    for command in (["apt-get", "update"], install):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
        if done.returncode != 0:
            raise HarnessError(
                f"`{' '.join(command)}` failed; install these packages yourself:\n{done.stderr.strip()[-600:]}",
                reason="NoPrograms",
            )


def _kernel(layout: Layout) -> None:
    """Features that only an attempt can show."""
    if not Path("/proc/sys/net/bridge").exists():
        subprocess.run(["modprobe", "br_netfilter"], capture_output=True, timeout=10)
    if not Path("/proc/sys/net/bridge").exists():
        raise HarnessError(
            "the kernel has no br_netfilter, without which services are not reachable", reason="NoKernel"
        )
    layout.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=layout.cache) as folder:
        for name in ("lower", "upper", "work", "merged"):
            Path(folder, name).mkdir()
        options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
        attempt = f"mount -t overlay overlay -o {options} {folder}/merged && iptables -t nat -L -n >/dev/null"
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-ec", attempt]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise HarnessError(
            f"namespaces, overlay mounts in {layout.cache} or packet filters do not work here: {done.stderr.strip()}\n"
            "use a virtual machine or a privileged container, with PDC_CLUSTER_CACHE on a file system such as ext4",
            reason="NoKernel",
        )


def allow_inotify(limit: Path, say: Callable[[str], None]) -> None:
    """It stays raised when the cluster is gone: programs that were started meanwhile may need it."""
    if (had := int(limit.read_text())) < INOTIFY_INSTANCES:
        limit.write_text(str(INOTIFY_INSTANCES))
        say(f"raised fs.inotify.max_user_instances from {had} to {INOTIFY_INSTANCES}; it stays so until the next boot")


def check_space(layout: Layout) -> None:
    free = shutil.disk_usage(layout.cache).free
    if free < _SPACE:
        raise HarnessError(
            f"{layout.cache} has {free >> 20} MiB free and a cluster needs {_SPACE >> 20}: make room, "
            "or set PDC_CLUSTER_CACHE to a folder on another disk",
            reason="DiskFull",
        )


def _addresses(layout: Layout) -> None:
    if network.has_link() and not running_machines(layout):
        for run in other_clusters(layout):
            raise HarnessError(
                f"a cluster of another cache is running: `PDC_CLUSTER_CACHE={Path(run).parent} make cluster-down` "
                "stops it",
                reason="AddressInUse",
            )
        network.disconnect_host()  # left by a start that was killed
    clash = network.clashing_routes()
    if clash:
        raise HarnessError(
            f"the host already routes addresses that the cluster would take: {'; '.join(clash)}. Remove that route, "
            "or stop what made it, while the cluster runs",
            reason="AddressInUse",
        )
