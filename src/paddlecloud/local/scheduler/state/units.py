"""What waits: single pods and gangs (units), and lines of units that are alike (lanes).

All units of a lane ask for the same, so when its first is refused the rest are too, and a round costs as much as there
are lanes, not as there are pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddlecloud.kube.quantity import total
from paddlecloud.kube.resource import Key
from paddlecloud.local.scheduler.state.shape import Resources
from paddlecloud.local.scheduler.state.snapshot import DEFAULT_QUEUE, Gang, GroupKey, Pod

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Pods that are placed together. `absent` names a PodGroup that its pods refer to and that does not exist."""

    pods: tuple[Pod, ...]
    gang: Gang | None = None
    absent: GroupKey | None = None

    @property
    def key(self) -> Key:
        group = self.gang.key if self.gang else self.absent
        return Key(group.namespace, group.name) if group else self.pods[0].key

    @property
    def queue(self) -> str:
        return self.gang.queue if self.gang else self.pods[0].queue or DEFAULT_QUEUE

    @property
    def priority(self) -> int:
        if self.gang is not None and self.gang.priority is not None:
            return self.gang.priority
        return max((pod.priority for pod in self.pods), default=0)

    @property
    def created(self) -> str:
        return self.gang.created if self.gang else self.pods[0].created

    @property
    def order(self) -> tuple[str, Key]:
        return (self.created, self.key)

    @property
    def needed(self) -> int:
        """How many of its pods must be placed now for any to be."""
        return max(0, self.gang.min_member - self.gang.placed) if self.gang else 1

    @property
    def nominated(self) -> bool:
        """Room is being made for it."""
        return any(pod.nominated for pod in self.pods)

    def requests(self) -> Resources:
        return total(pod.requests for pod in self.pods)


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """Units of one signature, in the order they are served."""

    units: tuple[Unit, ...]
    signature: Signature = field(default=())


def signature(unit: Unit) -> Signature:
    """Equal for units that every snapshot answers alike, as long as no rule about neighbours reads their labels."""
    if unit.gang is not None and len(unit.pods) < unit.needed:
        return (unit.queue, unit.priority, unit.gang.key)  # refused whatever its pods are like
    shapes: Counter[object] = Counter()
    for pod in unit.pods:
        pod_affinity = pod.shape.pod_affinity is not None
        shapes[
            (pod.shape, pod.task, pod.key.namespace, frozenset(pod.labels.items())) if pod_affinity else pod.shape
        ] += 1
    first = unit.pods[0]
    gang = unit.gang
    terms: object = None
    if gang is not None:
        tasks = tuple(sorted(gang.min_tasks.items()))
        terms = (gang.min_member, gang.placed, tasks, gang.key if tasks else None)
    elif unit.absent is not None:
        terms = unit.absent
    return (unit.queue, unit.priority, first.may_preempt, unit.nominated, terms, frozenset(shapes.items()))


def units_of(pods: Iterable[Pod], gangs: Mapping[GroupKey, Gang]) -> list[Unit]:
    """Waiting pods gathered into units, in the order they are served."""
    members: dict[GroupKey, list[Pod]] = {}
    units = []
    for pod in pods:
        if pod.group is None:
            units.append(Unit((pod,)))
        else:
            members.setdefault(pod.group, []).append(pod)
    for key, group in members.items():
        group.sort(key=lambda pod: (pod.created, pod.key))
        gang = gangs.get(key)
        units.append(Unit(tuple(group), gang, None if gang else key))
    return sorted(units, key=lambda unit: unit.order)


def lanes_of(units: Iterable[Unit]) -> list[Lane]:
    by_signature: dict[Signature, list[Unit]] = {}
    for unit in units:
        by_signature.setdefault(signature(unit), []).append(unit)
    return [Lane(tuple(sorted(alike, key=lambda unit: unit.order)), kind) for kind, alike in by_signature.items()]
