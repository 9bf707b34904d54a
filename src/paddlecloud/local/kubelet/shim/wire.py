"""What the kubelet and a shim say to each other, and where a pod's files lie.

Messages are JSON, one per line, over a Unix socket: requests carry an `id` and are answered with the same `id`;
whenever the state changes the shim sends `{"state": …}` unasked. The same state is kept in `status.json`, so that it
outlives both sides. Standard library only: the shim imports this.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import socket
import struct
from typing import Any, NamedTuple

from paddlecloud.local.kubelet.shim.cgroups import CgroupPath, place_from
from paddlecloud.local.kubelet.shim.sandbox import Mount

SPEC = "spec.json"
STATUS = "status.json"
LOCK = "shim.lock"
SOCKET = "shim.sock"

MAX_MESSAGE = 4 * 1024 * 1024


class PodSpec(NamedTuple):
    """What a shim must know of its pod before any container starts."""

    uid: str
    namespace: str
    name: str
    hostname: str
    ip: str = ""
    forbid: str = ""
    """Sandbox modes not to use."""
    gpus: dict[str, list[str]] | None = None
    """By container; kept here so that they outlive the kubelet."""
    tmpfs: tuple[tuple[str, int], ...] = ()
    """Directories under which a tmpfs (of so many bytes, 0 for no limit) is shared by the pod's containers."""
    cgroup: CgroupPath | None = None
    """Where the pod's cgroups are made; None where limits are not the kernel's business."""
    pids_limit: int = 0


class ContainerSpec(NamedTuple):
    """One run of one container, complete: the shim resolves nothing."""

    name: str
    attempt: int
    argv: tuple[str, ...]
    env: dict[str, str]
    log_path: str
    cwd: str = "/"
    mounts: tuple[Mount, ...] = ()
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    umask: int = 0o022
    no_new_privileges: bool = False
    """Programs with the set-user-id bit give it no more rights than it has (`allowPrivilegeEscalation: false`)."""
    memory_limit: int = 0
    cpu_millis: int = 0
    bind_ip: str = ""
    """Where a wildcard listen goes, so that two pods can use one port; empty leaves it alone."""
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    stdin: bool = False
    """The program has an input that clients may join; otherwise it reads nothing."""
    stdin_once: bool = False
    """The input ends with the first client that joined it."""
    tty: bool = False
    note: str = ""
    """First line of the log, written by the shim: what a user must know of the container before its output."""
    streak: int = 0
    """Failures in a row before this run: kept with the run, because back-off must survive the control plane."""


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def container_spec(body: dict[str, Any]) -> ContainerSpec:
    fields = dict(body)
    fields["argv"] = tuple(fields["argv"])
    fields["groups"] = tuple(fields.get("groups", ()))
    fields["mounts"] = tuple(Mount(*mount) for mount in fields.get("mounts", ()))
    return ContainerSpec(**fields)


def pod_spec(body: dict[str, Any]) -> PodSpec:
    fields = {name: value for name, value in body.items() if name in PodSpec._fields}  # it may be of another release
    fields["tmpfs"] = tuple((path, size) for path, size in fields.get("tmpfs", ()))
    fields["cgroup"] = place_from(fields.get("cgroup"))
    return PodSpec(**fields)


def write_json(path: str, body: dict[str, Any]) -> None:
    """Readers see the old file or the new one, never a part."""
    temporary = f"{path}.tmp"
    with open(temporary, "w") as handle:
        json.dump(body, handle, separators=(",", ":"))
    os.replace(temporary, path)


def read_json(path: str) -> dict[str, Any] | None:
    """None when the file is missing or was cut off by a crash of the machine."""
    try:
        with open(path) as handle:
            body = json.load(handle)
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) else None


def receive(sock: socket.socket, size: int) -> tuple[bytes, list[int]]:
    """Data and file descriptors, closed on exec: `socket.recv_fds` drops its flags, and would leak them into pods."""
    room = 8 * array.array("i").itemsize
    data, ancillary, _, _ = sock.recvmsg(size, socket.CMSG_SPACE(room), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    return data, list(fds)


_FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` on 64-bit Linux: type, whence, start, length, pid."""


def lock_holder(pod_dir: str) -> int | None:
    """The process id of the living shim of this pod directory. Asks the kernel, without taking the lock itself."""
    try:
        fd = os.open(os.path.join(pod_dir, LOCK), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(fd)
    kind, _, _, _, pid = _FLOCK.unpack(answer)
    return None if kind == fcntl.F_UNLCK else int(pid)
