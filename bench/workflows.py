"""Workflows: what a step of a chain and of a wide loop costs, and how often a large workflow is written.

Every step is a pod, with its log and the whole record of its node in the status. With `PDC_CLUSTER=1` (`make
bench-cluster`, needs root) real Argo does the same on the same machine, with the setting of Argo's own tests: it looks
at a workflow once a second at most, not every ten seconds. Its steps take seconds, so it gets fewer of them. kfp's
local runner does the chain as well: without pods, images, logs or a record, one process after the other.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.kube.stdlib import drive
from paddlecloud.platform import endpoint

from .claim import Claim, busy, pdc, resident_megabytes
from .cluster_api import harness
from .pipelines import client_of, kfp

AT_ONCE, PODS = 8, 50
LIMIT = 1200.0  # seconds
ARGO = "Argo 3.7.18, requeue time 1 s"
LOCAL_STEPS = 20
LOCAL_CHAIN = """
import sys, time
from kfp import dsl, local

local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[1])

@dsl.component(install_kfp_package=False)
def nothing():
    pass

@dsl.pipeline
def chain():
    before = None
    for _ in range(int(sys.argv[2])):
        task = nothing()
        if before is not None:
            task.after(before)
        before = task

began = time.monotonic()
chain()
print("milliseconds", 1000 * (time.monotonic() - began) / int(sys.argv[2]))
"""
_NOTHING = {"name": "nothing", "container": {"image": "busybox", "command": ["true"]}}
_ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


def chain(length: int) -> Object:
    return _spec([[{"name": f"s{number}", "template": "nothing"}] for number in range(length)])


def fan_out(width: int) -> Object:
    return {**_spec([[_loop("a", width)]]), "parallelism": AT_ONCE}


def large(nodes: int) -> Object:
    """Most of its steps are skipped; some are pods, so that it has something to write for a while."""
    return _spec([[{**_loop("a", nodes - PODS), "when": "1 == 2"}, _loop("b", PODS)]])


def milliseconds_a_step(client: Client, spec: Object, size: int) -> float:
    began = time.monotonic()
    for _ in _followed(client, spec, every=0.2):  # each look has the whole status: the platform's work, too
        pass
    return 1000 * (time.monotonic() - began) / size


def writes_a_second(client: Client, spec: Object, size: int) -> float:
    """Versions of the workflow, from the first to the last with compressed nodes."""
    seen: dict[str, float] = {}
    for found in _followed(client, spec, every=0.02):
        if (found.get("status") or {}).get("compressedNodes"):
            seen.setdefault(found["metadata"]["resourceVersion"], time.monotonic())
    times = list(seen.values())
    return (len(times) - 1) / (times[-1] - times[0])


@dataclass(frozen=True)
class Row:
    what: str
    make: Callable[[int], Object]
    size: int
    argo_size: int
    measure: Callable[[Client, Object, int], float]
    unit: str
    goal: float | None = None
    times_faster: float | None = None
    """Than Argo, where that is claimed."""

    def on(self, client: Client, size: int) -> float:
        return self.measure(client, self.make(size), size)


ROWS = (
    Row("chain of no-op steps: a step", chain, 100, 25, milliseconds_a_step, "ms", goal=70, times_faster=15),
    Row(f"fan-out, {AT_ONCE} at a time: a step", fan_out, 1_000, 64, milliseconds_a_step, "ms", times_faster=10),
    Row(f"large workflow with {PODS} pods: status writes", large, 5_000, 5_000, writes_a_second, "1/s", goal=1.05),
)


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as data:
        pdc("up", "--data", data, "--port", "0")
        try:
            ours = [(figure, busy()) for figure in _figures(Path(data, "kubeconfig"), [row.size for row in ROWS])]
            memory = _platforms_memory(Path(data))
        finally:
            pdc("down", "--data", data)
    for row, (figure, load) in zip(ROWS, ours, strict=True):
        yield Claim(f"workflow: {row.what}", figure, row.unit, goal=row.goal, note=f"{row.size:,}, once; {load}")
    yield Claim("workflow: memory of the platform after these", memory, "MB", goal=150, note="its process, resident")
    chained, _ = ours[0]
    what, other = "workflow: beside kfp's local runner: a step", "kfp 2.17, processes without a venv"
    note = f"{LOCAL_STEPS} steps there; {busy()}"
    yield Claim(what, chained, "ms", other=_kfp_local(), other_name=other, note=note)
    if os.environ.get("PDC_CLUSTER"):
        yield from _beside_argo([figure for figure, _ in ours])


def _beside_argo(ours: list[float]) -> Iterator[Claim]:
    kubeconfig = Path(harness("up", "--with", "argo").strip())
    try:
        _allow(kubeconfig)
        theirs = list(_figures(kubeconfig, [row.argo_size for row in ROWS]))
    finally:
        harness("down")
    for row, own, other in zip(ROWS, ours, theirs, strict=True):
        goal = other / row.times_faster if row.times_faster else None
        note = f"{row.size:,} here, {row.argo_size:,} there; {busy()}"
        what = f"beside Argo: {row.what}"
        yield Claim(what, own, row.unit, goal=goal, other=other, other_name=ARGO, note=note)


def _platforms_memory(data: Path) -> float:
    found = endpoint.find(data)
    assert found is not None
    return resident_megabytes(found.pid)


def _kfp_local() -> float:
    """Milliseconds a step."""
    with tempfile.TemporaryDirectory() as folder:
        printed = kfp(LOCAL_CHAIN, folder, str(LOCAL_STEPS), folder=folder)
    return float(printed.rpartition("milliseconds ")[2])


def _figures(kubeconfig: Path, sizes: list[int]) -> Iterator[float]:
    client = client_of(kubeconfig)
    milliseconds_a_step(client, chain(1), 1)  # brings the images
    for row, size in zip(ROWS, sizes, strict=True):
        yield row.on(client, size)
    drive(client.close())


def _spec(steps: list[list[Object]]) -> Object:
    return {"entrypoint": "main", "templates": [{"name": "main", "steps": steps}, _NOTHING]}


def _loop(name: str, count: int) -> dict[str, Any]:
    return {"name": name, "template": "nothing", "withSequence": {"count": count}}


def _followed(client: Client, spec: Object, *, every: float) -> Iterator[Object]:
    """A new workflow as it is now, again and again until it has succeeded."""
    body = {"apiVersion": WORKFLOWS.api_version, "kind": WORKFLOWS.kind, "metadata": {"generateName": "bench-"}}
    name = drive(client.create(WORKFLOWS, {**body, "spec": spec}, namespace="default"))["metadata"]["name"]
    deadline = time.monotonic() + LIMIT
    while True:
        found = drive(client.get(WORKFLOWS, name, "default"))
        yield found
        status = found.get("status") or {}
        if status.get("phase") in ("Succeeded", "Failed", "Error"):
            assert status["phase"] == "Succeeded", status.get("message")
            return
        assert time.monotonic() < deadline, f"{name} is still {status.get('phase')}"
        time.sleep(every)


def _allow(kubeconfig: Path) -> None:
    """Argo's executor reports with the rights of the pod's account."""
    client = client_of(kubeconfig)
    rule = {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
    role = {"apiVersion": _ROLES.api_version, "kind": "Role", "metadata": {"name": "executor"}, "rules": [rule]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    named = {"apiGroup": _ROLES.group, "kind": "Role", "name": "executor"}
    binding = {**role, "kind": "RoleBinding", "roleRef": named, "subjects": [subject]}
    del binding["rules"]
    drive(client.create(_ROLES, role, namespace="default"))
    drive(client.create(_BINDINGS, binding, namespace="default"))
    drive(client.close())
