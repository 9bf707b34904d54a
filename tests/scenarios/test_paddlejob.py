"""PaddleJobs as users run them, with real Paddle: the manual's YAML and this project's own examples."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

import pytest
import yaml

from harness import Kubectl, Target, until

from .hands import EXAMPLES, Hands, apply, reached, read

pytestmark = [pytest.mark.paddle, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

DIGITS = "paddlecloud/examples:v1"
WIDE_AND_DEEP = "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1"
Run = Callable[..., str]


@pytest.fixture
def run(server: Target, kubectl: Kubectl) -> Run:
    """Applies a file in the test's own namespace; returns the name of its job. All else stays as written."""

    def put(path: str, image: str, **changes: object) -> str:
        server.offer(image)
        name = ""
        for obj in yaml.safe_load_all((EXAMPLES / path).read_text()):
            obj["metadata"].pop("namespace", None)
            if obj["kind"] == "PaddleJob":
                name = obj["metadata"]["name"]
                obj["spec"].update(changes)
            apply(kubectl, json.dumps(obj))
        return name

    return put


def learned(kubectl: Kubectl, pod: str) -> None:
    log = kubectl("logs", pod).stdout
    costs = [float(text) for text in re.findall(r"epoch .* (?:cost|loss) ([0-9.]+)", log)]
    assert len(costs) >= 2, log[-2000:]
    untrained = max(costs[0], math.log(2))  # who starts late finds a model that others have taught
    assert costs[-1] < 0.85 * untrained, costs


@pytest.mark.core
def test_two_workers_learn_digits_and_agree_on_every_weight(kubectl: Kubectl, run: Run) -> None:
    name = run("paddlejob/collective-digits.yaml", DIGITS)
    reached(kubectl, name, "Completed", timeout=400)
    for rank in range(2):
        log = kubectl("logs", f"{name}-worker-{rank}").stdout
        assert f"rank {rank} of 2:" in log
        assert float(re.findall(r"accuracy[ =:]+([0-9.]+)", log)[-1]) > 0.9, log[-2000:]
        assert "weights equal on 2 ranks: yes" in log, log[-2000:]


@pytest.mark.core
def test_the_manuals_wide_and_deep_trains_on_parameter_servers(kubectl: Kubectl, run: Run) -> None:
    name = run("manual/wide-and-deep.yaml", WIDE_AND_DEEP)
    status = reached(kubectl, name, "Completed", timeout=400)
    assert (status["mode"], status["ps"]["ready"], status["worker"]["ready"]) == ("PS", "2/2", "0/2")
    header, line = (re.split(r" {2,}", text.strip()) for text in kubectl("get", "pdj").stdout.splitlines())
    assert header == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert line[:5] == [name, "Completed", "PS", "2/2", "0/2"]
    shown = [line.split()[:3] for line in kubectl("get", "pods", "--no-headers").stdout.splitlines()]
    assert [pod for pod, *_ in shown] == [f"{name}-{role}-{index}" for role in ("ps", "worker") for index in range(2)]
    assert [row[1:] for row in shown[2:]] == [["0/1", "Completed"]] * 2
    until(lambda: _statuses(kubectl) == ["Completed"] * 4, timeout=60)  # servers too: SIGTERM is their planned end
    for index in range(2):
        learned(kubectl, f"{name}-worker-{index}")


def _statuses(kubectl: Kubectl) -> list[str]:
    return [line.split()[2] for line in kubectl("get", "pods", "--no-headers").stdout.splitlines()]


@pytest.mark.full
def test_the_manuals_volcano_form_trains_as_one_gang(kubectl: Kubectl, run: Run) -> None:
    name = run("manual/wide-and-deep-volcano.yaml", WIDE_AND_DEEP)
    reached(kubectl, name, "Completed", timeout=400)
    learned(kubectl, f"{name}-worker-0")
    group = read(kubectl, "podgroups.scheduling.volcano.sh", name)
    assert "ownerReferences" not in group["metadata"], "the user's own, used as it is and left alone"
    pods = read(kubectl, "pods")["items"]
    assert len(pods) == 4
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}, "named on the workers, it holds for all roles"
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {name}


@pytest.mark.full
def test_under_the_launcher_ranks_find_each_other_by_name(kubectl: Kubectl, run: Run) -> None:
    name = run("programs/digits-launch.yaml", DIGITS)
    reached(kubectl, name, "Completed", timeout=400)
    learned(kubectl, f"{name}-worker-0")
    assert "weights equal on 2 ranks: yes" in kubectl("logs", f"{name}-worker-1").stdout
    endpoints = read(kubectl, "configmap", name)["data"]["PADDLE_TRAINER_ENDPOINTS"]
    assert f"{name}-worker-0.{name}." in endpoints


@pytest.mark.full
def test_on_the_nodes_own_network_ranks_reach_each_other_whatever_their_node_calls_itself(
    kubectl: Kubectl, hands: Hands, run: Run
) -> None:
    """Gloo listens on the address that its host name resolves to, and that of a node may resolve to none."""
    hands.have_nodes(2)
    name = run("paddlejob/collective-digits.yaml", DIGITS, intranet="Host")
    reached(kubectl, name, "Completed", timeout=400)
    assert len({pod["spec"]["nodeName"] for pod in read(kubectl, "pods")["items"]}) == 2
    assert "weights equal on 2 ranks: yes" in kubectl("logs", f"{name}-worker-1").stdout


@pytest.mark.full
def test_on_the_nodes_own_network_server_and_worker_train_together(kubectl: Kubectl, hands: Hands, run: Run) -> None:
    """One of each, for every rank needs a node; without gloo, the worker waits until the server listens."""
    hands.have_nodes(2)
    (job,) = yaml.safe_load_all((EXAMPLES / "manual/wide-and-deep.yaml").read_text())
    roles = {role: {**job["spec"][role], "replicas": 1} for role in ("ps", "worker")}
    name = run("manual/wide-and-deep.yaml", WIDE_AND_DEEP, intranet="Host", withGloo=0, **roles)
    reached(kubectl, name, "Completed", timeout=400)
    learned(kubectl, f"{name}-worker-0")
    assert len({pod["spec"]["nodeName"] for pod in read(kubectl, "pods")["items"]}) == 2
