"""The image of this project: pdc in a pod, with no more rights than its account has."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, Target

from .harness import own_image

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", autouse=True)
def _image(server: Target) -> None:
    server.offer(own_image.NAME)


def pod(name: str, *arguments: str) -> str:
    main = {"name": "pdc", "image": own_image.NAME, "args": list(arguments), "imagePullPolicy": "Always"}
    spec = {"restartPolicy": "Never", "containers": [main]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def end_of(kubectl: Kubectl, name: str, phase: str) -> str:
    kubectl("wait", "--for", f"jsonpath={{.status.phase}}={phase}", f"pod/{name}", "--timeout=90s", timeout=100)
    return kubectl("logs", name).stdout


def test_pdc_uses_the_cluster_it_runs_in_with_its_own_account(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", input=pod("forbidden", "get", "pods"))
    assert "forbidden" in end_of(kubectl, "forbidden", "Failed").lower()
    kubectl("create", "rolebinding", "reader", "--clusterrole=view", f"--serviceaccount={namespace}:default")
    kubectl("create", "-f", "-", input=pod("allowed", "get", "pods"))
    assert "allowed" in end_of(kubectl, "allowed", "Succeeded")
