"""The chart's dashboard on a cluster: a tenant sees the own namespace, by a token that a proxy hands on."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, Target, until
from scenarios.forwarding import answer, forwarded

from .operators import NAMESPACE, upgraded

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]
NAME = "dashboard.example.com"
DEPLOYMENT = "app.kubernetes.io/component=dashboard"
VALUES = {
    "dashboard__enabled": "true",
    "dashboard__names": f"{{{NAME}}}",
    # what `kubectl port-forward` forwards comes from the pod's own loopback device: it stands in for the proxy
    "dashboard__trustedProxies": "{127.0.0.0/8}",
}


def test_a_tenant_sees_its_own_jobs_and_no_others(
    kubectl: Kubectl, kubectl_binary: str, server: Target, namespace: str
) -> None:
    kubectl("create", "serviceaccount", "member")
    kubectl("create", "rolebinding", "member", "--clusterrole=view", f"--serviceaccount={namespace}:member")
    container = {"name": "train", "image": "busybox", "command": ["true"]}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    job = {
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "own"},
        "spec": {"suspend": True, "worker": worker},
    }  # fmt: skip
    kubectl("apply", "-f", "-", input=json.dumps(job))
    token = kubectl("create", "token", "member").stdout.strip()
    with upgraded(server, **VALUES):
        kubectl("-n", NAMESPACE, "rollout", "status", "deployment", "-l", DEPLOYMENT, "--timeout=120s", timeout=130)
        found = kubectl("-n", NAMESPACE, "get", "deployment", "-l", DEPLOYMENT, "-o", "name").stdout.strip()
        with forwarded(kubectl_binary, server, NAMESPACE, found, 8480) as address:
            own = {"Host": NAME, "Authorization": f"Bearer {token}"}
            jobs = f"http://{address}/jobs"
            until(lambda: f"/jobs/{namespace}/own" in answer(jobs, **own)[1], what="the own job is shown")
            assert answer(jobs, Host=NAME)[0] == 401
            assert answer(jobs, Host="elsewhere.example.com", Authorization=own["Authorization"])[0] == 421
            assert answer(jobs, Host=NAME, Authorization="Bearer made-up")[0] == 401
            status, text = answer(f"http://{address}/nodes", **own)
            assert (status, "you may not list nodes" in text) == (200, True)
