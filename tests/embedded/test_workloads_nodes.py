"""Cordon, taint, drain and top with real kubectl, and evictions that respect disruption budgets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from unit.local.workloads.real import WAIT, Kubectl, apply, read


def web(replicas: int, **pod: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"]}
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    """The node all tests share: given back as it was."""
    name = str(read(kubectl, "nodes")["items"][0]["metadata"]["name"])
    yield name
    kubectl("uncordon", name)
    kubectl("taint", "node", name, "test-", check=False)


def test_a_budget_holds_up_a_drain_until_there_is_room(kubectl: Kubectl, node: str) -> None:
    apply(kubectl, web(2))
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    kubectl("rollout", "status", "deployment/web", WAIT)
    kubectl("wait", "--for=jsonpath={.status.currentHealthy}=2", "pdb/web", WAIT)
    assert read(kubectl, "pdb/web")["status"]["disruptionsAllowed"] == 0
    drain = ("drain", node, "--pod-selector=app=web", "--ignore-daemonsets")
    refused = kubectl(*drain, "--timeout=1s", check=False)
    assert refused.returncode != 0
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refused.stderr
    assert read(kubectl, f"node/{node}")["spec"]["unschedulable"] is True
    kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec": {"minAvailable": 0}}')
    kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=2", "pdb/web", WAIT)
    kubectl(*drain, "--timeout=50s")
    pods = read(kubectl, "pods", "--selector=app=web")["items"]
    assert [pod["spec"].get("nodeName") for pod in pods] == [None, None], "their successors wait for a node"
    kubectl("uncordon", node)
    kubectl("rollout", "status", "deployment/web", WAIT)


def test_a_taint_keeps_pods_away_and_its_toleration_lets_them_in(kubectl: Kubectl, node: str) -> None:
    kubectl("taint", "node", node, "test=yes:NoSchedule")
    apply(kubectl, web(1))
    kubectl("wait", "--for=condition=PodScheduled=false", "pod", "--selector=app=web", WAIT)
    tolerations = [{"key": "test", "operator": "Exists"}]
    patch = {"spec": {"template": {"spec": {"tolerations": tolerations}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(patch))
    kubectl("rollout", "status", "deployment/web", WAIT)


def test_a_no_execute_taint_makes_pods_leave(kubectl: Kubectl, node: str) -> None:
    apply(kubectl, web(1))
    kubectl("rollout", "status", "deployment/web", WAIT)
    (pod,) = read(kubectl, "pods")["items"]
    kubectl("taint", "node", node, "test=yes:NoExecute")
    kubectl("wait", "--for=delete", f"pod/{pod['metadata']['name']}", WAIT)


def test_top_shows_what_pods_and_nodes_use(kubectl: Kubectl, node: str) -> None:
    busy = {"name": "busy", "image": "busybox", "command": ["sh", "-c", "while :; do :; done"]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [busy]}
    apply(kubectl, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "busy"}, "spec": spec})
    kubectl("wait", "--for=condition=Ready", "pod/busy", WAIT)
    name, cpu, _ = kubectl("top", "pod", "busy", "--no-headers").stdout.split()
    assert name == "busy"
    assert int(cpu.removesuffix("m")) > 50
    shown = kubectl("top", "pods", "--containers", "--no-headers").stdout.split()
    assert shown[:2] == ["busy", "busy"]
    (line,) = kubectl("top", "node", node, "--no-headers").stdout.splitlines()
    assert line.split()[0] == node
    assert int(line.split()[1].removesuffix("m")) > 50
