"""Which of the nodes that can take a pod should: each score is a number between 0 and 1, a policy weighs them.

Scores look at one node at a time. kube-scheduler stretches its scores over all candidates; ours stay comparable while
candidates come and go, which is what lets a gang be placed from one ordered heap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paddlecloud.local.scheduler.state.shape import CACHE_LABEL, Shape
from paddlecloud.local.scheduler.state.snapshot import Node

Score = Callable[[Shape, Node], float]


def pack(shape: Shape, node: Node) -> float:
    """The fullest node first: leaves whole nodes free for gangs."""
    return load(shape, node)


def spread(shape: Shape, node: Node) -> float:
    """The emptiest node first."""
    return 1.0 - load(shape, node)


def load(shape: Shape, node: Node) -> float:
    """How full the node would be with the pod on it, over the resources the pod asks for."""
    used, allocatable = node.used, node.allocatable
    shares, count = 0.0, 0
    for name, amount in shape.requests.items():
        have = allocatable.get(name, 0)
        if have:
            shares += (used.get(name, 0) + amount) / have
            count += 1
    return shares / count if count else 0.0


def preferred_affinity(shape: Shape, node: Node) -> float:
    """The share of preferred node affinity, by weight, that the node satisfies."""
    if not shape.preferred:
        return 0.0
    weights = matched = 0
    for weight, term in shape.preferred:
        weights += weight
        if term.matches(node.name, node.labels):
            matched += weight
    return matched / weights if weights else 0.0


def unwelcome(shape: Shape, node: Node) -> float:
    """1 for no PreferNoSchedule taint that the pod does not tolerate, towards 0 with every one."""
    if not node.taints:
        return 1.0
    count = sum(1 for t in node.taints if t.get("effect") == "PreferNoSchedule" and not shape.tolerates(t))
    return 1.0 / (1 + count)


def locality(shape: Shape, node: Node) -> float:
    """The share of the pod's claims whose data the node caches, by the label that its cache puts on it."""
    if not shape.claims:
        return 0.0
    here = [key[len(CACHE_LABEL) :] for key in node.labels if key.startswith(CACHE_LABEL)]
    return sum(1 for claim in shape.claims if any(key.endswith(f"-{claim}") for key in here)) / len(shape.claims)


@dataclass(frozen=True, slots=True)
class Policy:
    """How a round is decided. `sample` bounds how many candidates are compared for a lone pod; a gang compares more."""

    scores: tuple[tuple[float, Score], ...]
    sample: int = 100
    preempt: bool = True
    start: int = 0
    """Where to begin looking among the nodes, so that sampling does not always meet the same ones."""

    def score(self, shape: Shape, node: Node) -> float:
        total = 0.0
        for weight, one in self.scores:
            total += weight * one(shape, node)
        return total


_WISHES: tuple[tuple[float, Score], ...] = ((4.0, preferred_affinity), (8.0, unwelcome), (2.0, locality))
POLICIES: dict[str, Policy] = {
    "spread": Policy(((1.0, spread), *_WISHES)),
    "pack": Policy(((1.0, pack), *_WISHES)),
}
DEFAULT = POLICIES["spread"]
AFFINITY_WEIGHT = 3.0
"""Of preferred pod (anti-)affinity and soft spreading, which look at more than one node."""
