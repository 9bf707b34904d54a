"""Every part of the platform acts under its own name with its own rights, as its counterpart on a cluster does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import pdc, until
from paddlecloud.platform.assembly import node_names
from paddlecloud.platform.chart import controller_accounts

ACCOUNTS = "system:serviceaccount:kube-system:"
ROLE = "paddlecloud:controller:paddlejob"


class Running:
    def __init__(self, data: Path) -> None:
        self.data = data
        self._env = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}

    def up(self) -> None:
        pdc("up", "--data", str(self.data), "--port", "0")

    def apply(self, *objects: Any) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        pdc("apply", "-f", "-", "--force-conflicts", env=self._env, input=json.dumps(listed))

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(pdc("get", "pdj", name, "-o", "json", env=self._env).stdout)
        return dict(found.get("status") or {})

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.data / "audit.log").read_text().splitlines()]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    platform = Running(tmp_path / "data")
    platform.up()
    yield platform
    pdc("down", "--data", str(platform.data))


def job(name: str) -> dict[str, Any]:
    main = {"name": "main", "image": "python:3.11", "command": ["python", "-c", "print('trained')"]}
    worker = {"replicas": 1, "template": {"spec": {"containers": [main]}}}
    kind = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}}
    return {**kind, "spec": {"worker": worker}}


def test_no_part_of_the_platform_is_an_administrator(running: Running) -> None:
    running.apply(job("first"))
    until(lambda: running.job("first").get("phase") == "Completed")
    by_agent: dict[str, set[str]] = {}
    for event in running.audit():
        by_agent.setdefault(event["userAgent"], set()).add(event["user"]["username"])
    node = f"system:node:{node_names(1)[0]}"
    assert {agent: users for agent, users in by_agent.items() if not agent.startswith("pdc")} == {
        "paddlejob-controller": {f"{ACCOUNTS}paddlejob-sa"},
        "kubeflow-paddlejob-controller": {f"{ACCOUNTS}paddlejob-sa"},
        "sampleset-controller": {f"{ACCOUNTS}sampleset-sa"},
        "samplejob-controller": {f"{ACCOUNTS}sampleset-sa"},
        "paddleservice-controller": {f"{ACCOUNTS}paddle-serving-sa"},
        "model-controller": {f"{ACCOUNTS}models-sa"},
        "tenant-controller": {f"{ACCOUNTS}tenants-sa"},
        "knative": {"system:serviceaccount:knative-serving:controller"},
        "scheduler": {"system:kube-scheduler"},
        "workloads": {"system:kube-controller-manager"},
        "node-controller": {f"{ACCOUNTS}node-controller"},
        "workflow-controller": {f"{ACCOUNTS}workflow-controller"},
        "ml-pipeline": {f"{ACCOUNTS}ml-pipeline"},
        "modelhub": {f"{ACCOUNTS}modelhub"},
        "kubelet": {node},
    }
    assert [event["requestURI"] for event in running.audit() if event["responseStatus"]["code"] == 403] == []


def test_a_right_that_is_missing_is_missed_here_too_until_the_release_grants_it_again(running: Running) -> None:
    (role,) = [
        each for each in controller_accounts() if (each["kind"], each["metadata"]["name"]) == ("ClusterRole", ROLE)
    ]
    without = [rule for rule in role["rules"] if not ("pods" in rule["resources"] and "create" in rule["verbs"])]
    assert len(without) == len(role["rules"]) - 1
    running.apply({**role, "rules": [*without, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]})
    running.apply(job("refused"))
    refusal = f'User "{ACCOUNTS}paddlejob-sa" cannot create resource "pods"'
    until(lambda: refusal in json.dumps(running.job("refused").get("conditions")).replace("\\", ""))
    pdc("down", "--data", str(running.data))
    running.up()
    until(lambda: running.job("refused").get("phase") == "Completed")
