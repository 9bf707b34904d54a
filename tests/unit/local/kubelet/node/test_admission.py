"""A node refuses a pod whose port of the host is taken; the scheduler is not always asked."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.node.admission import rejected


def pod(*ports: dict[str, Any], node: str = "a", status: Object | None = None, **spec: Any) -> Object:
    containers = [{"name": "main", "ports": list(ports)}]
    return {"metadata": {}, "spec": {"nodeName": node, "containers": containers, **spec}, "status": status or {}}


TAKEN = pod({"containerPort": 80, "hostPort": 8080})


@pytest.mark.parametrize(
    ("new", "there", "refused"),
    [
        (pod({"containerPort": 90, "hostPort": 8080}), TAKEN, True),
        (pod({"containerPort": 8080}, hostNetwork=True), TAKEN, True),
        (pod({"containerPort": 8080}), TAKEN, False),
        (pod({"hostPort": 8081}), TAKEN, False),
        (pod({"hostPort": 8080, "protocol": "UDP"}), TAKEN, False),
        (pod({"hostPort": 8080}, node="b"), TAKEN, False),
        (pod({"hostPort": 8080, "hostIP": "127.0.0.2"}), TAKEN, True),
        (pod({"hostPort": 8080, "hostIP": "127.0.0.2"}), pod({"hostPort": 8080, "hostIP": "127.0.0.3"}), False),
        (pod({"hostPort": 8080}), pod({"hostPort": 8080}, status={"phase": "Succeeded"}), False),
        (pod({"hostPort": 8080}, status={"startTime": "2026-01-01T00:00:00Z"}), TAKEN, False),
    ],
)
def test_a_port_of_the_host_is_given_once(new: Object, there: Object, refused: bool) -> None:
    found = rejected(new, [there])
    assert (found is not None) is refused
    if found is not None:
        assert found.reason == "NodePorts"
        assert "didn't have free ports" in found.message
