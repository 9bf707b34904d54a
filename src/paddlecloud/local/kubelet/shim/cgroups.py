"""Limits that the kernel holds a container to: its own cgroup, below one that was given to the platform.

A `CgroupPath` names one directory per controller. In version 2 they are all the same directory; in version 1 every
controller has its own tree. Nothing here looks for a place (`limits` does) and nothing here touches a directory
that it did not make. Standard library only: the shim imports this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

CONTROLLERS = ("cpu", "memory", "pids")

CPU_PERIOD = 100_000
"""Microseconds over which a share of processor time is counted, as Kubernetes has it."""

PROCS = "cgroup.procs"


class CgroupPath(NamedTuple):
    version: int
    dirs: Mapping[str, str]
    """By controller; those that are not here are not enforced."""

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(self.dirs.values()))

    def below(self, name: str) -> CgroupPath:
        return CgroupPath(
            self.version, {controller: os.path.join(path, name) for controller, path in self.dirs.items()}
        )


class Limits(NamedTuple):
    """What a cgroup may use; 0 leaves a thing without a limit."""

    memory: int = 0
    cpu_millis: int = 0
    pids: int = 0


def memory_text(size: int) -> str:
    """Bytes as a quantity people read: `64Mi`, `1.5Gi`; what is not exact is rounded up to a tenth.

    Not `kube.sizes`: a shim is in memory once for every pod, and its import contract keeps the rest of the house out.
    """
    unit = max((power for power in (1, 2, 3, 4) if size >= 1024**power), default=0)
    tenths = -(-10 * size // 1024**unit)
    return f"{tenths / 10:g}{('', 'Ki', 'Mi', 'Gi', 'Ti')[unit]}"


def settings(version: int, limits: Limits) -> Iterator[tuple[str, str, str, bool]]:
    """(controller, file, text, whether a kernel may lack the file) for everything that is limited."""
    memory, cpu, pids = limits
    quota = cpu * CPU_PERIOD // 1000
    if version == 2:
        if memory:
            yield "memory", "memory.max", str(memory), False
            yield "memory", "memory.swap.max", "0", True
            yield "memory", "memory.oom.group", "1", True  # half a container is none
        if cpu:
            yield "cpu", "cpu.max", f"{max(quota, 1000)} {CPU_PERIOD}", False
    else:
        if memory:
            yield "memory", "memory.limit_in_bytes", str(memory), False
            yield "memory", "memory.memsw.limit_in_bytes", str(memory), True
        if cpu:
            yield "cpu", "cpu.cfs_period_us", str(CPU_PERIOD), False
            yield "cpu", "cpu.cfs_quota_us", str(max(quota, 1000)), False
    if pids:
        yield "pids", "pids.max", str(pids), False


def make(place: CgroupPath, limits: Limits) -> None:
    """Create the directories, if they are not there, and set their limits. Raises `OSError`."""
    for path in place.paths:
        os.makedirs(path, exist_ok=True)
    for controller, file, text, may_lack in settings(place.version, limits):
        if controller not in place.dirs:
            continue
        path = os.path.join(place.dirs[controller], file)
        if not may_lack or os.path.exists(path):
            _write(path, text)


def open_to_children(place: CgroupPath) -> None:
    """Let directories below have their own limits; version 1 needs no permission for that."""
    if place.version == 2:
        for path in place.paths:
            _write(os.path.join(path, "cgroup.subtree_control"), " ".join(f"+{name}" for name in place.dirs))


def join(place: CgroupPath) -> None:
    """Move this process, and with it all that it will start, into the place."""
    for path in place.paths:
        _write(os.path.join(path, PROCS), "0")


def members(place: CgroupPath) -> list[int]:
    """Every process in the cgroup, whatever its parent is now."""
    for path in place.paths[:1]:
        try:
            with open(os.path.join(path, PROCS)) as handle:
                return [int(line) for line in handle]
        except OSError:
            break  # removed: nobody is in it
    return []


def kill(place: CgroupPath) -> bool:
    """End every process in the place at once, where the kernel can do that itself."""
    if place.version != 2:
        return False
    try:
        for path in place.paths:
            _write(os.path.join(path, "cgroup.kill"), "1")
    except OSError:
        return False  # a kernel before 5.14, or the place is gone
    return True


def ran_out_of_memory(place: CgroupPath) -> bool:
    """Whether the kernel ended a process of the place for its memory limit."""
    path = place.dirs.get("memory")
    if path is None:
        return False
    file = "memory.events" if place.version == 2 else "memory.oom_control"
    try:
        with open(os.path.join(path, file)) as handle:
            return any(line.split()[0] == "oom_kill" and int(line.split()[1]) > 0 for line in handle if line.strip())
    except OSError:
        return False


def remove(place: CgroupPath) -> bool:
    """Take the directories and those below away; False while a process is left in one of them."""
    done = True
    for path in place.paths:
        for folder, _, _ in list(os.walk(path, topdown=False)):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                done = False
    return done


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    except OSError as error:
        raise OSError(error.errno, f"{path}: {os.strerror(error.errno or 0)}") from error
    finally:
        os.close(handle)


def place_from(body: Iterable[object] | None) -> CgroupPath | None:
    """What `json` made of a place."""
    if not body:
        return None
    version, dirs = body
    assert isinstance(version, int)
    assert isinstance(dirs, dict)
    return CgroupPath(version, dirs)
