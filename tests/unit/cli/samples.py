"""Objects that several tests put into the stub."""

from __future__ import annotations

from typing import Any

from unit.cli.stub import Stub


def make_job(stub: Stub, phase: str = "Running", workers: int = 2, servers: int = 1) -> dict[str, Any]:
    job = stub.add(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": "wide"},
            "spec": {"worker": {"replicas": workers, "template": {}}},
            "status": {"phase": phase},
        }
    )
    for role, count in (("worker", workers), ("ps", servers)):
        for index in range(count):
            name = f"wide-{role}-{index}"
            owner = {"uid": job["metadata"]["uid"], "controller": True, "kind": "PaddleJob", "name": "wide"}
            stub.add(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name, "ownerReferences": [owner], "labels": {"paddle-res-type": role}},
                    "spec": {"containers": [{"name": "paddle"}], "nodeName": "n1"},
                    "status": {
                        "phase": "Running",
                        "containerStatuses": [{"name": "paddle", "state": {"running": {}}, "ready": True}],
                    },
                }
            )
            stub.logs[name] = [f"2026-01-01T00:00:0{n}.{index}00000000Z {role}{index} says {n}" for n in range(3)]
    return job


def make_service(stub: Stub, endpoints: tuple[str, ...] = ("default", "canary")) -> dict[str, Any]:
    """Its pods belong to ReplicaSets, as everywhere; Knative's sidecar stands behind the service's own container."""
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    service = stub.add(
        {
            "apiVersion": "serving.paddlepaddle.org/v1",
            "kind": "PaddleService",
            "metadata": {"name": "line"},
            "spec": {"model": "file:///models/line"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )
    for index, endpoint in enumerate(endpoints):
        name = f"line-{endpoint}-pod"
        owner = {"uid": f"set-{index}", "controller": True, "kind": "ReplicaSet", "name": f"line-{endpoint}"}
        names = ("paddleserving", "queue-proxy")
        running = [{"name": one, "state": {"running": {}}, "ready": True} for one in names]
        stub.add(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "ownerReferences": [owner], "labels": {"PaddleService": "line"}},
                "spec": {"containers": [{"name": one} for one in names], "nodeName": "n1"},
                "status": {"phase": "Running", "containerStatuses": running},
            }
        )
        stub.logs[name] = [f"2026-01-01T00:00:0{index}.000000000Z {endpoint} answers"]
    return service


def pod_with(status: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", **meta},
        "status": status,
    }


READY = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
PENDING = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU"}],
    "phase": "Pending",
}
