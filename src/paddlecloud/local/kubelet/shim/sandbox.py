"""What a pod's processes see of the machine: its own mounts, /etc/hosts and host name.

Two steps. `enter_pod` runs once in the shim and takes the namespaces that all containers of a pod share; `build_root`
runs in each container's process just before its program and gives it its own root: a *skeleton* on tmpfs in
which every entry of the host's root is bind-mounted, and only the directories on the way to a mount point that the
host lacks are re-created. That takes about two milliseconds, no privileges and no overlay file system.

Pods are host processes, not a security boundary: /proc, the network and every path without its own mount are
the host's. Standard library only: the shim imports this.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import socket
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from paddlecloud.local.kubelet.shim import linux

MAX_SYMLINKS = 40
TMP = "/tmp"  # noqa: S108 - inside the container, where it is its own

DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "fd"),
    *("stdin", "stdout", "stderr", "fuse", "kvm", "dri", "kfd", "net", "infiniband", "nvidia*"),
)
"""What a container sees of /dev: what container engines show, and accelerators. The rest would only cost mounts."""


class Mount(NamedTuple):
    """One volume, file or tmpfs at a path of the container."""

    target: str
    source: str = ""
    readonly: bool = False
    tmpfs_bytes: int | None = None
    """Set for a tmpfs instead of a bind; 0 means no size limit."""
    optional: bool = False
    """May be left out, with the reason recorded, where the machine does not allow mounts."""


class Sandbox(NamedTuple):
    """What the machine allowed: `root` (mount namespace), `user` (user and mount namespace) or `none`."""

    mode: str
    reason: str = ""
    """Why it is not better, in words for `pdc doctor`."""

    @property
    def mounts(self) -> bool:
        return self.mode != "none"


_USERNS_HINTS = (
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
)


def namespace_hint() -> str:
    """The command that would allow user namespaces here, or nothing when no known switch forbids them."""
    for path, forbidding, command in _USERNS_HINTS:
        try:
            with open(path) as handle:
                if handle.read().strip() == forbidding:
                    return command
        except OSError:
            continue
    return ""


def enter_pod(hostname: str, *, forbid: str = "") -> Sandbox:
    """Take the pod's namespaces in this process. Never raises: the result says what the machine refused.

    `forbid` names modes not to try (comma separated), so that degraded machines can be tested on capable ones.
    """
    refused = set(forbid.split(","))
    reasons = []
    uid, gid = os.getuid(), os.getgid()
    shared = linux.CLONE_NEWNS | linux.CLONE_NEWUTS
    for mode, flags, tried in (
        ("root", shared, uid == 0),
        ("user", shared | linux.CLONE_NEWUSER, True),
    ):
        if not tried:
            continue
        if mode in refused:
            reasons.append(f"{mode} mode is switched off")
            continue
        try:
            linux.unshare(flags)
            if mode == "user":
                _map_to_root(uid, gid)
            # What is mounted here stays here; what the host unmounts goes here too, so its server can end.
            linux.mount(None, "/", flags=linux.MS_REC | linux.MS_SLAVE)
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            socket.sethostname(hostname)
        except OSError as error:
            reasons.append(f"host name: {error}")
        return Sandbox(mode, "; ".join(reasons))
    hint = namespace_hint()
    return Sandbox("none", "; ".join(reasons) + (f"; to allow it: {hint}" if hint else ""))


def _map_to_root(uid: int, gid: int) -> None:
    """This user becomes root inside its new namespace, as in most images; group changes must be given up first."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {uid} 1")
    _write("/proc/self/gid_map", f"0 {gid} 1")


def become_user_in_namespace(uid: int, gid: int) -> None:
    """Inside the `user` mode only one identity exists; a second namespace shows it under the number asked for."""
    linux.unshare(linux.CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} 0 1")
    _write("/proc/self/gid_map", f"{gid} 0 1")


def _write(path: str, text: str) -> None:
    with open(path, "w") as handle:
        handle.write(text)


