"""How large each ReplicaSet of a Deployment may be right now. Pure arithmetic.

The two promises: never more than `wanted + surge` pods, never fewer than `wanted - unavailable` of them available.
Both are kept on what is known to exist, not on what was asked for: no size changes until every set has seen the one it
has, and a set has no more available pods than its desired number. Pods on their way out count for neither promise, as
in Kubernetes.

    wanted 3, surge 1, unavailable 0     old   new
    begin                                3     0
    room for one                         3     1
    it is available, one may go          2     1
    desired number, room for one         2     2  … and so on to 0, 3
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object

DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
"""Annotations of a ReplicaSet: the wanted number of its Deployment when it got its size, and that with the surge."""


class Size(NamedTuple):
    """`settled` says that the set has seen its size and made or removed pods accordingly.

    `desired` and `most` are its annotations, where it has them.
    """

    replicas: int
    available: int = 0
    settled: bool = True
    desired: int | None = None
    most: int | None = None

    @staticmethod
    def of(replica_set: Object) -> Size:
        status = replica_set.get("status") or {}
        return Size(
            replicas=int(replica_set["spec"].get("replicas", 1)),
            available=int(status.get("availableReplicas") or 0),
            settled=int(status.get("observedGeneration") or 0) >= int(replica_set["metadata"].get("generation") or 0),
            desired=_annotated(replica_set, DESIRED),
            most=_annotated(replica_set, MOST),
        )


def _annotated(replica_set: Object, name: str) -> int | None:
    text = (replica_set["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


class Limits(NamedTuple):
    wanted: int
    surge: int
    unavailable: int

    @staticmethod
    def of(deployment: Object) -> Limits:
        """Percentages are of the wanted number: the surge rounded up, the unavailable down; both zero means one."""
        spec = deployment["spec"]
        wanted = int(spec.get("replicas", 1))
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return Limits(wanted, 0, wanted)
        rolling = strategy.get("rollingUpdate") or {}
        surge = resolve(rolling.get("maxSurge", "25%"), wanted, up=True)
        unavailable = min(resolve(rolling.get("maxUnavailable", "25%"), wanted, up=False), wanted)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return Limits(wanted, surge, unavailable)

    @property
    def annotations(self) -> dict[str, str]:
        """Of a set that gets its size under these limits."""
        return {DESIRED: str(self.wanted), MOST: str(self.wanted + self.surge)}


def resolve(value: Any, whole: int, *, up: bool) -> int:
    """`2` or `25%` of `whole`."""
    if isinstance(value, int):
        return value
    share = int(str(value).rstrip("%")) * whole / 100
    return math.ceil(share) if up else math.floor(share)


def roll(limits: Limits, new: Size, old: Sequence[Size]) -> tuple[int, list[int]]:
    """The sizes to ask for now: the new set's, and the old ones' (oldest first)."""
    if not all(size.settled for size in (new, *old)):
        return new.replicas, [size.replicas for size in old]  # how many pods there are is not known yet
    if new.replicas > limits.wanted:
        return limits.wanted, [size.replicas for size in old]  # first things first: this alone frees room
    room = limits.wanted + limits.surge - sum(size.replicas for size in (new, *old))
    return min(limits.wanted, new.replicas + max(0, room)), _give_up(limits, new, old)


def _give_up(limits: Limits, new: Size, old: Sequence[Size]) -> list[int]:
    least = limits.wanted - limits.unavailable
    healthy = [min(size.available, size.replicas) for size in (new, *old)]
    sizes = [size.replicas for size in old]
    budget = new.replicas + sum(sizes) - least - (new.replicas - healthy[0])
    if budget <= 0:
        return sizes
    left = budget
    for index, good in enumerate(healthy[1:]):  # those that serve nobody go first
        taken = min(left, sizes[index] - good)
        sizes[index] -= taken
        left -= taken
    spare = min(sum(healthy) - least, left)
    for index in range(len(sizes)):
        taken = min(max(spare, 0), sizes[index])
        sizes[index] -= taken
        spare -= taken
    return sizes


def is_rescaled(wanted: int, sizes: Iterable[Size]) -> bool:
    """Whether the Deployment got another size since its sets got theirs."""
    return any(size.replicas and size.desired not in (None, wanted) for size in sizes)


def rescale(limits: Limits, sizes: Sequence[Size], pods: int) -> list[int]:
    """The sizes, oldest set first, when the Deployment got another size, or is paused and starts no rollout.

    Every set that has pods gets its share of the difference, so that a rollout stays where it was: as `scale` in
    pkg/controller/deployment/sync.go. `pods` is how many there are: for sets that do not say what they are a part of.

        surge 3          old    new
        wanted 10        8      5      13 in all
        wanted 30        20     13     8/13 and 5/13 of 33
    """
    targets = [size.replicas for size in sizes]
    active = [index for index, size in enumerate(sizes) if size.replicas]
    if len(active) < 2:
        if targets:
            targets[active[0] if active else -1] = limits.wanted
        return targets
    missing = (limits.wanted + limits.surge if limits.wanted else 0) - sum(targets)
    order = sorted(active, key=lambda index: (-targets[index], -index if missing > 0 else index))
    left = missing
    for index in order:
        share = _share(limits, sizes[index], pods) if left else 0
        share = min(share, left) if missing > 0 else max(share, left)
        targets[index] += share
        left -= share
    targets[order[0]] = max(0, targets[order[0]] + left)
    return targets


def _share(limits: Limits, size: Size, pods: int) -> int:
    """By how many pods a set grows if it keeps its part of all."""
    if not limits.wanted:
        return -size.replicas
    before = size.most or pods
    return math.floor(size.replicas * (limits.wanted + limits.surge) / before + 0.5) - size.replicas if before else 0
