"""How long the replacement of a failed pod waits: not at all the first time on a node, then 1 s, 2 s, … 15 minutes.

Kept in memory, by node: a node that refuses pods would otherwise get a new one without end. What is lost with a restart
is one wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddlecloud.kube.backoff import exponential
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.daemonset.placement import node_of

FIRST_DELAY, LONGEST_DELAY = 1.0, 900.0
FORGOTTEN_AFTER = 2 * LONGEST_DELAY


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last: float = 0.0
    replaced_at: dict[str, float] = field(default_factory=dict)


class FailedPodBackoff:
    """By uid of the DaemonSet and name of the node."""

    def __init__(self) -> None:
        self._failures: dict[str, dict[str, _Failures]] = {}

    def observe(self, owner: str, failed: Iterable[Object], now: float) -> Mapping[str, float]:
        """The moment from which each of the failed pods may be replaced, by the pod's uid."""
        nodes = self._failures.setdefault(owner, {})
        moments: dict[str, float] = {}
        for pod in failed:
            uid, known = pod["metadata"]["uid"], nodes.setdefault(node_of(pod), _Failures())
            if uid not in known.replaced_at:
                self._count(known, uid, now)
            moments[uid] = known.replaced_at[uid]
        for known in nodes.values():
            known.replaced_at = {uid: moment for uid, moment in known.replaced_at.items() if uid in moments}
        for name in [name for name, known in nodes.items() if now - known.last > FORGOTTEN_AFTER]:
            del nodes[name]
        return moments

    def _count(self, known: _Failures, uid: str, now: float) -> None:
        if now - known.last > FORGOTTEN_AFTER:
            known.count = 0
        wait = exponential(known.count - 1, base=FIRST_DELAY, cap=LONGEST_DELAY) if known.count else 0.0
        known.count, known.last = known.count + 1, now + wait
        known.replaced_at[uid] = now + wait

    def forget(self, owner: str) -> None:
        self._failures.pop(owner, None)
