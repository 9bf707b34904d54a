"""What jobs go through, phase by phase, with the conditions that hold in each, and the events of their pods."""

from __future__ import annotations

import json
import re
import time

import pytest

from harness import Kubectl, until
from paddlecloud.cli.objects.events import order
from paddlecloud.cli.objects.why import why
from paddlecloud.cli.render.events import rows

from .hands import HOLD, Hands, Story, apply, identities, job, kill, reached, read, release, status

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]

FORMING = ("Forming", "Created")
RUNNING = ("Running", "Created PodsReady Running")
ANEW = "Created Restarting"
SUSPENDED = ("Suspended", "Suspended")
COMPLETED = ("Completed", "Created PodsReady Succeeded")
FAILED = ("Failed", "Created Failed PodsReady")

COLLECTIVE = [
    FORMING, RUNNING, ("Restarting", ANEW), RUNNING, ("Scaling", ANEW), RUNNING, SUSPENDED, FORMING, RUNNING, COMPLETED,
]  # fmt: skip
WITH_SERVERS = [FORMING, RUNNING, COMPLETED]
WITHOUT_BUDGET = [FORMING, RUNNING, FAILED]


def test_a_collective_job_that_is_hurt_scaled_and_suspended(kubectl: Kubectl, story: Story) -> None:
    body = json.loads(job("many", HOLD, workers=2, elastic=1))
    body["spec"]["worker"] |= {"requests": 1, "limits": 3}
    apply(kubectl, json.dumps(body))
    reached(kubectl, "many", "Running")
    kill(kubectl, "many-worker-1")
    until(lambda: status(kubectl, "many").get("generation") == 1)
    reached(kubectl, "many", "Running")
    kubectl("scale", "pdj/many", "--replicas=3")
    until(lambda: status(kubectl, "many").get("generation") == 2)
    assert reached(kubectl, "many", "Running")["worker"]["ready"] == "3/3"
    kubectl("patch", "pdj", "many", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    reached(kubectl, "many", "Suspended")
    until(lambda: not identities(kubectl, "many"))
    kubectl("patch", "pdj", "many", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    reached(kubectl, "many", "Running")
    release(kubectl, *identities(kubectl, "many"))
    reached(kubectl, "many", "Completed")
    until(lambda: story.reported("many")[-1] == COMPLETED)
    assert story.reported("many") == COLLECTIVE


def test_the_pods_of_a_healthy_job_have_the_events_of_kubernetes_and_nothing_alarming(kubectl: Kubectl) -> None:
    """As `pdc events` shows them: a cluster's kubelet warns of the ConfigMap that the pods of a job wait for.

    A busy cluster's kubelet may also be late with the volume of its own for the API's token; that is not the job's.
    """
    apply(kubectl, job("calm", "true"))
    reached(kubectl, "calm", "Completed")
    for pod in ("calm-worker-0", "calm-worker-1"):
        shown: list[list[object]] = []

        def complete(pod: str = pod, shown: list[list[object]] = shown) -> bool:
            found = read(kubectl, "events", "--field-selector", f"involvedObject.name={pod}")["items"]
            listed = rows(sorted(found, key=order), time.time(), {})
            shown[:] = [row for row in listed if "kube-api-access" not in str(row[-1])]
            # While a pod waits, a cluster's kubelet pulls again with each attempt to start its container.
            steps = dict.fromkeys(reason for _, _, reason, *_ in shown if reason not in ("Waiting", "Pulling"))
            return list(steps) == ["Scheduled", "Pulled", "Created", "Started"]

        try:
            until(complete)
        except AssertionError:
            raise AssertionError(f"{pod} has the events {shown}") from None
        assert {kind for _, kind, *_ in shown} == {"Normal"}, shown


def test_a_job_that_is_scaled_and_does_not_fit_says_which_pod_has_no_node(kubectl: Kubectl, hands: Hands) -> None:
    """Its other pods wait for that one; neither the status nor the verdict names them."""
    body = json.loads(job("wider", HOLD, workers=2, elastic=1))
    body["spec"]["worker"] |= {"requests": 1, "limits": 3}
    container = body["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"example.com/seat": "1"}}
    with hands.declared({"example.com/seat": "2"}, {}):
        apply(kubectl, json.dumps(body))
        reached(kubectl, "wider", "Running")
        kubectl("scale", "pdj/wider", "--replicas=3")
        cause = re.compile(r"wider-worker-\d is not scheduled: .*Insufficient example.com/seat")
        until(lambda: bool(cause.match(str(status(kubectl, "wider").get("message")))), timeout=120)
        pods = read(kubectl, "pods", "-l", "paddlepaddle.org/job-name=wider")["items"]
        verdict = why(read(kubectl, "pdj", "wider"), pods=pods, now=time.time())
        assert verdict.reason == "Unschedulable"
        assert cause.match(verdict.text.removeprefix("Scaling: ")), verdict
        kubectl("delete", "pdj/wider")
        until(lambda: not identities(kubectl, "wider"))


def test_jobs_with_servers_that_end_well_and_badly(kubectl: Kubectl, story: Story) -> None:
    program = f'test "$TRAINING_ROLE" = TRAINER || exec sleep 600; {HOLD}; test ! -e /tmp/fail'
    apply(kubectl, job("well", program, ps=1))
    apply(kubectl, job("badly", program, ps=1, pod={"restartPolicy": "Never"}))
    for name in ("well", "badly"):
        reached(kubectl, name, "Running")
    kubectl("exec", "badly-worker-0", "--", "touch", "/tmp/fail")
    release(kubectl, "badly-worker-0", "well-worker-0", "well-worker-1")
    reached(kubectl, "well", "Completed")
    reached(kubectl, "badly", "Failed")
    until(lambda: (story.reported("well")[-1], story.reported("badly")[-1]) == (COMPLETED, FAILED))
    assert (story.reported("well"), story.reported("badly")) == (WITH_SERVERS, WITHOUT_BUDGET)
