"""Pods that start too many processes, found where no cgroup holds them to a number.

Counting every pod's processes all the time would cost more than it is worth. The kernel keeps one number for the whole
machine; only when that has grown a good deal are the pods looked at one by one.
"""

from __future__ import annotations

import os

from paddlecloud.local.kubelet.shim import processes

LOOK_EVERY = 0.25
"""As a part of a pod's limit: how much the machine's number may grow before somebody looks."""


class ProcessCounts:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._calm: int | None = None  # the machine's number when nobody was over the limit

    def alarming(self, total: int) -> bool:
        """Whether so many more processes are there than in calm times that the pods should be counted."""
        self._calm = total if self._calm is None else min(self._calm, total)
        return total > self._calm + self._limit * LOOK_EVERY

    def calmed(self, total: int) -> None:
        """The pods were counted and none was over its limit."""
        self._calm = total

    def verdict(self, count: int) -> str:
        """The message of an eviction, or nothing."""
        if count <= self._limit:
            return ""
        return f"The pod has {count} processes and threads; a pod may have {self._limit} on this machine. "


def machine_tasks() -> int:
    """All processes and threads of the machine."""
    with open("/proc/loadavg") as handle:
        return int(handle.read().split()[3].partition("/")[2])


def pod_tasks(shim: int) -> int:
    """Processes and threads of a pod, its shim left out."""
    return sum(_threads(pid) for pid in processes.descendants(shim))


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0
