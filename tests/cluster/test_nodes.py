"""Several nodes: pods are spread, reach each other as they are, and survive the loss of a node."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from harness import Kubectl, need, until

from .harness.cluster import Cluster
from .harness.machine import running_machines
from .harness.target import fixture, restore

pytestmark = pytest.mark.timeout(300)

SPREAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      affinity:
        podAntiAffinity:
          {STRENGTH}
      containers:
      - name: web
        image: busybox
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        command: [sh, -c]
        args:
        - |
          mkdir -p /www/cgi-bin
          printf '#!/bin/sh\\necho; echo %s from $REMOTE_ADDR\\n' $NODE > /www/cgi-bin/who
          chmod +x /www/cgi-bin/who
          exec httpd -f -p 8080 -h /www
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
_TERM = "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}"
REQUIRED = f"requiredDuringSchedulingIgnoredDuringExecution: [{_TERM}]"
PREFERRED = f"preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 100, podAffinityTerm: {_TERM}}}]"


@pytest.fixture(autouse=True)
def _three_nodes(kubectl: Kubectl) -> None:
    ready = kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ")
    need("nodes", have=ready >= 3, hint=f"three nodes; this cluster has {ready}: `make cluster NODES=3`")


@pytest.fixture
def machines(kubectl: Kubectl) -> Iterator[Cluster]:
    """Nodes can be lost; all are there again afterwards."""
    made = fixture()
    yield made
    for number in (1, 2, 3):
        if f"node{number}" not in running_machines(made.layout):
            restore(number)


def pods(kubectl: Kubectl) -> list[tuple[str, str, str]]:
    """Name, node and address of the pods that are meant to stay."""
    found = json.loads(kubectl("get", "pods", "-l", "app=web", "-o", "json").stdout)["items"]
    staying = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return [(p["metadata"]["name"], p["spec"].get("nodeName", ""), p["status"].get("podIP", "")) for p in staying]


def ask(kubectl: Kubectl, pod: str, url: str) -> str:
    return kubectl("exec", pod, "--", "timeout", "5", "wget", "-qO-", f"http://{url}/cgi-bin/who").stdout.strip()


@pytest.mark.core
def test_pods_on_different_nodes_see_each_others_own_addresses(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=SPREAD.replace("{STRENGTH}", REQUIRED))
    kubectl("rollout", "status", "deployment/web", "--timeout=120s", timeout=130)
    found = pods(kubectl)
    assert sorted(node for _, node, _ in found) == ["node1", "node2", "node3"]
    for name, _, own in found:
        for _, node, address in found:
            assert ask(kubectl, name, f"{address}:8080") == f"{node} from [::ffff:{own}]"
        assert ask(kubectl, name, "web").startswith("node")


@pytest.mark.full
def test_pods_of_a_lost_node_come_up_on_the_others_and_the_node_returns(kubectl: Kubectl, machines: Cluster) -> None:
    kubectl("create", "-f", "-", input=SPREAD.replace("{STRENGTH}", PREFERRED))
    kubectl("rollout", "status", "deployment/web", "--timeout=120s", timeout=130)
    assert {node for _, node, _ in pods(kubectl)} == {"node1", "node2", "node3"}
    machines.node_off(3)
    kubectl("wait", "--for=condition=Ready=Unknown", "node/node3", "--timeout=90s", timeout=100)
    until(lambda: len(pods(kubectl)) == 3 and not any(node == "node3" for _, node, _ in pods(kubectl)), timeout=120)
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=3", "deployment/web", "--timeout=60s", timeout=70)
    restore(3)
    assert "node3" in running_machines(machines.layout)
