"""What the scheduler knows at one moment: nodes with what is left on them, gangs, queues and disruption budgets.

A snapshot never changes. Decisions on it are therefore pure, can be repeated by `explain` and `simulate`, and cannot be
disturbed by what happens meanwhile. `State` makes snapshots cheaply from what it keeps; `snapshot_of` makes one from
plain lists of objects.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from paddlecloud.api.names import GROUP_NAME
from paddlecloud.kube import quantity
from paddlecloud.kube.conditions import has_condition
from paddlecloud.kube.pods import is_finished
from paddlecloud.kube.quantity import Amount, amounts, total
from paddlecloud.kube.resource import Key, Object, key_of
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.nodes.marks import SIMULATE
from paddlecloud.local.scheduler.state.shape import Resources, Shape, add, shape_of, subtract

VOLCANO, COSCHEDULING = "volcano", "coscheduling"
GROUP_ANNOTATIONS = (GROUP_NAME, "scheduling.volcano.sh/group-name")
COSCHEDULING_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
QUEUE_ANNOTATIONS = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
TASK_ANNOTATION = "volcano.sh/task-spec"
DEFAULT_QUEUE = "default"


class GroupKey(NamedTuple):
    """A PodGroup, of Volcano's kind or of the coscheduling plugin's."""

    namespace: str
    name: str
    api: str = VOLCANO


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """A pod as far as placing it goes. `source` is the object, for those who write about it."""

    key: Key
    uid: str
    shape: Shape
    labels: Mapping[str, str]
    priority: int = 0
    node: str = ""
    group: GroupKey | None = None
    queue: str = ""
    task: str = ""
    created: str = ""
    nominated: str = ""
    leaving: bool = False
    may_preempt: bool = True
    promised: bool = False
    """Room is kept for it while others leave; it is not there yet, and no company for anybody."""
    source: Object = field(repr=False, default_factory=dict)

    @property
    def requests(self) -> Resources:
        return self.shape.requests


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Object, ...]
    unschedulable: bool
    ready: bool
    allocatable: Resources
    pods: tuple[Pod, ...] = ()
    used: Resources = field(default_factory=dict)

    def free(self, resource: str) -> Amount:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def with_pod(self, pod: Pod) -> Node:
        return self.holding((*self.pods, pod), add(self.used, pod.shape.requests))

    def without(self, pod: Pod) -> Node:
        kept = tuple(other for other in self.pods if other.uid != pod.uid)
        return self.holding(kept, subtract(self.used, pod.shape.requests))

    def holding(self, pods: tuple[Pod, ...], used: Resources) -> Node:
        return Node(
            self.name,
            self.labels,
            self.taints,
            self.unschedulable,
            self.ready,
            self.allocatable,
            pods,
            used,
        )


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup: at least `min_member` of its pods must be placed, counting those that already are."""

    key: GroupKey
    min_member: int = 1
    min_tasks: Mapping[str, int] = field(default_factory=dict)
    min_resources: Resources = field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    priority: int | None = None
    created: str = ""
    placed: int = 0
    placed_tasks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Queue:
    """A Queue of Volcano. `parent` makes it part of another one (a cohort)."""

    name: str
    weight: int = 1
    capability: Resources = field(default_factory=dict)
    deserved: Resources | None = None
    guarantee: Resources = field(default_factory=dict)
    reclaimable: bool = True
    parent: str = ""
    priority: int = 0
    fifo: bool = False
    open: bool = True


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget: how many of its pods may be taken away now."""

    key: Key
    selector: LabelSelector
    allowed: int

    def covers(self, pod: Pod) -> bool:
        return pod.key.namespace == self.key.namespace and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class Snapshot:
    nodes: Mapping[str, Node]
    gangs: Mapping[GroupKey, Gang] = field(default_factory=dict)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    allocated: Mapping[str, Resources] = field(default_factory=dict)
    """What the placed pods of each queue take, its sub-queues not counted. Kept only while there are queues."""
    budgets: tuple[Budget, ...] = ()
    guarded: bool = True
    """Whether some placed pod may want others kept away from it; False spares a look at all of them."""
    lowest: int | None = None
    """The least priority among placed pods, if known: who has no more finds nobody to drive out."""

    def queue_of(self, pod: Pod) -> str:
        gang = self.gangs.get(pod.group) if pod.group else None
        return gang.queue if gang else pod.queue or DEFAULT_QUEUE


# From objects of the API


def pod_view(obj: Object) -> Pod:
    spec, meta, status = obj["spec"], obj["metadata"], obj.get("status") or {}
    annotations = meta.get("annotations") or {}
    labels = meta.get("labels") or {}
    key = key_of(obj)
    return Pod(
        key=key,
        uid=meta.get("uid") or str(key),
        shape=shape_of(spec, simulated=SIMULATE in annotations),
        labels=labels,
        priority=int(spec.get("priority") or 0),
        node=spec.get("nodeName") or "",
        group=_group_of(key.namespace, annotations, labels),
        queue=_first(QUEUE_ANNOTATIONS, annotations),
        task=annotations.get(TASK_ANNOTATION) or "",
        created=meta.get("creationTimestamp") or "",
        nominated=status.get("nominatedNodeName") or "",
        leaving=bool(meta.get("deletionTimestamp")),
        may_preempt=spec.get("preemptionPolicy") != "Never",
        source=obj,
    )


def _group_of(namespace: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> GroupKey | None:
    if name := _first(GROUP_ANNOTATIONS, annotations):
        return GroupKey(namespace, name)
    if name := _first(COSCHEDULING_LABELS, labels):
        return GroupKey(namespace, name, COSCHEDULING)
    return None


def _first(names: Iterable[str], values: Mapping[str, str]) -> str:
    return next((values[name] for name in names if values.get(name)), "")


def node_view(obj: Object) -> Node:
    spec, status, meta = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    return Node(
        name=meta["name"],
        labels=meta.get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        ready=has_condition(obj, "Ready") and not meta.get("deletionTimestamp"),
        allocatable=amounts(status.get("allocatable") or status.get("capacity") or {}),
    )


def _readable_amounts(resources: Object | None) -> Resources:
    """Of a PodGroup, whose schema checks none: what is no quantity is left out, and the round of all others goes on."""
    found = {}
    for name, amount in (resources or {}).items():
        with contextlib.suppress(quantity.QuantityError):
            found[name] = quantity.parse(amount)
    return found


def gang_view(obj: Object, *, priority: int | None = None) -> Gang:
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    api = COSCHEDULING if str(obj.get("apiVersion", "")).startswith("scheduling.x-k8s.io/") else VOLCANO
    return Gang(
        key=GroupKey(meta.get("namespace", ""), meta["name"], api),
        min_member=max(1, int(spec.get("minMember") or 1)),
        min_tasks=spec.get("minTaskMember") or {},
        min_resources=_readable_amounts(spec.get("minResources")),
        queue=spec.get("queue") or DEFAULT_QUEUE,
        priority=priority,
        created=meta.get("creationTimestamp") or "",
    )


def queue_view(obj: Object) -> Queue:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    deserved = spec.get("deserved")
    return Queue(
        name=obj["metadata"]["name"],
        weight=max(1, int(spec.get("weight") or 1)),
        capability=amounts(spec.get("capability")),
        deserved=amounts(deserved) if deserved else None,
        guarantee=amounts((spec.get("guarantee") or {}).get("resource")),
        reclaimable=spec.get("reclaimable") is not False,
        parent=spec.get("parent") or "",
        priority=int(spec.get("priority") or 0),
        fifo=spec.get("dequeueStrategy") == "fifo",
        open=status.get("state") not in ("Closed", "Closing"),
    )


def budget_view(obj: Object) -> Budget:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    allowed = int(status.get("disruptionsAllowed") or 0)
    return Budget(key_of(obj), LabelSelector.from_dict(spec.get("selector")), allowed)


def takes_room(obj: Object) -> bool:
    """Pods that have ended no longer take anything."""
    return bool(obj["spec"].get("nodeName")) and not is_finished(obj)


def snapshot_of(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    *,
    groups: Iterable[Object] = (),
    queues: Iterable[Object] = (),
    budgets: Iterable[Object] = (),
    priorities: Mapping[str, int] | None = None,
) -> Snapshot:
    """One moment from lists of objects. `priorities` are the values of PriorityClasses, which PodGroups may name."""
    views = {view.name: view for view in map(node_view, nodes)}
    gangs = {gang.key: gang for gang in (_ranked(obj, priorities or {}) for obj in groups)}
    placed = [pod_view(obj) for obj in pods if takes_room(obj)]
    on: dict[str, list[Pod]] = {}
    for pod in placed:
        on.setdefault(pod.node, []).append(pod)
    snapshot = Snapshot(
        nodes={
            name: node.holding(tuple(on.get(name, ())), total(p.requests for p in on.get(name, ())))
            for name, node in views.items()
        },
        gangs=count_members(gangs, placed),
        queues={queue.name: queue for queue in map(queue_view, queues)},
        budgets=tuple(map(budget_view, budgets)),
        guarded=any(pod.shape.pod_affinity is not None and pod.shape.pod_affinity.apart for pod in placed),
    )
    if not snapshot.queues:
        return snapshot
    allocated: dict[str, Resources] = {}
    for pod in placed:
        queue = snapshot.queue_of(pod)
        allocated[queue] = add(allocated.get(queue, {}), pod.requests)
    return replace(snapshot, allocated=allocated)


def count_members(gangs: Mapping[GroupKey, Gang], placed: Iterable[Pod]) -> dict[GroupKey, Gang]:
    counts: dict[GroupKey, dict[str, int]] = {}
    for pod in placed:
        if pod.group in gangs and pod.group is not None:
            tasks = counts.setdefault(pod.group, {})
            tasks[pod.task] = tasks.get(pod.task, 0) + 1
    return {
        key: replace(gang, placed=sum(counts[key].values()), placed_tasks=counts[key]) if key in counts else gang
        for key, gang in gangs.items()
    }


def _ranked(obj: Object, priorities: Mapping[str, int]) -> Gang:
    name = (obj.get("spec") or {}).get("priorityClassName")
    return gang_view(obj, priority=priorities.get(name) if name else None)
