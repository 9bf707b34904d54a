"""`pdc visualdl` while VisualDL starts: what is waited for is reported, which takes minutes where it is downloaded."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from paddlecloud.cli.commands import deployments, wait
from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

WAITING = 'image "paddlecloud/visualdl": installing visualdl==2.5.3'


@pytest.fixture
def job(stub: Stub) -> dict[str, Any]:
    container = {"name": "paddle", "image": "p", "volumeMounts": [{"name": "task", "mountPath": "/task"}]}
    volumes = [{"name": "task", "persistentVolumeClaim": {"claimName": "task"}}]
    return stub.add(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": "fit"},
            "spec": {"worker": {"replicas": 1, "template": {"spec": {"containers": [container], "volumes": volumes}}}},
        }
    )


def starting(stub: Stub) -> None:
    """As the Deployment's controller leaves it: it may lack its only pod, and so it is Available without one."""

    seconds = count(1)

    def answer(method: str, path: str) -> None:
        made = stub.objects.get(("deployments", "default", "fit-visualdl"))
        if made is None:
            return
        conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]
        made["status"] = {"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1, "conditions": conditions}
        message = f"{WAITING}: {next(seconds)} s so far"
        state = {"waiting": {"reason": "ContainerCreating", "message": message}}
        stub.add(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "fit-visualdl-1", "labels": made["spec"]["selector"]["matchLabels"]},
                "spec": {"nodeName": "n1", "containers": [{"name": "visualdl"}]},
                "status": {"phase": "Pending", "containerStatuses": [{"name": "visualdl", "state": state}]},
            }
        )

    stub.before = answer


def test_the_download_of_visualdl_is_reported_while_it_lasts(
    pdc: Pdc, stub: Stub, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "NEWS_SECONDS", 0.1)
    monkeypatch.setattr(wait, "FIRST_NEWS", 0.0)
    monkeypatch.setattr(wait, "NEXT_NEWS", 0.0)
    starting(stub)
    done = pdc("visualdl", "fit", "--detach", "--timeout", "1s")
    assert done.code == 124
    notes = [line for line in done.err.splitlines() if line.startswith("deployment.apps/fit-visualdl: ")]
    assert [WAITING in line for line in notes] == [True], "once: only its seconds change"
    assert f"after 1 s: fit-visualdl-1: container visualdl waits: ContainerCreating: {WAITING}" in done.err


def test_deleting_what_is_not_there_says_so(pdc: Pdc, stub: Stub, job: dict[str, Any]) -> None:
    done = pdc("visualdl", "fit", "--delete")
    assert (done.code, done.err) == (0, "fit has no VisualDL\n")
