"""What the parts of one round share: the draft of nodes, the ledger of queues, the index of pod affinity.

They go forth and back together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paddlecloud.kube.quantity import Amount
from paddlecloud.local.scheduler.decision.affinity import AffinityIndex, Wishes
from paddlecloud.local.scheduler.decision.draft import Draft
from paddlecloud.local.scheduler.decision.queues import Lack, Ledger
from paddlecloud.local.scheduler.decision.scores import Policy
from paddlecloud.local.scheduler.state.shape import Resources, Shape
from paddlecloud.local.scheduler.state.snapshot import Gang, GroupKey, Pod, Snapshot
from paddlecloud.local.scheduler.state.units import Lane, Unit


class Mark(NamedTuple):
    draft: int
    entries: int


class Session:
    def __init__(self, snapshot: Snapshot, lanes: Sequence[Lane], policy: Policy) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.draft = Draft(snapshot, policy)
        self.ledger = Ledger(snapshot, _demand(lanes) if snapshot.queues else {})
        self._entries: list[tuple[str, Resources]] = []  # what was taken from queues, to be given back on the way back
        self._affinity_index: AffinityIndex | None = None
        self._guarded = snapshot.guarded
        self._members: dict[GroupKey, list[tuple[Pod, str]]] | None = None
        self._by_queue: dict[str, list[tuple[Pod, str]]] | None = None

    def wishes(self, pod: Pod) -> Wishes | None:
        """What neighbours have to do with it; None, and cheap, for nearly all pods."""
        if pod.shape.pod_affinity is None and not self._guarded:
            return None
        if self._affinity_index is None:
            self._affinity_index = AffinityIndex(self.draft, guarded=self._guarded)
        return self._affinity_index.wishes(pod)

    def place(self, pod: Pod, node: str, queue: str) -> None:
        self.draft.place(pod, node)
        if self.ledger.queues:
            self.ledger.take(queue, pod.requests)
            self._entries.append((queue, pod.requests))
        if pod.shape.pod_affinity is not None and pod.shape.pod_affinity.apart and not self._guarded:
            self._guarded = True
            self._affinity_index = None  # it was made without guards

    def take_away(self, pod: Pod, node: str) -> None:
        self.draft.take_away(pod, node)
        if self.ledger.queues:
            queue = self.snapshot.queue_of(pod)
            gone = {name: -amount for name, amount in pod.requests.items()}
            self.ledger.take(queue, gone)
            self._entries.append((queue, gone))

    def mark(self) -> Mark:
        return Mark(self.draft.mark(), len(self._entries))

    def rollback(self, mark: Mark) -> None:
        self.draft.rollback(mark.draft)
        while len(self._entries) > mark.entries:
            self.ledger.give(*self._entries.pop())

    def lack(self, unit: Unit) -> Lack | None:
        """The limit that placing the least a unit needs would break."""
        return self.ledger.lack(unit.queue, requests_of(unit.pods[: unit.needed]))

    def by_queue(self) -> dict[str, list[tuple[Pod, str]]]:
        """The pods of each queue that had a node when the round began."""
        if self._by_queue is None:
            self._by_queue = {}
            for node in self.snapshot.nodes.values():
                for pod in node.pods:
                    self._by_queue.setdefault(self.snapshot.queue_of(pod), []).append((pod, node.name))
        return self._by_queue

    def members(self, gang: Gang) -> list[tuple[Pod, str]]:
        """The pods of a gang that had a node when the round began."""
        if self._members is None:
            self._members = {}
            for node in self.snapshot.nodes.values():
                for pod in node.pods:
                    if pod.group is not None:
                        self._members.setdefault(pod.group, []).append((pod, node.name))
        return self._members.get(gang.key, [])


def requests_of(pods: Sequence[Pod]) -> Resources:
    """The sum, at the price of the shapes among them."""
    result: dict[str, Amount] = {}
    shapes: Counter[Shape] = Counter(pod.shape for pod in pods)
    for shape, count in shapes.items():
        for name, amount in shape.requests.items():
            result[name] = result.get(name, 0) + amount * count
    return result


def _demand(lanes: Sequence[Lane]) -> Mapping[str, Resources]:
    demand: dict[str, dict[str, Amount]] = {}
    for lane in lanes:
        wanted = demand.setdefault(lane.units[0].queue, {})
        for name, amount in requests_of(lane.units[0].pods).items():
            wanted[name] = wanted.get(name, 0) + amount * len(lane.units)
    return demand
