"""What the scheduler knows at one moment: nodes with what is left on them, and pods that wait.

A snapshot is built from caches and never changes; `placed` returns a new one with one more pod on a node. Decisions on
it are therefore pure, can be repeated by `explain` and `simulate`, and cannot be disturbed by what happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from paddlecloud.kube.quantity import ONE, Amount, amounts, total
from paddlecloud.kube.resource import Key, Object, key_of

Resources = Mapping[str, Amount]

GROUP = "scheduling.k8s.io/group-name"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as far as placing it goes. `source` is the object, for the rules that read its spec."""

    key: Key
    uid: str
    requests: Resources
    labels: Mapping[str, str]
    priority: int
    node: str
    group: Key | None
    source: Object = field(repr=False, compare=False)

    @property
    def spec(self) -> Object:
        return self.source["spec"]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Object, ...]
    unschedulable: bool
    ready: bool
    allocatable: Resources
    pods: tuple[Pod, ...] = ()
    used: Resources = field(default_factory=dict)

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def with_pod(self, pod: Pod) -> Node:
        return replace(self, pods=(*self.pods, pod), used=add(self.used, pod.requests))

    def without(self, uids: frozenset[str]) -> Node:
        kept = tuple(pod for pod in self.pods if pod.uid not in uids)
        return replace(self, pods=kept, used=total(pod.requests for pod in kept))


@dataclass(frozen=True, slots=True)
class Snapshot:
    nodes: Mapping[str, Node]

    def placed(self, pod: Pod, node: str) -> Snapshot:
        return Snapshot({**self.nodes, node: self.nodes[node].with_pod(pod)})


def pod_view(obj: Object) -> Pod:
    spec, meta = obj["spec"], obj["metadata"]
    key = key_of(obj)
    group = (meta.get("annotations") or {}).get(GROUP)
    return Pod(
        key=key,
        uid=meta.get("uid", ""),
        requests=requests_of(spec),
        labels=meta.get("labels") or {},
        priority=int(spec.get("priority") or 0),
        node=spec.get("nodeName", ""),
        group=Key(key.namespace, group) if group else None,
        source=obj,
    )


def node_view(obj: Object) -> Node:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
    return Node(
        name=obj["metadata"]["name"],
        labels=obj["metadata"].get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        ready=ready,
        allocatable=amounts(status.get("allocatable") or status.get("capacity") or {}),
    )


def snapshot_of(nodes: Iterable[Object], pods: Iterable[Object]) -> Snapshot:
    """Pods that have ended no longer take anything; those on unknown nodes are not ours to count."""
    views = {view.name: view for view in map(node_view, nodes)}
    placed: dict[str, list[Pod]] = {}
    for obj in pods:
        name = obj["spec"].get("nodeName")
        if name in views and (obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            placed.setdefault(name, []).append(pod_view(obj))
    return Snapshot(
        {
            name: replace(node, pods=tuple(placed.get(name, ())), used=total(p.requests for p in placed.get(name, ())))
            for name, node in views.items()
        }
    )


def requests_of(spec: Object) -> Resources:
    """What a pod needs at its hungriest moment: all containers together, or the largest init container before them."""
    running = total(_container(c) for c in spec.get("containers") or ())
    sidecars: Resources = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        own = _container(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, own)
            own = {}
        for name, amount in add(sidecars, own).items():
            peak[name] = max(peak.get(name, 0), amount)
    steady = add(running, sidecars)
    needed = {name: max(steady.get(name, 0), peak.get(name, 0)) for name in {*steady, *peak}}
    needed = dict(add(needed, amounts(spec.get("overhead") or {})))
    needed["pods"] = ONE
    return needed


def _container(container: Object) -> Resources:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def add(left: Resources, right: Resources) -> Resources:
    if not left or not right:
        return left or right
    return {name: left.get(name, 0) + right.get(name, 0) for name in {*left, *right}}
