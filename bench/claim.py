"""One row of the table, and the few measurements that several benchmarks share."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Claim:
    """`ours` against `goal`, and beside it what was measured of something else in the same run, if anything was."""

    what: str
    ours: float
    unit: str
    goal: float | None = None
    at_least: bool = False
    other: float | None = None
    other_name: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.other if self.other else None

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return "-"
        return "pass" if (self.ours >= self.goal if self.at_least else self.ours <= self.goal) else "MISS"


def shown(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def table(claims: Sequence[Claim]) -> str:
    header = ("claim", "ours", "goal", "other", "ratio", "", "conditions")
    rows = [header]
    for claim in claims:
        goal = "" if claim.goal is None else f"{'≥' if claim.at_least else '≤'} {shown(claim.goal)}"
        other = "" if claim.other is None else f"{shown(claim.other)} ({claim.other_name})"
        ours = f"{shown(claim.ours)} {claim.unit}"
        rows.append((claim.what, ours, goal, other, shown(claim.ratio), claim.verdict, claim.note))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def cpu_of(command: Sequence[str], *, env: Mapping[str, str] | None = None, rounds: int = 5) -> float:
    """Median CPU-seconds (user + system) of a command, children included."""
    used = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=dict(env or os.environ), timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(used)


def until(check: Callable[[], bool], *, timeout: float, every: float = 0.01) -> float:
    """Seconds until `check` holds."""
    began = time.monotonic()
    while not check():
        if time.monotonic() - began > timeout:
            raise TimeoutError(f"not true after {timeout} s")
        time.sleep(every)
    return time.monotonic() - began


def pdc(*args: str, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "paddlecloud.cli.main", *args],
        check=True, capture_output=True, text=True, env=dict(env or os.environ), timeout=120,
    )  # fmt: skip
    return done.stdout


def busy() -> str:
    """Times mean little on a machine that others use: say how busy it is."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
