"""Virtual nodes with real processes, through `pdc` as a user has it: gangs, explanations, loss and return of a node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import until

GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {minMember: %d}
"""
MEMBER = """
---
apiVersion: v1
kind: Pod
metadata: {name: gang-%d, labels: {app: gang}, annotations: {scheduling.k8s.io/group-name: gang}}
spec:
  schedulerName: volcano
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: alpine
    command: [sleep, "600"]
    resources: {requests: {cpu: "3"}}
"""
HELD = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: narrow}
spec: {capability: {cpu: 100m}}
---
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {name: held}
spec:
  schedulingPolicy: {queue: narrow}
  worker:
    replicas: 2
    template:
      spec:
        containers: [{name: main, image: alpine, command: [sleep, "1"], resources: {requests: {cpu: 70m}}}]
"""
REPLICAS = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: alpine, command: [sleep, "600"], resources: {requests: {cpu: 10m}}}]
"""
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: alpine, command: [sleep, "600"], resources: {requests: {cpu: 10m}}}]
"""
STAYING = """
apiVersion: v1
kind: Pod
metadata: {name: staying, labels: {app: staying}}
spec:
  nodeName: leaving
  terminationGracePeriodSeconds: 600
  containers: [{name: main, image: alpine, command: [sh, -c, "trap '' TERM; while :; do sleep 1; done"]}]
"""


def pdc(*args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paddlecloud.cli.main", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0 or not check, f"pdc {' '.join(args)}: {done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """`pdc` on a platform of two nodes of its own."""
    data = tmp_path_factory.mktemp("nodes")
    pdc("up", "--data", str(data), "--port", "0", "--nodes", "2")

    def run(*args: str, **options: Any) -> Any:
        return pdc(*args, "--kubeconfig", str(data / "kubeconfig"), **options)

    yield run
    log = (data / "platform.log").read_text()
    pdc("down", "--data", str(data))
    assert "Traceback" not in log, log[-4000:]


def pods(machine: Callable[..., Any], app: str) -> list[Any]:
    found: list[Any] = json.loads(machine("get", "pods", "-l", f"app={app}", "-o", "json").stdout)["items"]
    return found


def running(machine: Callable[..., Any], app: str) -> list[str]:
    """The nodes of the pods that run."""
    return [
        pod["spec"]["nodeName"]
        for pod in pods(machine, app)
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]


def test_a_gang_waits_is_explained_and_runs_on_nodes_added_for_it(machine: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "gang.yaml").write_text(GROUP % 2 + MEMBER % 0 + MEMBER % 1)
    machine("apply", "-f", str(tmp_path / "gang.yaml"))

    def explained() -> Any:
        body = json.loads(machine("explain", "pod/gang-0", "-o", "json").stdout)
        return body if body.get("scheduling", {}).get("code") == "Unschedulable" else None

    verdict = until(explained, what="the gang is explained")["scheduling"]
    assert verdict["needs"] == {"each": {"cpu": "3"}, "pods": 2, "minMember": 2, "placed": 0}
    advice = next(entry for entry in verdict["wouldStartIf"] if entry["change"] == "node")
    assert "需要" in machine("explain", "pod/gang-0", "--lang", "zh").stdout
    for number in range(advice["count"]):
        machine("node", "add", f"extra-{number}", "--capacity", f"cpu={advice['capacity']['cpu']}")
    until(lambda: len(running(machine, "gang")) == 2, what="the gang runs where the advice says")
    machine("delete", "-f", str(tmp_path / "gang.yaml"), "-y")
    for number in range(advice["count"]):
        machine("node", "rm", f"extra-{number}", "-y")
    names = [n["metadata"]["name"] for n in json.loads(machine("get", "nodes", "-o", "json").stdout)["items"]]
    assert len(names) == 2


def test_a_job_held_by_its_queue_is_explained_and_runs_once_the_advice_is_taken(
    machine: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "held.yaml").write_text(HELD)
    machine("apply", "-f", str(tmp_path / "held.yaml"))

    def explained() -> Any:
        return json.loads(machine("explain", "pdj/held", "-o", "json").stdout).get("scheduling")

    verdict = until(explained, what="the job is explained")
    assert (verdict["code"], verdict["queue"]) == ("QueueTooSmall", "narrow")
    assert verdict["needs"] == {"all": {"cpu": "140m"}, "pods": 0, "minMember": 2, "placed": 0}
    assert len(verdict["nodes"]) == 2, "what is free where"
    assert all(entry["free"]["cpu"] for entry in verdict["nodes"])
    advice = next(entry for entry in verdict["wouldStartIf"] if entry["change"] == "capability")
    text = machine("explain", "pdj/held").stdout
    assert "let in if       queue narrow might use cpu 140m" in text
    wider = HELD.partition("---")[0].replace("100m", advice["atLeast"]["cpu"])
    (tmp_path / "wider.yaml").write_text(wider)
    machine("apply", "-f", str(tmp_path / "wider.yaml"))
    machine("wait", "pdj/held", "--for=jsonpath={.status.phase}=Completed", "--timeout=60s")
    machine("delete", "-f", str(tmp_path / "held.yaml"), "-y")


def test_pods_of_a_lost_node_are_made_anew_on_the_other(machine: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(REPLICAS)
    machine("apply", "-f", str(tmp_path / "web.yaml"))
    first = until(
        lambda: set(where) if len(set(where := running(machine, "web"))) == 2 else None, what="one on each node"
    )
    lost, kept = sorted(first)
    machine("node", "fail", lost, "-y")
    until(lambda: running(machine, "web") == [kept, kept], what="both run on the node that is left")
    assert machine("node", "fail", "no-such-node", "-y", check=False).returncode == 3
    machine("node", "restore", lost)
    assert machine("node", "rm", lost, "-y", check=False).returncode == 4  # it is the machine's own
    machine("delete", "-f", str(tmp_path / "web.yaml"), "-y")


def test_a_node_leaves_with_the_pods_of_its_daemon_sets_and_names_those_that_hold_it(
    machine: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "agent.yaml").write_text(AGENT)
    (tmp_path / "staying.yaml").write_text(STAYING)
    machine("node", "add", "leaving")
    for file in ("agent.yaml", "staying.yaml"):
        machine("apply", "-f", str(tmp_path / file))
    until(lambda: "leaving" in running(machine, "agent"), what="its daemon runs")
    until(lambda: "leaving" in running(machine, "staying"), what="the other pod runs")
    held = machine("node", "rm", "leaving", "-y", "--timeout", "1s", check=False)
    assert held.returncode == 124
    assert "pods of node/leaving have not ended: default/staying" in held.stderr
    assert "agent" not in held.stderr
    assert "next:  pdc describe node leaving" in held.stderr
    machine("delete", "pod", "staying", "-y", "--force", "--grace-period=0")
    machine("node", "rm", "leaving", "-y")
    until(lambda: "leaving" not in [pod["spec"]["nodeName"] for pod in pods(machine, "agent")], what="it is gone too")
    machine("delete", "-f", str(tmp_path / "agent.yaml"), "-y")
