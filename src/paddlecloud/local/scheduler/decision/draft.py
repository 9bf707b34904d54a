"""The working copy of a round: a snapshot's nodes with the placements tried so far, and a way back.

Nodes themselves stay immutable; what changes is which version of a node the draft points at. Every move is logged, so
that a gang that did not fit is undone, and so that what is remembered about nodes (`Candidates`, `AffinityIndex`)
can catch up with what changed instead of looking at all of them again.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from paddlecloud.local.scheduler.decision.filters import admits, has_room, ports
from paddlecloud.local.scheduler.decision.scores import Policy
from paddlecloud.local.scheduler.state.shape import Shape
from paddlecloud.local.scheduler.state.snapshot import Node, Pod, Snapshot


class Move(NamedTuple):
    node: str
    pod: Pod
    arrived: bool
    before: Node


class Draft:
    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.nodes: dict[str, Node] = dict(snapshot.nodes)
        self.order = tuple(self.nodes)
        self.log: list[Move] = []
        self._candidates: dict[Shape, Candidates] = {}

    def place(self, pod: Pod, name: str) -> None:
        before = self.nodes[name]
        self.log.append(Move(name, pod, True, before))
        self.nodes[name] = before.with_pod(pod)

    def take_away(self, pod: Pod, name: str) -> None:
        before = self.nodes[name]
        self.log.append(Move(name, pod, False, before))
        self.nodes[name] = before.without(pod)

    def mark(self) -> int:
        return len(self.log)

    def rollback(self, mark: int) -> None:
        """Undo everything since `mark`. The undoing is logged too: followers need it."""
        for move in reversed(self.log[mark:]):
            now = self.nodes[move.node]
            self.nodes[move.node] = move.before
            self.log.append(Move(move.node, move.pod, not move.arrived, now))

    def candidates(self, shape: Shape) -> Candidates:
        found = self._candidates.get(shape)
        if found is None:
            found = self._candidates[shape] = Candidates(self, shape)
        return found


class Candidates:
    """Nodes that can take a pod of one shape, best first.

    Only as many nodes are looked at as the number of pods to place makes worthwhile; when those are full the search
    goes on. After a placement only the node that changed is judged again.

    Invariant: an entry of the heap counts only if it carries the newest version of its node.
    """

    def __init__(self, draft: Draft, shape: Shape) -> None:
        self._draft = draft
        self._shape = shape
        self._heap: list[tuple[float, int, str, int]] = []  # (-score, order of discovery, node, version)
        self._versions: dict[str, int] = {}  # of every node looked at
        self._alive = 0  # nodes looked at that fit
        self._fits: dict[str, bool] = {}
        self._admits: dict[str, bool] = {}  # what no move changes is asked once
        self._followed = len(draft.log)
        count = len(draft.order)
        start = draft.policy.start % count if count else 0
        self._unseen = iter((*draft.order[start:], *draft.order[:start]))
        self._exhausted = False

    def best(self, pods: int = 1) -> str | None:
        """The best node for the next pod, of `pods` that are to come; None if there is none."""
        self._follow()
        wanted = max(self._draft.policy.sample, 2 * pods)
        while not self._exhausted and self._alive < wanted:
            self._look_further()
        while True:
            while self._heap:
                _, _, name, version = self._heap[0]
                if self._versions[name] == version:
                    return name
                heapq.heappop(self._heap)
            if self._exhausted:
                return None
            self._look_further()

    def _look_further(self) -> None:
        name = next(self._unseen, None)
        if name is None:
            self._exhausted = True
        else:
            self._judge(name)

    def _follow(self) -> None:
        log = self._draft.log
        if self._followed < len(log):
            for name in {move.node for move in log[self._followed :]}:
                if name in self._versions:
                    self._judge(name)
            self._followed = len(log)

    def _judge(self, name: str) -> None:
        node = self._draft.nodes[name]
        version = self._versions.get(name, -1) + 1
        self._versions[name] = version
        admitted = self._admits.get(name)
        if admitted is None:
            admitted = self._admits[name] = admits(self._shape, node)
        fit = admitted and has_room(self._shape, node) and ports(self._shape, node) is None
        self._alive += fit - self._fits.get(name, False)
        self._fits[name] = fit
        if fit:
            entry = (-self._draft.policy.score(self._shape, node), len(self._versions), name, version)
            heapq.heappush(self._heap, entry)
