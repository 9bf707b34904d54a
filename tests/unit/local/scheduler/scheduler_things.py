"""Small builders of nodes, pods, groups and queues, and one call for a round on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.attempt import Why
from paddlecloud.local.scheduler.decision.decide import Round, decide
from paddlecloud.local.scheduler.decision.scores import DEFAULT, Policy
from paddlecloud.local.scheduler.state.snapshot import Pod, Snapshot, pod_view, snapshot_of
from paddlecloud.local.scheduler.state.units import units_of

_numbers = itertools.count()


def node(name: str, cpu: str = "4", *, ready: bool = True, **fields: Any) -> Object:
    """`labels`, `taints`, `unschedulable`, `gpu`, `memory`, `pods`, `annotations` may be given."""
    allocatable = {"cpu": cpu, "memory": fields.get("memory", "16Gi"), "pods": str(fields.get("pods", 100))}
    if fields.get("gpu"):
        allocatable["nvidia.com/gpu"] = str(fields["gpu"])
    spec: Object = {}
    if fields.get("taints"):
        spec["taints"] = fields["taints"]
    if fields.get("unschedulable"):
        spec["unschedulable"] = True
    labels = {"kubernetes.io/hostname": name, **fields.get("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": fields.get("annotations", {})},
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name: str, cpu: str = "1", *, on: str = "", group: str = "", **fields: Any) -> Object:
    """`labels`, `annotations`, `priority`, `namespace`, `queue`, `phase`, `leaving`, `gpu`; the rest goes into spec."""
    number = next(_numbers)
    requests = {"cpu": cpu}
    if gpu := fields.pop("gpu", None):
        requests["nvidia.com/gpu"] = str(gpu)
    annotations = dict(fields.pop("annotations", {}))
    if group:
        annotations["scheduling.k8s.io/group-name"] = group
    if queue := fields.pop("queue", ""):
        annotations["scheduling.volcano.sh/queue-name"] = queue
    if task := fields.pop("task", ""):
        annotations["volcano.sh/task-spec"] = task
    meta: Object = {
        "name": name,
        "namespace": fields.pop("namespace", "default"),
        "uid": f"uid-{name}-{number}",
        "labels": fields.pop("labels", {}),
        "annotations": annotations,
        "creationTimestamp": fields.pop("created", f"2026-01-01T00:00:00.{number:09d}Z"),
    }
    if fields.pop("leaving", False):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status: Object = {"phase": fields.pop("phase", "Running" if on else "Pending")}
    if nominated := fields.pop("nominated", ""):
        status["nominatedNodeName"] = nominated
    container = {"name": "main", "resources": {"requests": requests}, **fields.pop("container", {})}
    spec: Object = {"containers": [container], "priority": fields.pop("priority", 0), **fields}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def group(name: str, min_member: int = 1, **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2025-12-31T00:00:00Z"},
        "spec": {"minMember": min_member, **spec},
    }


def queue(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": "Open"},
    }


def snapshot(nodes: Iterable[Object], pods: Iterable[Object] = (), **kinds: Any) -> Snapshot:
    return snapshot_of(nodes, pods, **kinds)


def play(nodes: Iterable[Object], pods: Iterable[Object], *, policy: Policy = DEFAULT, **kinds: Any) -> Round:
    """One round on everything given: pods with a node are there already, the others wait."""
    pods = list(pods)
    view = snapshot_of(nodes, pods, **kinds)
    waiting = [pod_view(obj) for obj in pods if not obj["spec"].get("nodeName")]
    return decide(view, units_of(waiting, view.gangs), policy=policy)


def placed(result: Round) -> dict[str, str]:
    return {pod.key.name: node for pod, node in result.placements}


def reasons(result: Round) -> dict[str, str]:
    """Pod name → message, of everything that was refused."""
    return {pod.key.name: why.message for pod, why in _refusals(result)}


def codes(result: Round) -> dict[str, str]:
    return {pod.key.name: why.code for pod, why in _refusals(result)}


def _refusals(result: Round) -> list[tuple[Pod, Why]]:
    return [(pod, refused.why) for refused in result.refused for unit in refused.units for pod in unit.pods]


def evicted(result: Round) -> dict[str, str]:
    return {eviction.pod.key.name: eviction.reason for eviction in result.evictions}
