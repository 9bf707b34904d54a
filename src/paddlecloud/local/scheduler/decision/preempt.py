"""Making room for what matters more: the fewest and least important pods whose leaving lets a unit in.

Who may be made to leave: pods of lower priority in the same queue, and pods of other queues that use more than they
deserve when the asking queue would stay within its own (Volcano calls that reclaim). Without Queue objects there is one
queue, and this is the preemption of Kubernetes. A gang that would fall below its least number leaves whole, and counts
whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from paddlecloud.kube.resource import Key
from paddlecloud.local.scheduler.decision.attempt import Attempt, choose
from paddlecloud.local.scheduler.decision.filters import admits, has_room, ports, refusal
from paddlecloud.local.scheduler.decision.session import Session, requests_of
from paddlecloud.local.scheduler.state.shape import Resources, Shape, subtract
from paddlecloud.local.scheduler.state.snapshot import Budget, GroupKey, Node, Pod
from paddlecloud.local.scheduler.state.units import Unit


class Eviction(NamedTuple):
    """A pod that must go so that `preemptor` finds room. `reason` is Preempted or Reclaimed."""

    pod: Pod
    node: str
    preemptor: Key
    reason: str


@dataclass(frozen=True, slots=True)
class Rescue:
    """Where the pods of a unit will go once `evictions` are done; none when earlier ones are still under way."""

    placements: list[tuple[Pod, str]]
    evictions: list[Eviction]


Victims = tuple[tuple[Pod, str], ...]
"""Pods that can only leave together."""


def make_room(session: Session, unit: Unit) -> Rescue | None:
    """None if no pod may be made to leave, or none would help. Leaves the session as it was."""
    if not unit.needed or not all(pod.may_preempt for pod in unit.pods):
        return None
    lowest = session.snapshot.lowest
    if lowest is not None and lowest >= unit.priority and not session.ledger.queues:
        return None
    waiting = _under_way(session, unit)
    if waiting:
        return Rescue(waiting, [])
    search = _Search(session, unit)
    try:
        return search.run()
    finally:
        search.undo()


def _under_way(session: Session, unit: Unit) -> list[tuple[Pod, str]]:
    """The nominations of a unit for which pods are leaving already: it must not drive out more."""
    nominated = [(pod, pod.nominated) for pod in unit.pods if pod.nominated in session.draft.nodes]
    leaving = any(other.leaving for _, name in nominated for other in session.draft.nodes[name].pods)
    return nominated if leaving else []


class _Search:
    def __init__(self, session: Session, unit: Unit) -> None:
        self._session = session
        self._unit = unit
        self._attempt = Attempt(session)
        self._victims: list[Victims] = []
        self._gone: dict[str, str] = {}  # uid → reason
        self._gone_of: dict[GroupKey, int] = {}
        self._allowed: dict[Budget, int] = {budget: budget.allowed for budget in session.snapshot.budgets}
        ledger, needed = session.ledger, requests_of(unit.pods[: unit.needed])
        self._may_reclaim = bool(ledger.queues) and ledger.within(unit.queue, needed)

    def undo(self) -> None:
        self._attempt.undo()

    def run(self) -> Rescue | None:
        unit, session = self._unit, self._session
        if not self._find_quota():
            return None
        needed = unit.pods[: unit.needed]
        for number, pod in enumerate(needed):
            node = choose(session, pod, len(needed) - number) or self._clear_a_node(pod)
            if node is None:
                return None
            self._attempt.put(pod, node, unit.queue)
        if not self._victims:
            return None  # it fits after all: the round will place it
        self._spare()
        evictions = [
            Eviction(pod, node, unit.key, self._gone[pod.uid]) for victims in self._victims for pod, node in victims
        ]
        return Rescue(self._attempt.placements, evictions)

    # Who may go

    def _reason(self, victim: Pod) -> str:
        """Why this pod may be made to leave; empty if it may not."""
        unit, session = self._unit, self._session
        if victim.leaving or victim.uid in self._gone or (unit.gang and victim.group == unit.gang.key):
            return ""
        if not victim.node:
            return ""  # it got its place in this very round
        if not session.ledger.queues:
            return "Preempted" if victim.priority < unit.priority else ""
        theirs = session.snapshot.queue_of(victim)
        if theirs == unit.queue:
            return "Preempted" if victim.priority < unit.priority else ""
        queue = session.ledger.get(theirs)
        if queue is None or not queue.reclaimable or not self._may_reclaim:
            return ""
        return "Reclaimed" if session.ledger.exceeds(theirs) else ""

    def _together(self, victim: Pod, node: str) -> Victims:
        """The pod, and the rest of its gang if that cannot do without it; empty if one of those may not be moved."""
        gang = self._session.snapshot.gangs.get(victim.group) if victim.group else None
        if gang is None or gang.placed - self._gone_of.get(gang.key, 0) > gang.min_member:
            return ((victim, node),)
        members = tuple((pod, name) for pod, name in self._session.members(gang) if pod.uid not in self._gone)
        movable = all(pod.uid == victim.uid or pod.leaving or self._reason(pod) for pod, _ in members)
        return tuple(one for one in members if not one[0].leaving) if movable else ()

    def _evict(self, victims: Victims) -> None:
        for pod, node in victims:
            self._gone[pod.uid] = self._reason(pod) or "Preempted"
            if pod.group is not None:
                self._gone_of[pod.group] = self._gone_of.get(pod.group, 0) + 1
            for budget in self._allowed:
                if budget.covers(pod):
                    self._allowed[budget] -= 1
            self._session.take_away(pod, node)
        self._victims.append(victims)

    # Queues

    def _find_quota(self) -> bool:
        """Take back from queues until the unit breaks no limit."""
        lack = self._session.lack(self._unit)
        while lack is not None:
            found = None
            for victim, node in self._in_queue(lack.queue, lack.resource):
                victims = self._together(victim, node) if self._reason(victim) else ()
                if victims:
                    found = victims
                    break
            if found is None:
                return False
            self._evict(found)
            lack = self._session.lack(self._unit)
        return True

    def _in_queue(self, queue: str, resource: str) -> list[tuple[Pod, str]]:
        """Pods under a limit, those that should go first in front: of other queues, unimportant, young."""
        session, own = self._session, self._unit.queue
        found = [
            (pod, node, name == own)
            for name, pods in session.by_queue().items()
            if queue in session.ledger.chain(name)
            for pod, node in pods
            if pod.uid not in self._gone and pod.requests.get(resource)
        ]
        found.sort(key=lambda item: item[0].created, reverse=True)
        found.sort(key=lambda item: (item[2], item[0].priority))
        return [(pod, node) for pod, node, _ in found]

    # Nodes

    def _clear_a_node(self, pod: Pod) -> str | None:
        """The node on which making room costs least; its victims are taken away."""
        best: tuple[tuple[int, int, int, int], str, list[Victims]] | None = None
        viable = 0
        for name in self._session.draft.order:
            victims = self._victims_on(self._session.draft.nodes[name], pod)
            if victims is None:
                continue
            price = self._price(victims)
            if best is None or price < best[0]:
                best = (price, name, victims)
            viable += 1
            if viable >= self._session.policy.sample:
                break
        if best is None:
            return None
        for one in best[2]:
            if one[0][0].uid not in self._gone:  # two of them may belong to one gang
                self._evict(one)
        return best[1]

    def _victims_on(self, node: Node, pod: Pod) -> list[Victims] | None:
        shape = pod.shape
        if not admits(shape, node):
            return None
        movable = [other for other in node.pods if self._reason(other)]
        if not movable or not _would_fit(shape, node, movable):
            return None
        chosen = self._spare_on(node, shape, movable)
        for victims in (chosen, movable) if len(chosen) < len(movable) else (chosen,):
            together = [self._together(victim, node.name) for victim in victims]
            if all(together) and self._helps(node.name, pod, together):
                return together
        return None

    def _spare_on(self, node: Node, shape: Shape, movable: list[Pod]) -> list[Pod]:
        """Take all away, then let the most important stay as long as there is room.

        As kube-scheduler: SelectVictimsOnNode of pkg/scheduler/framework/plugins/defaultpreemption.
        """
        rest = node
        for other in movable:
            rest = rest.without(other)
        victims = []
        for other in sorted(movable, key=lambda p: (not self._protected(p), -p.priority, p.created)):
            with_it = rest.with_pod(other)
            if has_room(shape, with_it) and ports(shape, with_it) is None:
                rest = with_it
            else:
                victims.append(other)
        return victims

    def _helps(self, node: str, pod: Pod, victims: list[Victims]) -> bool:
        mark = self._session.mark()
        taken: set[str] = set()
        for together in victims:
            for victim, name in together:
                if victim.uid not in taken:
                    taken.add(victim.uid)
                    self._session.take_away(victim, name)
        now = self._session.draft.nodes[node]
        wishes = self._session.wishes(pod)
        good = refusal(pod.shape, now) is None and (wishes is None or wishes.refusal(now) is None)
        self._session.rollback(mark)
        return good

    def _protected(self, pod: Pod) -> bool:
        return any(allowed <= 0 and budget.covers(pod) for budget, allowed in self._allowed.items())

    def _price(self, victims: list[Victims]) -> tuple[int, int, int, int]:
        """Budgets broken, then the most important victim, then all of them, then their number."""
        pods = {pod.uid: pod for together in victims for pod, _ in together}.values()
        broken = 0
        for budget, allowed in self._allowed.items():
            broken += max(0, sum(1 for pod in pods if budget.covers(pod)) - max(0, allowed))
        priorities = [pod.priority for pod in pods]
        return (broken, max(priorities), sum(priorities), len(priorities))

    # In the end

    def _spare(self) -> None:
        """Let pods stay that need not go now that every pod has its node: the most important first."""
        for victims in sorted(self._victims, key=lambda victims: -max(pod.priority for pod, _ in victims)):
            mark = self._session.mark()
            if self._put_back(victims) and self._still_good():
                self._victims.remove(victims)
            else:
                self._session.rollback(mark)

    def _put_back(self, victims: Victims) -> bool:
        session = self._session
        for pod, name in victims:
            queue, node = session.snapshot.queue_of(pod), session.draft.nodes[name]
            if session.ledger.lack(queue, pod.requests) or not has_room(pod.shape, node) or ports(pod.shape, node):
                return False
            wishes = session.wishes(pod)
            if wishes is not None and wishes.refusal(node) is not None:
                return False
            session.place(pod, name, queue)
        return True

    def _still_good(self) -> bool:
        """Whether those who came for room still have what they want, if that is more than room."""
        session = self._session
        for pod, name in self._attempt.placements:
            if pod.shape.pod_affinity is None:
                continue
            mark = session.mark()
            session.draft.take_away(pod, name)
            wishes = session.wishes(pod)
            bad = wishes is not None and wishes.refusal(session.draft.nodes[name]) is not None
            session.rollback(mark)
            if bad:
                return False
        return True


def _would_fit(shape: Shape, node: Node, movable: list[Pod]) -> bool:
    freed: Resources = requests_of(movable)
    return has_room(shape, node.holding(node.pods, subtract(node.used, freed)))
