"""Collective training on the nodes' own network of a cluster: gloo is told which interface to use."""

from __future__ import annotations

import json

import pytest
import yaml

from harness import Kubectl, Target, need
from scenarios.hands import EXAMPLES, apply, events, reached, read

pytestmark = [pytest.mark.full, pytest.mark.paddle, pytest.mark.timeout(600), pytest.mark.usefixtures("operators")]


def test_gloo_finds_its_peers_by_interface_and_without_one_the_job_says_what_is_missing(
    kubectl: Kubectl, server: Target
) -> None:
    ready = kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ")
    need("nodes", have=ready >= 2, hint=f"two nodes; this cluster has {ready}: `make cluster NODES=3`")
    server.offer("paddlecloud/examples:v1")
    job = yaml.safe_load((EXAMPLES / "programs" / "digits.yaml").read_text())
    job["spec"] |= {"intranet": "Host", "backoffLimit": 0}
    job["metadata"]["name"] = "nameless"
    apply(kubectl, json.dumps(job))
    found = reached(kubectl, "nameless", "Failed", timeout=200)
    assert found["failures"][-1]["failureClass"] == "NoHostName"
    assert "GLOO_SOCKET_IFNAME" in events(kubectl, "nameless")["Failed"]
    container = job["spec"]["worker"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "GLOO_SOCKET_IFNAME", "value": "eth0"}]
    job["metadata"]["name"] = "named"
    apply(kubectl, json.dumps(job))
    reached(kubectl, "named", "Completed", timeout=200)
    assert "weights equal on 2 ranks: yes" in kubectl("logs", "named-worker-1").stdout
    mine = read(kubectl, "pods", "-l", "paddlepaddle.org/job-name=named")["items"]
    assert len({pod["spec"]["nodeName"] for pod in mine}) == 2
