"""Which pods of a DaemonSet are replaced now because its template changed. Pure.

Without a surge the old pod of a node is deleted first, on at most `maxUnavailable` nodes at once; pods that serve
nobody anyway are replaced at once. With a surge the new pod comes first, beside the old one, on at most `maxSurge`
nodes at once. As rollingUpdate in pkg/controller/daemon/update.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from paddlecloud.kube.pods import is_leaving
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.deployment.rollout import resolve
from paddlecloud.local.workloads.revisions import REVISION


class Limits(NamedTuple):
    unavailable: int
    surge: int

    @staticmethod
    def of(daemon_set: Object, wanted: int) -> Limits | None:
        """None where only a user replaces pods. Percentages are of the wanted number, rounded up."""
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return None
        rolling = strategy.get("rollingUpdate") or {}
        unavailable = resolve(rolling.get("maxUnavailable", 1), wanted, up=True)
        surge = resolve(rolling.get("maxSurge", 0), wanted, up=True)
        return Limits(unavailable or int(surge == 0), surge)


class Replacement(NamedTuple):
    """Pods to delete, and nodes that get a new pod beside the old one."""

    delete: list[Object]
    create: list[str]


def is_current(pod: Object, revision: str) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(REVISION) == revision)


def replace(
    pods: Mapping[str, Sequence[Object]], revision: str, limits: Limits, is_available: Callable[[Object], bool]
) -> Replacement:
    """`pods` by node, with an entry for each node that wants one."""
    pairs = {node: _pair(found, revision) for node, found in pods.items()}
    return _surging(pairs, limits, is_available) if limits.surge else _deleting(pairs, limits, is_available)


class _Pair(NamedTuple):
    new: Object | None
    old: Object | None
    ambiguous: bool = False
    """More than one of either: to be cleared up first."""


def _pair(pods: Iterable[Object], revision: str) -> _Pair:
    staying = [pod for pod in pods if not is_leaving(pod)]
    new = [pod for pod in staying if is_current(pod, revision)]
    old = [pod for pod in staying if not is_current(pod, revision)]
    if len(new) > 1 or len(old) > 1:
        return _Pair(None, None, ambiguous=True)
    return _Pair(new[0] if new else None, old[0] if old else None)


def _deleting(pairs: Mapping[str, _Pair], limits: Limits, is_available: Callable[[Object], bool]) -> Replacement:
    unavailable = 0
    not_serving: list[Object] = []
    candidates: list[Object] = []
    for new, old, _ in pairs.values():
        if old is not None and new is None:
            (candidates if is_available(old) else not_serving).append(old)
        elif old is not None or new is None or not is_available(new):
            unavailable += 1
    return Replacement([*not_serving, *candidates[: max(0, limits.unavailable - unavailable)]], [])


def _surging(pairs: Mapping[str, _Pair], limits: Limits, is_available: Callable[[Object], bool]) -> Replacement:
    surging = 0
    superseded: list[Object] = []
    not_serving: list[str] = []
    candidates: list[str] = []
    for node, (new, old, ambiguous) in pairs.items():
        if ambiguous:
            surging += 1
        elif old is None:
            continue
        elif new is None:
            (candidates if is_available(old) else not_serving).append(node)
        elif is_available(new):
            superseded.append(old)
        else:
            surging += 1
    return Replacement(superseded, [*not_serving, *candidates[: max(0, limits.surge - surging)]])
