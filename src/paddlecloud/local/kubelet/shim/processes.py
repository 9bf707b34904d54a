"""Finding and ending the processes of a container.

The shim is a *child subreaper*: a daemon whose parent died becomes the shim's child, so everything a container ever
started is a descendant of its shim. The mount namespace of a descendant shows which container it belongs to, which it
cannot leave without leaving its root; without namespaces the marker in its environment shows it.
Standard library only: the shim imports this.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator

POD_MARK = "PADDLECLOUD_POD_UID"
"""In the environment of every process of a pod; how strays are found after their shim was killed."""

CONTAINER_MARK = "PADDLECLOUD_CONTAINER"

Belongs = Callable[[int], bool]


def children(pid: int) -> list[int]:
    """Direct children, from the kernel's own lists (one per thread); a process that is gone has none."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as handle:
                found.extend(int(word) for word in handle.read().split())
    except OSError:
        return found
    return found


def descendants(pid: int) -> Iterator[int]:
    pending = children(pid)
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def mount_namespace(pid: int | str) -> str:
    """`mnt:[4026531840]`, or nothing for a process that is gone or closed to us."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def environment_has(pid: int, marks: Iterable[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as handle:
            entries = set(handle.read().split(b"\0"))
    except OSError:
        return False
    return all(mark in entries for mark in marks)


def is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as handle:
            return handle.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def send(pid: int, number: int) -> bool:
    """Signal one process; False when it is gone already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_all(find: Callable[[], Iterable[int]], *, rounds: int = 50) -> int:
    """SIGKILL everything `find` yields until a round finds nothing new; returns how many were hit.

    Processes are stopped before they are killed, so that a fork bomb cannot fork faster than it is counted.
    """
    hit: set[int] = set()
    for _ in range(rounds):
        fresh = [pid for pid in find() if pid not in hit and not is_zombie(pid)]
        if not fresh:
            break
        for pid in fresh:
            send(pid, signal.SIGSTOP)
        hit.update(fresh)
    for pid in hit:
        send(pid, signal.SIGKILL)
    return len(hit)


def bury_all(limit: float = 5.0) -> None:
    """Wait until no child is left, of those that were killed: each lives on until it gets to die, busy or large ones
    for a while. Gives up after `limit` seconds: what sits in the kernel then is out of anybody's reach."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            buried, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not buried:
            time.sleep(0.002)


def all_pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def strays(pod_uid: str, namespaces: Iterable[str] = ()) -> Iterator[int]:
    """Processes of a pod whose shim is gone: by the mark in their environment, or by a mount namespace it made.

    `namespaces` must not include one that a living pod uses: the kernel reuses their numbers.
    """
    mark = f"{POD_MARK}={pod_uid}".encode()
    wanted = {name for name in namespaces if name}
    me = os.getpid()
    for pid in all_pids():
        if pid != me and (environment_has(pid, (mark,)) or (wanted and mount_namespace(pid) in wanted)):
            yield pid


def resident_bytes(pid: int) -> int:
    """Memory that is this process's own: anonymous and shared-memory pages, not the files it maps."""
    total = 0
    try:
        with open(f"/proc/{pid}/status") as handle:
            for line in handle:
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 0
    return total
