"""Placing one unit: all that must be placed together and as much of the rest as fits; or nothing, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.local.scheduler.decision.affinity import Wishes
from paddlecloud.local.scheduler.decision.filters import Refusal, fits
from paddlecloud.local.scheduler.decision.filters import refusal as refusal_by_shape
from paddlecloud.local.scheduler.decision.queues import Lack
from paddlecloud.local.scheduler.decision.scores import AFFINITY_WEIGHT
from paddlecloud.local.scheduler.decision.session import Session
from paddlecloud.local.scheduler.state.shape import Shape
from paddlecloud.local.scheduler.state.snapshot import Pod
from paddlecloud.local.scheduler.state.units import Unit


@dataclass(frozen=True, slots=True)
class Why:
    """Why a unit waits: a word for programs, a line with numbers for people, and the reason of each node."""

    code: str
    message: str
    by_node: Mapping[str, Refusal] = field(default_factory=dict)
    fitting: int = 0
    """How many of its pods have or would find a node."""
    lack: Lack | None = None


class Attempt:
    """Afterwards `placements` are in the session; `undo` takes them out again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._mark = session.mark()
        self.placements: list[tuple[Pod, str]] = []

    def place(self, unit: Unit) -> Why | None:
        session = self._session
        if session.ledger.queues and unit.needed and (lack := session.lack(unit)) is not None:
            return Why("QueueFull", _gang_text(unit, str(lack)), lack=lack)
        hopeless: set[Shape] = set()
        refusals: dict[str, Refusal] = {}
        lack = None
        for number, pod in enumerate(unit.pods):
            if pod.shape in hopeless:
                continue
            lack = session.ledger.lack(unit.queue, pod.requests)
            node = None if lack else choose(session, pod, len(unit.pods) - number)
            if node is not None:
                self.put(pod, node, unit.queue)
                continue
            if pod.shape.pod_affinity is None:
                hopeless.add(pod.shape)
            if not refusals and lack is None:
                refusals = refusals_of(session, pod)
        return None if self._enough(unit) else self.why(unit, refusals, lack)

    def put(self, pod: Pod, node: str, queue: str) -> None:
        self._session.place(pod, node, queue)
        self.placements.append((pod, node))

    def undo(self) -> None:
        self._session.rollback(self._mark)
        self.placements = []

    def _enough(self, unit: Unit) -> bool:
        if unit.gang is None:
            return bool(self.placements)
        if not self.placements or len(self.placements) < unit.needed:
            return False
        if not unit.gang.min_tasks:
            return True
        tasks = Counter(pod.task for pod, _ in self.placements)
        placed = unit.gang.placed_tasks
        return all(tasks[task] + placed.get(task, 0) >= least for task, least in unit.gang.min_tasks.items())

    def why(self, unit: Unit, refusals: Mapping[str, Refusal], lack: Lack | None) -> Why:
        fitting = len(self.placements) + (unit.gang.placed if unit.gang else 0)
        if lack is not None and not refusals:
            return Why("QueueFull", _gang_text(unit, str(lack), fitting), fitting=fitting, lack=lack)
        text = summary(len(self._session.draft.nodes), refusals)
        return Why("Unschedulable", _gang_text(unit, text, fitting), refusals, fitting=fitting)


def _gang_text(unit: Unit, text: str, fitting: int | None = None) -> str:
    if unit.gang is None or unit.needed == 0:
        return text
    fit = "" if fitting is None else f", {fitting} fit"
    return f"gang {unit.gang.key.name} needs {unit.gang.min_member} pods at once{fit}: {text}"


def choose(session: Session, pod: Pod, pods: int = 1) -> str | None:
    """The best node for a pod, of `pods` that are to come; None if none takes it."""
    wishes = session.wishes(pod)
    if wishes is None:
        return session.draft.candidates(pod.shape).best(pods)
    return _choose_slowly(session, pod, wishes)


def _choose_slowly(session: Session, pod: Pod, wishes: Wishes) -> str | None:
    """Rules about neighbours can change the answer of every node with each placement: ask them all again."""
    policy, nodes = session.policy, session.draft.nodes
    best: tuple[float, str] | None = None
    found = 0
    for name in session.draft.order:
        node = nodes[name]
        if not fits(pod.shape, node) or wishes.refusal(node) is not None:
            continue
        score = policy.score(pod.shape, node) + AFFINITY_WEIGHT * wishes.score(node)
        if best is None or score > best[0]:
            best = (score, name)
        found += 1
        if found >= policy.sample:
            break
    return best[1] if best else None


def refusals_of(session: Session, pod: Pod) -> dict[str, Refusal]:
    """Why each node says no to a pod, as things stand in the draft."""
    wishes = session.wishes(pod)
    refusals: dict[str, Refusal] = {}
    for name, node in session.draft.nodes.items():
        found = refusal_by_shape(pod.shape, node)
        if found is None and wishes is not None:
            found = wishes.refusal(node)
        if found is not None:
            refusals[name] = found
    return refusals


def summary(nodes: int, refusals: Mapping[str, Refusal]) -> str:
    """`0/3 nodes are available: 2 Insufficient cpu, …`, then the numbers of one node."""
    if not nodes:
        return "0/0 nodes are available: no node has joined yet"
    counts = Counter(found.reason for found in refusals.values())
    listed = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    details = sorted({found.detail for found in refusals.values()})
    return f"0/{nodes} nodes are available: {listed}. {details[0] if details else ''}".strip()
