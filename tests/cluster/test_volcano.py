"""Gangs on real Volcano: all of a group or none of it."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, need

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _volcano(kubectl: Kubectl) -> None:
    have = kubectl("get", "deployment", "volcano-scheduler", "-n", "volcano-system", check=False).returncode == 0
    need("volcano", have=have, hint="`make cluster WITH=volcano`")


def gang(name: str, *, least: int, pods: int, cpu: str) -> str:
    """A PodGroup and its pods."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least},
    }
    main = {"name": "main", "image": "busybox", "command": ["sleep", "600"], "resources": {"requests": {"cpu": cpu}}}
    members = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "labels": {"gang": name},
                "annotations": {"scheduling.k8s.io/group-name": name},
            },
            "spec": {"schedulerName": "volcano", "terminationGracePeriodSeconds": 1, "containers": [main]},
        }
        for number in range(pods)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [group, *members]})


def placed(kubectl: Kubectl, name: str) -> int:
    """How many pods of a gang have a node."""
    shown = kubectl("get", "pods", "-l", f"gang={name}", "-o", "jsonpath={.items[*].spec.nodeName}").stdout
    return len(shown.split())


def capacity(kubectl: Kubectl) -> int:
    """Whole CPUs of all nodes together."""
    shown = kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.allocatable.cpu}").stdout
    return sum(int(cpu) for cpu in shown.split())


def test_a_gang_that_does_not_fit_waits_whole_while_one_that_fits_runs(kubectl: Kubectl) -> None:
    more = capacity(kubectl) + 1
    kubectl("create", "-f", "-", input=gang("big", least=more, pods=more, cpu="900m"))
    unschedulable = "--for=condition=Unschedulable"
    kubectl("wait", unschedulable, "podgroup/big", "--timeout=60s", timeout=70)
    assert placed(kubectl, "big") == 0
    kubectl("create", "-f", "-", input=gang("small", least=3, pods=3, cpu="50m"))
    kubectl("wait", "--for=condition=Ready", "pod", "-l", "gang=small", "--timeout=60s", timeout=70)
    assert placed(kubectl, "big") == 0


def test_without_the_gang_as_many_of_the_same_pods_run_as_fit(kubectl: Kubectl) -> None:
    """The control: it is the group that holds the pods of the test above back, and not their size."""
    more = capacity(kubectl) + 1
    kubectl("create", "-f", "-", input=gang("loose", least=1, pods=more, cpu="900m"))
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "podgroup/loose", "--timeout=60s", timeout=70)
    assert 1 <= placed(kubectl, "loose") < more


def test_its_webhook_refuses_a_job_that_could_never_start(kubectl: Kubectl) -> None:
    main = {"name": "main", "image": "busybox"}
    task = {"name": "t", "replicas": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [main]}}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "never"},
        "spec": {"minAvailable": 5, "tasks": [task]},
    }
    refused = kubectl("create", "-f", "-", input=json.dumps(job), check=False)
    assert refused.returncode != 0
    assert "denied the request" in refused.stderr
