"""Scheduling under load, on simulated nodes, through the HTTPS API: gangs, jobs, queues, and the bare decisions.

The load comes from a separate process (`scheduling_load`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.kube.resource import Object
from paddlecloud.platform import endpoint

from .claim import Claim, busy, cpu_seconds, pdc, resident_megabytes
from .scheduling_load import CLASSES, GANG, GANGS, JOBS, KUEUE, MEMBERS, WORKERS, new_pod

ROOT = Path(__file__).parent.parent
UPSTREAM = "20 × the 1.6 jobs/s of the original operator: 50 such jobs, on another machine and a real cluster"


def run() -> Iterator[Claim]:
    yield from decisions()
    yield from gang()
    yield from gangs()
    yield from jobs()
    yield from kueue()


# Bare decisions


def decisions() -> Iterator[Claim]:
    """The decide function and the state around it, without any API, per second of CPU."""
    for nodes in (100, 1_000, 5_000):
        burst, trickle = _decide(nodes)
        yield Claim("decisions, 5,000 pods in one round", burst, "/s", note=f"{nodes} nodes, one shape, spread")
        yield Claim("decisions, one pod a round", trickle, "/s", note=f"{nodes} nodes, 100 candidates compared")


def _decide(nodes: int) -> tuple[float, float]:
    from paddlecloud.local.scheduler.decision.decide import decide
    from paddlecloud.local.scheduler.state.state import State

    state = State()
    for number in range(nodes):
        state.on_node(None, _node(f"n{number}"))

    def place(pods: range) -> float:
        for number in pods:
            pod = {**new_pod(f"p{number}", "1"), "status": {"phase": "Pending"}}
            del pod["metadata"]["annotations"]  # a node is a node here
            state.on_pod(None, pod)
        began = time.process_time()
        for pod, node in decide(state.snapshot(), state.due()).placements:
            state.assume(pod, node)
        return time.process_time() - began

    burst = 5_000 / place(range(5_000))
    return burst, 300 / sum(place(range(number, number + 1)) for number in range(5_000, 5_300))


def _node(name: str) -> Object:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


# Through the API


def gang() -> Iterator[Claim]:
    with _platform(simulated=100, capacity="cpu=128,memory=512Gi,pods=500") as (data, pid):
        before, cpu = resident_megabytes(pid), cpu_seconds(pid)
        found = _client(data, "gang", timeout=600)
        grown, used = resident_megabytes(pid) - before, cpu_seconds(pid) - cpu
    note = f"{GANG:,} pods at once, 100 simulated nodes, first create to last Running; {busy()}"
    # Volcano on KWOK at its default webhook time-out: 98.7 % of creates failed.
    yield Claim("one gang: pods", GANG / found["seconds"], "/s", goal=300, at_least=True, note=note)
    yield Claim("one gang: failed creates", found["failed"], "", goal=0, note="HTTPS, RBAC and audit on")
    yield Claim("one gang: platform CPU per pod", used / GANG * 1000, "ms", note="bounds the rate on a free core")
    yield Claim("memory per pod object", grown / GANG * 1000, "KB", note="all caches of all controllers together")


def gangs() -> Iterator[Claim]:
    with _platform(simulated=100, capacity="cpu=128,memory=512Gi,pods=500") as (data, pid):
        before = cpu_seconds(pid)
        found = _client(data, "gangs", timeout=300)
        used = cpu_seconds(pid) - before
    note = f"{GANGS:,} PodGroups of {MEMBERS}, first create to last Running; {busy()}"
    yield Claim("many gangs: pods", GANGS * MEMBERS / found["seconds"], "/s", note=note)
    yield Claim("many gangs: failed creates", found["failed"], "", goal=0)
    yield Claim("many gangs: platform CPU per gang", used / GANGS * 1000, "ms", note="bounds the rate on a free core")


def jobs() -> Iterator[Claim]:
    with _platform(simulated=100, capacity="cpu=128,memory=512Gi,pods=500") as (data, pid):
        before = cpu_seconds(pid)
        found = _client(data, "jobs", timeout=300)
        used = cpu_seconds(pid) - before
    note = f"{JOBS:,} PaddleJobs × {WORKERS} workers over HTTPS, until every job is Running; {busy()}"
    # The original operator needed 31 s for 50 such jobs on a real API server.
    yield Claim("jobs to Running", found["seconds"], "s", goal=30, note=note)
    yield Claim("jobs to Running: rate", JOBS / found["seconds"], "/s", goal=32, at_least=True, note=UPSTREAM)
    yield Claim("jobs to Running: failed creates", found["failed"], "", goal=0)
    yield Claim("platform CPU per job", used / JOBS * 1000, "ms", note="API server, scheduler, controllers, nodes")


def kueue() -> Iterator[Claim]:
    count = KUEUE["cohorts"] * KUEUE["queues"] * sum(row[1] for row in CLASSES)
    with _platform(simulated=20, capacity="cpu=128,memory=512Gi,pods=1000") as (data, pid):
        before = cpu_seconds(pid)
        found = _client(data, "kueue", timeout=900)
        used = cpu_seconds(pid) - before
    known = "ideal 66 s; 351 s in Kueue's CI, on another machine"
    note = f"{count:,} PodGroups with a pod each, not fsynced; {known}; {busy()}"
    yield Claim("Kueue's baseline load", found["seconds"], "s", goal=120, note=note)
    for name, *_ in CLASSES:
        yield Claim(f"  mean wait, {name}", found[f"wait_{name}"], "s")
    yield Claim("  platform CPU per workload", used / count * 1000, "ms", note="bounds the rate on a free core")
    yield Claim("  pods preempted and made anew", found["again"], "")


@contextmanager
def _platform(*, simulated: int, capacity: str) -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as data:
        pdc("up", "--data", data, "--port", "0", "--simulated", str(simulated), "--simulated-capacity", capacity)
        try:
            found = endpoint.find(Path(data).resolve())
            assert found is not None
            yield data, found.pid
        finally:
            pdc("down", "--data", data)


def _client(data: str, what: str, *, timeout: float) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.scheduling_load", data, what]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout, cwd=ROOT)
    result: dict[str, float] = json.loads(done.stdout)
    return result
