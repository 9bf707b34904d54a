"""What pods use of the machine, read from /proc: the numbers behind `kubectl top`.

CPU time is that of a container's living processes and of the children they have waited for, so it never jumps back
while a container runs; a rate is the difference of two readings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from paddlecloud.local.kubelet.pod.pod_state import RUNNING
from paddlecloud.local.kubelet.pod.runtime import last_state
from paddlecloud.local.kubelet.shim import processes

_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    cpu_seconds: float
    memory_bytes: int


def pod_usage(pod_dir: Path) -> Mapping[str, Usage]:
    """By container, for those that run."""
    state = last_state(pod_dir) or {}
    return {
        name: container_usage(int(record["pid"]), str(record["namespace"]), int(state["shim"]["pid"]))
        for name, record in (state.get("containers") or {}).items()
        if record["phase"] == RUNNING
    }


def container_usage(pid: int, namespace: str, shim: int) -> Usage:
    cpu, memory = 0.0, 0
    for member in _members(pid, namespace, shim):
        cpu += cpu_seconds(member)
        memory += processes.resident_bytes(member)
    return Usage(cpu, memory)


def _members(pid: int, namespace: str, shim: int) -> Iterator[int]:
    if not namespace:
        yield pid
        yield from processes.descendants(pid)
        return
    for candidate in processes.descendants(shim):
        if processes.mount_namespace(candidate) == namespace:
            yield candidate


def cpu_seconds(pid: int) -> float:
    """Of a process and its reaped children; nothing for one that is gone."""
    try:
        with open(f"/proc/{pid}/stat") as handle:
            fields = handle.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(fields[index]) for index in (11, 12, 13, 14)) / _TICKS
