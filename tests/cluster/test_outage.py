"""The API server is away for a minute: jobs train on, controllers wait for it, and afterwards everything is true again.

Leases run out meanwhile, so those who led end and start anew; that they do so once, and then wait, is part of it. The
fixture gives nodes up after twenty seconds: when the API is back they count as lost for a moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from chart_exercise import job
from harness import Kubectl, Target, until

from .harness.cluster import Cluster
from .harness.layout import CONTROL
from .harness.machine import Machine, running_machines
from .harness.target import fixture
from .release import WIDE_AND_DEEP, as_it_is_here, identities, leaders, restarts

pytestmark = [pytest.mark.full, pytest.mark.timeout(900), pytest.mark.usefixtures("operators")]

OUTAGE = 60.0


@pytest.fixture
def machines(kubectl: Kubectl) -> Iterator[Cluster]:
    made = fixture()
    yield made
    if not made.control.runs("kube-apiserver"):
        made.api_on()


def trainers(cluster: Cluster, mark: str) -> set[str]:
    """Processes of pods on any node whose command holds a word, found without asking the API."""
    itself_not = f"[{mark[0]}]{mark[1:]}"
    return {
        f"{name}:{pid}"
        for name in running_machines(cluster.layout)
        if name != CONTROL
        for pid in Machine(cluster.layout, name).run(["sh", "-c", f"pgrep -f '{itself_not}' || :"]).split()
    }


def at_work(kubectl: Kubectl) -> set[str]:
    """Deployments that are as they should be, engines among them; those of tests may be on their way out."""
    found = json.loads(kubectl("get", "deployments", "-A", "-o", "json").stdout)["items"]
    return {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in found
        if not each["metadata"]["namespace"].startswith("t-")
        and each.get("status", {}).get("availableReplicas", 0) >= each["spec"]["replicas"]
    }


def test_a_minute_without_an_api_server_costs_no_job_anything(
    kubectl: Kubectl, namespace: str, server: Target, machines: Cluster
) -> None:
    server.offer(WIDE_AND_DEEP)
    hold = f"echo {namespace} > /dev/null; until [ -e /tmp/go ]; do sleep 0.2; done"

    def phase(name: str) -> str:
        return kubectl("get", "pdj", name, "-o", "jsonpath={.status.phase}").stdout

    def start(name: str) -> None:
        kubectl("create", "-f", "-", input=json.dumps(job(name, hold, workers=2)))
        until(lambda: phase(name) == "Running", timeout=120)

    def finish(name: str) -> None:
        for worker in range(2):
            kubectl("exec", f"{name}-worker-{worker}", "--", "touch", "/tmp/go")
        until(lambda: phase(name) == "Completed", timeout=90)

    start("survivor")
    kubectl("create", "-f", "-", input=as_it_is_here("wide-and-deep.yaml", "trains"))
    until(lambda: phase("trains") == "Running", timeout=180)
    before = {name: identities(kubectl, name) for name in ("survivor", "trains")}
    begun = restarts(kubectl)
    until(lambda: len(leaders(kubectl)) == 2, timeout=60)
    healthy, working = at_work(kubectl), trainers(machines, namespace)
    assert len(working) == 2

    machines.api_off()
    began = time.monotonic()
    until(lambda: time.monotonic() - began >= OUTAGE, timeout=2 * OUTAGE)
    assert trainers(machines, namespace) == working, "training goes on without it"
    machines.api_on()

    until(lambda: len(leaders(kubectl)) == 2, timeout=60)
    start("afterwards")
    until(lambda: phase("survivor") == "Running", timeout=60)
    finish("survivor")
    finish("afterwards")
    until(lambda: phase("trains") == "Completed", timeout=300)
    for name, pods in before.items():
        assert identities(kubectl, name) == pods, "none lost, none made twice"
        assert set(restarts(kubectl, f"paddlepaddle.org/job-name={name}", namespace=namespace).values()) == {0}
        state = json.loads(kubectl("get", "pdj", name, "-o", "json").stdout)["status"]
        assert not state.get("restarts")
        assert "Restarting" not in {each["type"] for each in state["conditions"]}
    until(lambda: healthy <= at_work(kubectl), timeout=240)
    ended = {name: count - begun.get(name, 0) for name, count in restarts(kubectl).items()}
    assert set(ended) == set(begun), "the controllers' pods are the same"
    assert max(ended.values()) <= 2, "who led ended, started again and waited; a crash loop would be at three"
