"""Our controllers as pods: one of two replicas leads, and a job under way survives its loss."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, until

from .operators import LEASE, NAMESPACE, PADDLEJOB, SAMPLESET

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]


def leader(kubectl: Kubectl) -> str:
    """The pod that holds the lease; empty while none does."""
    holder = kubectl("get", "lease", LEASE, "-n", NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}").stdout
    return holder.rpartition("-")[0]


def job(name: str) -> str:
    main = {"name": "main", "image": "busybox", "command": ["sh", "-c", "until [ -e /tmp/end ]; do sleep 0.2; done"]}
    worker = {"replicas": 2, "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [main]}}}
    spec = {"cleanPodPolicy": "Never", "withGloo": 1, "worker": worker}
    meta = {"name": name}
    return json.dumps({"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": meta, "spec": spec})


def test_a_job_survives_the_loss_of_the_leader(kubectl: Kubectl) -> None:
    until(lambda: leader(kubectl) != "", timeout=60)
    kubectl("create", "-f", "-", input=job("survivor"))
    running = "--for=jsonpath={.status.phase}=Running"
    kubectl("wait", running, "pdj/survivor", "--timeout=90s", timeout=100)
    uids = kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").stdout.split()
    first = leader(kubectl)
    kubectl("delete", "pod", first, "-n", NAMESPACE, "--grace-period=0", "--force")
    until(lambda: leader(kubectl) not in ("", first), timeout=60)
    for worker in (0, 1):
        kubectl("exec", f"survivor-worker-{worker}", "--", "touch", "/tmp/end")
    kubectl("wait", "--for=jsonpath={.status.phase}=Completed", "pdj/survivor", "--timeout=90s", timeout=100)
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}").stdout.split() == uids


def test_the_controllers_are_listed_under_the_names_that_the_manual_shows(kubectl: Kubectl) -> None:
    for deployment in (PADDLEJOB, SAMPLESET):  # pods that another test ended may still be on their way back
        kubectl("rollout", "status", f"deployment/{deployment}", "-n", NAMESPACE, "--timeout=120s", timeout=130)
    lines = kubectl("get", "pods", "-n", NAMESPACE, "--no-headers").stdout.splitlines()
    for deployment in (PADDLEJOB, SAMPLESET):
        shown = [line.split()[1:3] for line in lines if line.startswith(f"{deployment}-")]
        assert shown == [["1/1", "Running"]] * 2, lines
    assert (PADDLEJOB, SAMPLESET) == ("pdc-paddlecloud-paddlejob", "pdc-paddlecloud-sampleset")


def test_a_controller_shows_its_health_and_figures_and_has_no_rights_beyond_its_work(kubectl: Kubectl) -> None:
    deployment = f"deployment/{PADDLEJOB}"
    fetch = "import os, urllib.request as u; print(u.urlopen(f'http://{os.environ[\"POD_IP\"]}:8081/metrics').read().decode())"
    shown = kubectl("exec", "-n", NAMESPACE, deployment, "--", "python", "-c", fetch).stdout
    assert "paddlecloud_leader" in shown
    who = f"system:serviceaccount:{NAMESPACE}:paddlejob-sa"
    for verb, thing, allowed in (("create", "pods", "yes"), ("list", "secrets", "no"), ("delete", "nodes", "no")):
        answer = kubectl("auth", "can-i", verb, thing, "--as", who, check=False).stdout
        assert answer.split()[:1] == [allowed], f"{verb} {thing}"
