"""A pipeline that kfp 2 compiled: what ten steps take, one after the other, and what it takes to find them all cached,
also where they share a claim, as the steps of the manual's demo do.

With `PDC_CLUSTER=1` (`make bench-cluster`, needs root) the same file runs on real Argo too: translated by us, and by
the real backend of Kubeflow Pipelines on the same cluster, which starts a driver beside the pod of each step. Seconds
of the comparison are those of the Workflow, from its creation to its end.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from paddlecloud.kube import config
from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PODS, SERVICES, Object
from paddlecloud.kube.stdlib import StdlibTransport, drive
from paddlecloud.pipelines import ir, names

from .claim import Claim, busy, pdc, until
from .cluster_api import harness

ROOT = Path(__file__).parents[1]
STEPS = 10
LIMIT = 900.0  # seconds
NAMESPACE = "kfp"
BACKEND = "backend of Kubeflow Pipelines 2.14.3"
COMPILE = """
import sys
from kfp import compiler, dsl, kubernetes

@dsl.container_component
def add(text: str, out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="busybox:1.36", args=[text, out],
        command=["sh", "-c", 'mkdir -p "$(dirname "$1")"; printf "%s+" "$0" > "$1"'])

@dsl.pipeline(name="ten-steps")
def pipeline(text: str):
    if claim := sys.argv[3]:
        made = kubernetes.CreatePVC(
            pvc_name=claim, access_modes=["ReadWriteMany"], size="1Mi", storage_class_name="local")
    for _ in range(int(sys.argv[2])):
        step = add(text=text)
        text = step.outputs["out"]
        if claim:
            kubernetes.mount_pvc(step, pvc_name=made.outputs["name"], mount_path="/shared")

compiler.Compiler().compile(pipeline, sys.argv[1])
"""
SUBMIT = """
import sys
import kfp
file, host, text = sys.argv[1:]
made = kfp.Client(host=host).create_run_from_pipeline_package(file, arguments={"text": text}, enable_caching=False)
sys.stdout.write("\\n" + made.run_id + "\\n")
"""


class Run(NamedTuple):
    seconds: float
    """From the creation of the Workflow to its end, as its object has them: in whole seconds."""
    waited: float
    """From when it was sent until its end was seen."""
    pods: int


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as folder:
        file, shared = Path(folder, "pipeline.yaml"), Path(folder, "shared.yaml")
        kfp(COMPILE, str(file), str(STEPS), "")
        kfp(COMPILE, str(shared), str(STEPS), "bench")
        yield from _embedded(file, shared)
        if os.environ.get("PDC_CLUSTER"):
            yield from _beside_the_backend(file)


def _embedded(file: Path, shared: Path) -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as data:
        pdc("up", "--data", data, "--port", "0")
        try:
            client = client_of(Path(data, "kubeconfig"))
            runs = [(_translated(client, each, "once", names.SYSTEM_NAMESPACE), busy()) for each in (file, shared) * 2]
            drive(client.close())
        finally:
            pdc("down", "--data", data)
    assert [run.pods for run, _ in runs] == [STEPS, STEPS + 1, 0, 1], runs  # CreatePVC is never cached
    what = f"pipeline of {STEPS} steps"
    for (run, load), row, goal in zip(
        runs, ("first run", "first run, on a claim", "again, every step cached", "again, on the same claim"),
        (None, None, 3, 3), strict=True,
    ):  # fmt: skip
        yield Claim(f"{what}: {row}", run.waited, "s", goal=goal, note=f"{run.pods} pods; {load}")


def _beside_the_backend(file: Path) -> Iterator[Claim]:
    kubeconfig = Path(harness("up", "--with", "argo", "--with", "kfp").strip())
    try:
        client = client_of(kubeconfig)
        address = drive(client.get(SERVICES, "ml-pipeline", NAMESPACE))["spec"]["clusterIP"]
        for _ in range(2):  # the first of each brings the images
            ours = _translated(client, file, uuid.uuid4().hex, NAMESPACE)
            theirs = _submitted(client, file, uuid.uuid4().hex, f"http://{address}:8888")
        drive(client.close())
    finally:
        harness("down")
    what, note = f"beside Kubeflow Pipelines: {STEPS} steps", f"both on Argo; {busy()}"
    for name, unit, own, other in (
        ("pods", "pods", ours.pods, theirs.pods),
        ("the whole run", "s", ours.seconds, theirs.seconds),
    ):
        yield Claim(f"{what}: {name}", own, unit, goal=other / 2, other=other, other_name=BACKEND, note=note)


def _translated(client: Client, file: Path, text: str, namespace: str) -> Run:
    """Ours: the file as a Workflow."""
    name = f"ten-steps-{uuid.uuid4().hex[:8]}"
    workflow = ir.translate(file.read_bytes(), {"text": text}, name, ir.PipelineOptions())
    if namespace == names.SYSTEM_NAMESPACE:
        workflow["spec"]["serviceAccountName"] = names.RUNNER  # it may create claims
    drive(client.create(WORKFLOWS, workflow, namespace=namespace))
    return _finished(client, namespace, field_selector=f"metadata.name={name}")


def _submitted(client: Client, file: Path, text: str, host: str) -> Run:
    """Theirs: the file as kfp's client sends it."""
    for _ in range(
        5
    ):  # on a busy machine its agent may report the Workflow before the run is stored: it is deleted then
        run = kfp(SUBMIT, str(file), host, text).rstrip().rpartition("\n")[2]
        selector = f"pipeline/runid={run}"
        if drive(client.list(WORKFLOWS, NAMESPACE, label_selector=selector)).items:
            return _finished(client, NAMESPACE, label_selector=selector)
    raise AssertionError("the backend has deleted the Workflows of five runs")


def _finished(client: Client, namespace: str, **selector: str) -> Run:
    found: list[Object] = []
    began = time.monotonic()

    def over() -> bool:
        found[:] = drive(client.list(WORKFLOWS, namespace, **selector)).items
        return bool(found) and (found[0].get("status") or {}).get("phase") in ("Succeeded", "Failed", "Error")

    until(over, timeout=LIMIT, every=0.05)
    waited = time.monotonic() - began
    (workflow,) = found
    status = workflow["status"]
    assert status["phase"] == "Succeeded", json.dumps(status)[:4000]
    name = workflow["metadata"]["name"]
    pods = drive(client.list(PODS, namespace, label_selector=f"workflows.argoproj.io/workflow={name}")).items
    seconds = _time(status["finishedAt"]) - _time(workflow["metadata"]["creationTimestamp"])
    return Run(seconds.total_seconds(), waited, len(pods))


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def kfp(program: str, *arguments: str, folder: str = "/") -> str:
    """What a program prints in the environment of kfp 2, which the tests make."""
    tests = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    find = [sys.executable, "-c", "from tools import kfp; print(kfp.python(2))"]
    python = subprocess.run(find, env=tests, capture_output=True, text=True, check=True, timeout=900).stdout.strip()
    command = [python, "-W", "ignore", "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=600).stdout


def client_of(kubeconfig: Path) -> Client:
    return Client(StdlibTransport(config.load(str(kubeconfig)), user_agent="bench"))
