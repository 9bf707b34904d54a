"""Hypothesis strategies for whole clusters: nodes, running and waiting pods, gangs, queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from paddlecloud.kube.resource import Object
from unit.local.scheduler.scheduler_things import group, node, pod, queue

APPS = ("x", "y")
TAINT = {"key": "special", "effect": "NoSchedule"}
TOLERATION = {"key": "special", "operator": "Exists"}
AFFINITY = {
    "apart": ("podAntiAffinity", "kubernetes.io/hostname"),
    "zone-apart": ("podAntiAffinity", "zone"),
    "near": ("podAffinity", "zone"),
}


@dataclass
class SchedulerInput:
    nodes: list[Object]
    pods: list[Object]
    groups: list[Object] = field(default_factory=list)
    queues: list[Object] = field(default_factory=list)

    @property
    def waiting(self) -> list[Object]:
        return [obj for obj in self.pods if not obj["spec"].get("nodeName")]

    @property
    def running(self) -> list[Object]:
        return [obj for obj in self.pods if obj["spec"].get("nodeName")]

    @property
    def kinds(self) -> dict[str, list[Object]]:
        return {"groups": self.groups, "queues": self.queues}


@st.composite
def nodes(draw: st.DrawFn, *, least: int = 0, most: int = 5) -> list[Object]:
    found = []
    for number in range(draw(st.integers(least, most))):
        fields: dict[str, Any] = {"labels": {"zone": draw(st.sampled_from("ab"))}}
        if draw(st.integers(0, 5)) == 0:
            fields["unschedulable"] = True
        if draw(st.integers(0, 4)) == 0:
            fields["taints"] = [TAINT]
        if draw(st.booleans()):
            fields["gpu"] = draw(st.integers(1, 4))
        ready = draw(st.integers(0, 7)) != 0
        found.append(
            node(f"n{number}", str(draw(st.integers(1, 8))), ready=ready, pods=draw(st.integers(1, 8)), **fields)
        )
    return found


@st.composite
def asks(draw: st.DrawFn, *, pod_affinity: bool) -> dict[str, Any]:
    """The arguments of a pod: what it needs and wishes."""
    fields: dict[str, Any] = {"labels": {"app": draw(st.sampled_from(APPS))}}
    if draw(st.integers(0, 3)) == 0:
        fields["gpu"] = draw(st.integers(1, 2))
    if draw(st.integers(0, 3)) == 0:
        fields["nodeSelector"] = {"zone": draw(st.sampled_from("abc"))}
    if draw(st.integers(0, 3)) == 0:
        fields["tolerations"] = [TOLERATION]
    if pod_affinity and draw(st.integers(0, 2)) == 0:
        kind, key = AFFINITY[draw(st.sampled_from(sorted(AFFINITY)))]
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": draw(st.sampled_from(APPS))}}}
        fields["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return fields


@st.composite
def worlds(
    draw: st.DrawFn, *, pod_affinity: bool = True, gangs: bool = True, queues: bool = True, priorities: int = 3
) -> SchedulerInput:
    world = SchedulerInput(draw(nodes()), [])
    priority = st.integers(0, priorities)
    names = [""]
    if queues and draw(st.booleans()):
        names = ["", "q0", "q1"]
        for name in names[1:]:
            limit = {"capability": {"cpu": str(draw(st.integers(1, 12)))}} if draw(st.booleans()) else {}
            world.queues.append(queue(name, weight=draw(st.integers(1, 3)), **limit))
    _run_some(draw, world, priority, names, pod_affinity=pod_affinity)
    for number in range(draw(st.integers(0, 6))):
        fields = draw(asks(pod_affinity=pod_affinity))
        cpu = str(draw(st.integers(0, 5)))
        world.pods.append(pod(f"w{number}", cpu, priority=draw(priority), queue=draw(st.sampled_from(names)), **fields))
    if gangs:
        _add_gangs(draw, world, priority, names, pod_affinity=pod_affinity)
    return world


def _run_some(draw: Any, world: SchedulerInput, priority: Any, names: list[str], *, pod_affinity: bool) -> None:
    """Pods where they fit: a cluster is never over its capacity to begin with."""
    for number in range(draw(st.integers(0, 6)) if world.nodes else 0):
        target = draw(st.sampled_from(world.nodes))
        free = {
            name: int(amount) for name, amount in target["status"]["allocatable"].items() if name in ("cpu", "pods")
        }
        for other in world.running:
            if other["spec"]["nodeName"] == target["metadata"]["name"]:
                free["cpu"] -= int(other["spec"]["containers"][0]["resources"]["requests"]["cpu"])
                free["pods"] -= 1
        if free["pods"] < 1:
            continue
        cpu = str(draw(st.integers(0, free["cpu"])))
        fields = {"labels": {"app": draw(st.sampled_from(APPS))}}
        where = target["metadata"]["name"]
        queue_ = draw(st.sampled_from(names))
        world.pods.append(pod(f"r{number}", cpu, on=where, priority=draw(priority), queue=queue_, **fields))


def _add_gangs(draw: Any, world: SchedulerInput, priority: Any, names: list[str], *, pod_affinity: bool) -> None:
    for index in range(draw(st.integers(0, 2))):
        name = f"g{index}"
        members = draw(st.integers(1, 4))
        least = draw(st.integers(1, 5))
        spec = {"queue": draw(st.sampled_from(names))} if len(names) > 1 else {}
        world.groups.append(group(name, least, **{key: value for key, value in spec.items() if value}))
        fields, cpu, rank = draw(asks(pod_affinity=pod_affinity)), str(draw(st.integers(0, 4))), draw(priority)
        world.pods += [pod(f"{name}-{n}", cpu, group=name, priority=rank, **fields) for n in range(members)]
