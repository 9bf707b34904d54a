"""One scheduling round as a pure function: snapshot and waiting pods in, placements and refusals out.

Pods of a PodGroup go all together or not at all: they are tried on a copy of the snapshot, and only if enough of them
fit is the copy kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from paddlecloud.kube.resource import Key

from .filters import Refusal, refusal
from .snapshot import Node, Pod, Snapshot

Score = Callable[[Pod, Node], float]


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup: at least `min_member` of its pods must be placed, counting those that already are."""

    key: Key
    min_member: int


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Why a pod waits. `message` is one line with numbers; `by_node` the reason of each node."""

    pod: Pod
    message: str
    by_node: Mapping[str, Refusal] = field(default_factory=dict)


@dataclass(slots=True)
class Round:
    placements: list[tuple[Pod, str]] = field(default_factory=list)
    unplaced: list[Unplaced] = field(default_factory=list)


def pack(pod: Pod, node: Node) -> float:
    """Prefer the node that is fullest after: leaves whole nodes free for gangs."""
    return _load(pod, node)


def spread(pod: Pod, node: Node) -> float:
    """Prefer the node that is emptiest after."""
    return -_load(pod, node)


def _load(pod: Pod, node: Node) -> float:
    shares = [
        (node.used.get(name, 0) + amount) / node.allocatable[name]
        for name, amount in pod.requests.items()
        if node.allocatable.get(name)
    ]
    return sum(shares) / len(shares) if shares else 0.0


def decide(
    snapshot: Snapshot, waiting: Iterable[Pod], gangs: Mapping[Key, Gang] | None = None, *, score: Score = spread
) -> Round:
    """Highest priority first, then in the order given; gangs stand where their first pod stands."""
    gangs = gangs or {}
    order = sorted(waiting, key=lambda pod: -pod.priority)
    seen: set[Key] = set()
    result = Round()
    for pod in order:
        if pod.group is None or pod.group not in gangs:
            if pod.group is not None:
                result.unplaced.append(Unplaced(pod, f"waiting for PodGroup {pod.group.name}: it does not exist yet"))
                continue
            snapshot = _one(snapshot, pod, score, result)
        elif pod.group not in seen:
            seen.add(pod.group)
            members = [other for other in order if other.group == pod.group]
            snapshot = _gang(snapshot, gangs[pod.group], members, score, result)
    return result


def _one(snapshot: Snapshot, pod: Pod, score: Score, result: Round) -> Snapshot:
    chosen, refusals = choose(snapshot, pod, score)
    if chosen is None:
        result.unplaced.append(Unplaced(pod, summary(snapshot, refusals), refusals))
        return snapshot
    result.placements.append((pod, chosen))
    return snapshot.placed(pod, chosen)


def _gang(snapshot: Snapshot, gang: Gang, members: list[Pod], score: Score, result: Round) -> Snapshot:
    placed_before = sum(1 for node in snapshot.nodes.values() for pod in node.pods if pod.group == gang.key)
    attempt, trial = snapshot, Round()
    for pod in members:
        attempt = _one(attempt, pod, score, trial)
    fitting = placed_before + len(trial.placements)
    if fitting >= gang.min_member:
        result.placements += trial.placements
        result.unplaced += trial.unplaced
        return attempt
    needed = f"gang {gang.key.name} needs {gang.min_member} pods at once, {fitting} fit"
    if len(members) + placed_before < gang.min_member:
        needed += f" ({len(members) + placed_before} of them exist)"
    why = {item.pod.key: item for item in trial.unplaced}
    cause = next(iter(why.values())).message if why else ""
    for pod in members:
        item = why.get(pod.key)
        text = f"{needed}: {item.message if item else cause}".rstrip(": ")
        result.unplaced.append(Unplaced(pod, text, item.by_node if item else {}))
    return snapshot


def choose(snapshot: Snapshot, pod: Pod, score: Score) -> tuple[str | None, dict[str, Refusal]]:
    refusals: dict[str, Refusal] = {}
    best: tuple[float, str] | None = None
    for name, node in snapshot.nodes.items():
        found = refusal(pod, node, snapshot)
        if found is not None:
            refusals[name] = found
            continue
        candidate = (score(pod, node), name)
        if best is None or candidate[0] > best[0]:
            best = candidate
    return (best[1] if best else None), refusals


def summary(snapshot: Snapshot, refusals: Mapping[str, Refusal]) -> str:
    """`0/3 nodes are available: 2 Insufficient cpu, …`, then the numbers of one node."""
    if not snapshot.nodes:
        return "0/0 nodes are available: no node has joined yet"
    counts = Counter(found.reason for found in refusals.values())
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    details = sorted({found.detail for found in refusals.values()})
    return f"0/{len(snapshot.nodes)} nodes are available: {listed}. {details[0] if details else ''}".strip()
