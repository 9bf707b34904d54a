"""Real training that is hurt at random moments: nodes are lost; ranks, servers, controllers are killed.

On the embedded platform the last is the whole control plane. What must hold: the loss goes on from the checkpoint,
never from the beginning; every restart is counted once; and a job that is killed more often than its budget allows
fails with the class of failure in its status.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from harness import Kubectl, Target, until
from paddlecloud.controllers.paddlejob.failure.cause import SECONDARY
from paddlecloud.kube.resource import Object

from .hands import APART, EXAMPLES, Hands, apply, identities, kill, mortal_node, nodes_of, reached, status

pytestmark = [pytest.mark.paddle, pytest.mark.full, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]

SAVED_EVERY = 10
STARTS = re.compile(r"starts at step (\d+)")
LOSSES = re.compile(r"step (\d+)/\d+ loss ([0-9.]+)")


@pytest.fixture
def dice() -> random.Random:
    """Chooses the moments; a run that failed is repeated with the seed it printed."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    return random.Random(seed)


def prepared(server: Target, path: str, role: str, *, command: str) -> Object:
    """An example whose program can be killed by `kill`."""
    job: Object = yaml.safe_load((EXAMPLES / path).read_text())
    container = job["spec"][role]["template"]["spec"]["containers"][0]
    server.offer(container["image"])
    container["command"] = ["sh", "-c", f"echo $$$$ > /tmp/pid; exec {command}"]
    return job


class Training:
    """A job that trains for ever, and its loss by step, whichever pod of which generation reported it."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._kubectl, self.name = kubectl, name
        self.curve: dict[int, float] = {}

    @property
    def status(self) -> Object:
        return status(self._kubectl, self.name)

    def log(self) -> str:
        return self._kubectl("logs", f"{self.name}-worker-0", check=False).stdout

    def step(self) -> int:
        self.curve.update({int(step): float(loss) for step, loss in LOSSES.findall(self.log())})
        return max(self.curve, default=0)

    def goes_on(self, steps: int) -> None:
        target = self.step() + steps
        until(lambda: self.step() >= target, timeout=120, every=0.3)

    def begun_at(self) -> int | None:
        found = STARTS.search(self.log())
        return int(found.group(1)) if found else None


def endless(kubectl: Kubectl, server: Target, folder: Path, **spec: object) -> Training:
    """The elastic example, with checkpoints in a folder that all nodes see."""
    command = "python elastic.py --checkpoint /checkpoint --steps 1000000 --pause 0.04"
    job = prepared(server, "programs/elastic.yaml", "worker", command=command)
    job["spec"].update(spec)
    pod = job["spec"]["worker"]["template"]["spec"]
    pod["affinity"] = APART
    pod["volumes"][0]["hostPath"]["path"] = str(folder / "checkpoint")
    apply(kubectl, json.dumps(job))
    return Training(kubectl, job["metadata"]["name"])


def test_training_goes_on_from_its_checkpoint_whatever_is_killed(
    kubectl: Kubectl, server: Target, hands: Hands, tmp_path: Path, dice: random.Random
) -> None:
    training = endless(kubectl, server, tmp_path, backoffLimit=2)
    training.goes_on(SAVED_EVERY)
    first = training.curve[min(training.curve)]

    def rank() -> None:
        kill(kubectl, f"elastic-worker-{dice.randrange(2)}")

    def controller() -> None:
        hands.stop_controller()
        hands.start_controller()

    def both() -> None:
        rank()
        controller()

    blows: list[tuple[Callable[[], None], int]] = [(rank, 1), (controller, 0), (both, 1)]
    dice.shuffle(blows)
    restarts = 0
    for blow, counted in blows:
        training.goes_on(dice.randrange(3 * SAVED_EVERY))
        before, pods = training.step(), identities(kubectl, "elastic")
        blow()
        restarts += counted
        until(lambda wanted=restarts: (training.status.get("restarts") or 0) == wanted, timeout=60)  # type: ignore[misc]
        reached(kubectl, "elastic", "Running", timeout=120)
        if counted:
            assert not set(identities(kubectl, "elastic").values()) & set(pods.values()), "all ranks began anew"
            until(lambda: training.begun_at() is not None, timeout=120)
            begun = training.begun_at()
            assert begun is not None
            assert begun >= before - SAVED_EVERY, "from the checkpoint"
        else:
            assert identities(kubectl, "elastic") == pods, "nobody noticed"
        training.goes_on(SAVED_EVERY)
    assert (training.status["phase"], training.status["restarts"]) == ("Running", 2)

    rank()
    found = reached(kubectl, "elastic", "Failed")
    assert found["reason"] == "BackoffLimitExceeded"
    assert [failure["action"] for failure in found["failures"]] == ["Restart", "Restart", "Fail"]
    classes = [failure["failureClass"] for failure in found["failures"]]
    assert classes[-1] == "Killed", "what a job fails with is waited for"
    assert set(classes) <= {"Killed", *SECONDARY}, found["failures"]
    before = training.step()
    kubectl("annotate", "pdj/elastic", "paddlepaddle.org/retry-at=now")
    training.goes_on(SAVED_EVERY)
    assert (training.begun_at() or 0) >= before - SAVED_EVERY
    assert training.curve[max(training.curve)] < 0.5 * first, "it went on learning; it did not begin anew"


def test_training_goes_on_elsewhere_from_its_checkpoint_when_a_node_is_lost(
    kubectl: Kubectl, server: Target, hands: Hands, tmp_path: Path
) -> None:
    hands.have_nodes(3)
    training = endless(kubectl, server, tmp_path, backoffLimit=0)
    training.goes_on(2 * SAVED_EVERY)
    lost, before = mortal_node(kubectl, "elastic"), training.step()
    hands.lose_node(lost)
    try:
        until(lambda: training.status.get("disruptions") == 1, timeout=150)
        found = reached(kubectl, "elastic", "Running", timeout=200)
        assert (found["failures"][-1]["failureClass"], found["failures"][-1]["node"]) == ("NodeLost", lost)
        assert lost not in nodes_of(kubectl, "elastic").values()
        until(lambda: training.begun_at() is not None, timeout=120)
        assert (training.begun_at() or 0) >= before - SAVED_EVERY, "from the checkpoint"
        training.goes_on(SAVED_EVERY)
    finally:
        hands.restore_node(lost)
    assert training.status.get("restarts") is None, "a budget of its own: the program's was 0"


def test_a_killed_server_restarts_the_gang_and_the_job_still_learns(
    kubectl: Kubectl, server: Target, dice: random.Random
) -> None:
    job = prepared(server, "manual/wide-and-deep.yaml", "ps", command="python wide_and_deep.py")
    job["metadata"] = {"name": "wide"}
    job["spec"]["cleanPodPolicy"] = "Never"
    apply(kubectl, json.dumps(job))
    epoch = dice.randrange(1, 3)
    until(lambda: f"epoch {epoch}/" in kubectl("logs", "wide-worker-0", check=False).stdout, timeout=200, every=0.3)
    server_pod = f"wide-ps-{dice.randrange(2)}"
    kill(kubectl, server_pod)
    until(lambda: status(kubectl, "wide").get("restarts") == 1, timeout=60)
    found = reached(kubectl, "wide", "Completed", "Failed", timeout=300)
    assert (found["phase"], found["restarts"]) == ("Completed", 1), found
    assert (found["failures"][-1]["failureClass"], found["failures"][-1]["pod"]) == ("Killed", server_pod)
    assert "learned" in kubectl("logs", "wide-worker-0").stdout