def resolve_target(path: str, replaced: Collection[str] = ()) -> str:
    """The path without symbolic links as the host's root has them: `/var/run/x` is `/run/x` on most machines.

    Components that do not exist are kept, so that a mount point can be created there; so are those below a folder of
    `replaced`, in whose place the container has another: links that the host has there are not in it.
    """
    pending = [part for part in path.split("/") if part and part != "."]
    done = "/"
    links = 0
    while pending:
        part = pending.pop(0)
        if part == "..":
            done = posixpath.dirname(done)
            continue
        candidate = posixpath.join(done, part)
        if done in replaced:
            return posixpath.normpath("/".join((candidate, *pending)))
        try:
            link = os.readlink(candidate)
        except OSError:
            done = candidate
            continue
        links += 1
        if links > MAX_SYMLINKS:
            raise OSError(f"too many symbolic links in {path}")
        if link.startswith("/"):
            done = "/"
        pending = [p for p in link.split("/") if p and p != "."] + pending
    return done


def build_root(mounts: Iterable[Mount], *, staging: str) -> None:
    """Give this process (already in a mount namespace of its pod) its own root with `mounts` in place.

    `staging` is an empty directory of the host; the skeleton is built over it and it is free again afterwards.
    Mounts apply in the order of their depth, so that a volume inside another volume lies on top.
    """
    linux.unshare(linux.CLONE_NEWNS)
    mounts = tuple(mounts)
    tmp = [mount.target for mount in mounts if mount.target == TMP]
    ordered = sorted(
        ((resolve_target(mount.target, tmp), mount) for mount in mounts), key=lambda item: item[0].count("/")
    )
    linux.mount("tmpfs", staging, kind="tmpfs", flags=linux.MS_NOSUID | linux.MS_NODEV, options="mode=755")
    _mirror("/", staging, [["dev"], *_missing(target for target, _ in ordered)])
    for target, mount in ordered:
        _place(mount, staging + target)
    old = posixpath.join(staging, ".host")
    os.mkdir(old)
    linux.pivot_root(staging, old)
    os.chdir("/")
    linux.unmount("/.host")
    os.rmdir("/.host")


def _missing(targets: Iterable[str]) -> list[list[str]]:
    """The mount points the host lacks, as components; a bind onto an existing path needs no skeleton."""
    return [[part for part in target.split("/") if part] for target in targets if not os.path.lexists(target)]


def _mirror(host: str, new: str, wanted: Sequence[list[str]]) -> None:
    """Show the directory `host` at the empty directory `new`, re-creating what lies on the way to `wanted`."""
    heads = {parts[0] for parts in wanted if parts}
    names = os.listdir(host) if os.path.isdir(host) else []
    if host == "/dev":
        names = [name for name in names if any(fnmatch.fnmatchcase(name, kept) for kept in DEVICES)]
    for name in names:
        if name in heads:
            continue
        source, target = posixpath.join(host, name), posixpath.join(new, name)
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
            continue
        try:
            if os.path.isdir(source):
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
            linux.mount(source, target, flags=linux.MS_BIND | linux.MS_REC)
        except OSError:
            # An entry that cannot be bound (a vanished file, a directory closed to this user) is closed to its
            # programs as well; an empty place says that no worse than the host does.
            continue
    for head in heads:
        source, target = posixpath.join(host, head), posixpath.join(new, head)
        os.mkdir(target)
        deeper = [parts[1:] for parts in wanted if parts and parts[0] == head and len(parts) > 1]
        if deeper or os.path.isdir(source):
            _mirror(source, target, deeper)


def _place(mount: Mount, target: str) -> None:
    if mount.tmpfs_bytes is not None:
        os.makedirs(target, exist_ok=True)
        size = f",size={mount.tmpfs_bytes}" if mount.tmpfs_bytes else ""
        linux.mount("tmpfs", target, kind="tmpfs", options=f"mode=1777{size}")
        return
    if os.path.isdir(mount.source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target) or os.path.isdir(target):
        # A new file mount point: its skeleton place was made as a directory, since only now is it known what it is.
        if os.path.isdir(target):
            os.rmdir(target)
        os.makedirs(posixpath.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    linux.bind(mount.source, target, readonly=mount.readonly)
