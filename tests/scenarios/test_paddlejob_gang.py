"""Gangs of PaddleJobs: all pods or none, and the job itself says what it waits for."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, need, until
from paddlecloud.kube.resource import Object
from unit.api.examples import documents

from .hands import EXAMPLES, HOLD, apply, conditions, identities, job, reached, read, release, status

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]

PODGROUPS = "podgroups.scheduling.volcano.sh"


@pytest.fixture(autouse=True)
def _volcano(kubectl: Kubectl) -> None:
    have = kubectl("get", PODGROUPS, check=False).returncode == 0
    need("volcano", have=have, hint="`make cluster WITH=volcano`")


def capacity(kubectl: Kubectl) -> int:
    """Whole CPUs of all nodes together."""
    shown = [node["status"]["allocatable"]["cpu"] for node in read(kubectl, "nodes")["items"]]
    return sum(int(cpu.removesuffix("m")) // (1000 if cpu.endswith("m") else 1) for cpu in shown)


def asking(name: str, cpu: str, *, workers: int, **spec: object) -> str:
    body = json.loads(job(name, HOLD, workers=workers, **spec))
    container = body["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": cpu}}
    return json.dumps(body)


def test_a_gang_that_does_not_fit_waits_whole_and_says_why_while_one_that_fits_runs(kubectl: Kubectl) -> None:
    too_many = capacity(kubectl) + 1
    apply(kubectl, asking("big", "900m", workers=too_many, schedulingPolicy={"queue": "default"}))
    until(lambda: status(kubectl, "big").get("phase") == "Pending")

    def reason() -> str:
        return str(status(kubectl, "big").get("message"))

    needs = f"{too_many} pods need cpu {900 * too_many}m together; "
    until(lambda: needs in reason() and "has not taken it up" not in reason(), timeout=60)
    group = read(kubectl, PODGROUPS, "big")
    assert group["spec"]["minMember"] == too_many
    assert group["metadata"]["ownerReferences"][0]["name"] == "big"

    apply(kubectl, asking("small", "50m", workers=3, schedulingPolicy={}))
    reached(kubectl, "small", "Running")
    pods = read(kubectl, "pods", "-l", "paddlepaddle.org/job-name=big")["items"]
    assert not [pod for pod in pods if pod["spec"].get("nodeName")], "not one pod of the big gang has a place"
    release(kubectl, *identities(kubectl, "small"))
    reached(kubectl, "small", "Completed")
    until(lambda: kubectl("get", PODGROUPS, "small", check=False).returncode != 0)


def test_in_the_manuals_volcano_form_servers_wait_for_workers_that_do_not_fit(kubectl: Kubectl) -> None:
    """The scheduler is named on the workers alone: were the servers not of the gang, they would run."""
    sample, group = documents(EXAMPLES / "manual" / "wide-and-deep-volcano.yaml")
    assert "schedulerName" not in sample["spec"]["ps"]["template"]["spec"]
    for role, cpu in (("ps", "50m"), ("worker", f"{capacity(kubectl) + 1}")):
        (container,) = sample["spec"][role]["template"]["spec"]["containers"]
        container |= {"image": "busybox", "command": ["sh", "-c", HOLD], "resources": {"requests": {"cpu": cpu}}}
    for obj in (sample, group):
        apply(kubectl, json.dumps(obj))
    name = sample["metadata"]["name"]

    def pods() -> list[Object]:
        return list(read(kubectl, "pods", "-l", f"paddlepaddle.org/job-name={name}")["items"])

    def refused() -> bool:
        """Whether the scheduler has looked at every pod and found no place for the gang."""
        found = [conditions(pod.get("status") or {}).get("PodScheduled") for pod in pods()]
        return found == ["False"] * 4

    until(refused, timeout=90)
    assert not [pod for pod in pods() if pod["spec"].get("nodeName")], "not one of the four has a place"
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods()} == {name}


def test_a_gang_grows_with_its_job(kubectl: Kubectl) -> None:
    apply(kubectl, asking("grows", "50m", workers=1, schedulingPolicy={}))
    reached(kubectl, "grows", "Running")
    kubectl("scale", "pdj/grows", "--replicas=2")
    until(lambda: status(kubectl, "grows").get("generation") == 1)
    reached(kubectl, "grows", "Running")
    spec = read(kubectl, PODGROUPS, "grows")["spec"]
    assert (spec["minMember"], spec["minResources"]["cpu"]) == (2, "100m")


def test_a_gang_that_is_not_scheduled_in_time_fails_with_the_reason(kubectl: Kubectl) -> None:
    policy = {"scheduleTimeoutSeconds": 5}
    apply(kubectl, asking("late", "900m", workers=capacity(kubectl) + 1, schedulingPolicy=policy))
    found = reached(kubectl, "late", "Failed")
    assert (found["reason"], found["failures"][-1]["failureClass"]) == ("ScheduleTimeout", "StartTimeout")
    assert "not scheduled within 5 seconds" in found["message"]
