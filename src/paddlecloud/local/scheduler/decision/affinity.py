"""Rules about neighbours: pod affinity, anti-affinity in both directions, spreading over topologies.

Neighbours of a node are the nodes with the same value of a label (`topologyKey`). Each rule needs to know how many
matching pods every such domain has; those tallies are made once a round and then follow the draft's log.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from paddlecloud.local.scheduler.decision.draft import Draft
from paddlecloud.local.scheduler.decision.filters import Refusal, admits
from paddlecloud.local.scheduler.state.shape import AffinityTerm, SpreadTerm
from paddlecloud.local.scheduler.state.snapshot import Node, Pod


class Tally:
    """How many pods a term selects, by domain."""

    def __init__(self, term: AffinityTerm, owner: str) -> None:
        self.term = term
        self.owner = owner
        self.by_domain: Counter[str] = Counter()
        self._promised: Counter[str] = Counter()  # of those, pods that are not there yet

    def count(self, node: Node, pod: Pod, step: int) -> None:
        domain = node.labels.get(self.term.topology)
        if domain is not None and self.term.selects(self.owner, pod.key.namespace, pod.labels):
            self.by_domain[domain] += step
            if pod.promised:
                self._promised[domain] += step

    def here(self, node: Node) -> int:
        """Pods in the way, those that will come included."""
        domain = node.labels.get(self.term.topology)
        return 0 if domain is None else self.by_domain[domain]

    def matching(self, node: Node) -> int:
        """Pods to be near to: those that are really there."""
        domain = node.labels.get(self.term.topology)
        return 0 if domain is None else self.by_domain[domain] - self._promised[domain]

    @property
    def total(self) -> int:
        return self.by_domain.total()


class AffinityIndex:
    """The tallies of one draft."""

    def __init__(self, draft: Draft, *, guarded: bool) -> None:
        self._draft = draft
        self._tallies: dict[tuple[AffinityTerm, str], Tally] = {}
        self._followed = len(draft.log)
        self._guards: dict[tuple[AffinityTerm, str], Counter[str]] = {}
        """Required anti-affinity of placed pods: which domains each of these rules protects, and how often."""
        if guarded:
            for node in draft.nodes.values():
                for pod in node.pods:
                    self._guard(node, pod, 1)

    def wishes(self, pod: Pod) -> Wishes | None:
        """Everything about neighbours that bears on this pod; None if nothing does."""
        self._follow()
        namespace = pod.key.namespace
        guards = [
            (term, owner, domains)
            for (term, owner), domains in self._guards.items()
            if term.selects(owner, namespace, pod.labels)
        ]
        pod_affinity = pod.shape.pod_affinity
        if pod_affinity is None:
            return Wishes(pod, guards=guards) if guards else None
        return Wishes(
            pod,
            guards=guards,
            near=[self._tally(term, namespace) for term in pod_affinity.near],
            apart=[self._tally(term, namespace) for term in pod_affinity.apart],
            prefer_near=[self._tally(term, namespace) for term in pod_affinity.prefer_near],
            prefer_apart=[self._tally(term, namespace) for term in pod_affinity.prefer_apart],
            spread=[self._spread(term, pod) for term in pod_affinity.spread],
        )

    def _tally(self, term: AffinityTerm, owner: str) -> Tally:
        found = self._tallies.get((term, owner))
        if found is None:
            found = self._tallies[(term, owner)] = Tally(term, owner)
            for node in self._draft.nodes.values():
                for pod in node.pods:
                    found.count(node, pod, 1)
        return found

    def _spread(self, term: SpreadTerm, pod: Pod) -> Spread:
        tally = self._tally(AffinityTerm(term.topology, term.selector, frozenset()), pod.key.namespace)
        domains = {
            node.labels[term.topology]
            for node in self._draft.nodes.values()
            if term.topology in node.labels and admits(pod.shape, node)
        }
        least = min((tally.by_domain[domain] for domain in domains), default=0)
        return Spread(term, tally, least, int(term.selector.matches(pod.labels)))

    def _guard(self, node: Node, pod: Pod, step: int) -> None:
        pod_affinity = pod.shape.pod_affinity
        if pod_affinity is None:
            return
        for term in pod_affinity.apart:
            domain = node.labels.get(term.topology)
            if domain is not None:
                self._guards.setdefault((term, pod.key.namespace), Counter())[domain] += step

    def _follow(self) -> None:
        for move in self._draft.log[self._followed :]:
            step = 1 if move.arrived else -1
            self._guard(move.before, move.pod, step)
            for tally in self._tallies.values():
                tally.count(move.before, move.pod, step)
        self._followed = len(self._draft.log)


@dataclass(slots=True)
class Spread:
    term: SpreadTerm
    tally: Tally
    least: int
    own: int

    def skew(self, node: Node) -> int:
        """How much fuller than the emptiest domain the node's would be with the pod in it."""
        return self.tally.here(node) + self.own - self.least


class Wishes:
    """What one pod and its neighbours-to-be want of each other."""

    def __init__(
        self,
        pod: Pod,
        *,
        guards: list[tuple[AffinityTerm, str, Counter[str]]],
        near: list[Tally] | None = None,
        apart: list[Tally] | None = None,
        prefer_near: list[Tally] | None = None,
        prefer_apart: list[Tally] | None = None,
        spread: list[Spread] | None = None,
    ) -> None:
        self._pod = pod
        self.guarded = bool(guards)
        self._guards = guards
        self._near = near or []
        self._apart = apart or []
        self._prefer_near = prefer_near or []
        self._prefer_apart = prefer_apart or []
        self._spread = spread or []

    def refusal(self, node: Node) -> Refusal | None:
        labels = node.labels
        for tally in self._near:
            if not tally.matching(node) and not self._starts(tally, node):
                what = f"no pod with {tally.term.selector.brief()} in its {tally.term.topology}"
                return Refusal("near", "node(s) didn't match pod affinity rules", what)
        for tally in self._apart:
            if tally.here(node):
                what = f"{tally.here(node)} pod(s) with {tally.term.selector.brief()} in its {tally.term.topology}"
                return Refusal("apart", "node(s) didn't match pod anti-affinity rules", what)
        for term, owner, domains in self._guards:
            if domains[labels.get(term.topology, "")] > 0:
                what = f"a pod of namespace {owner} excludes pods with {term.selector.brief()} from its {term.topology}"
                return Refusal("guarded", "node(s) didn't satisfy existing pods anti-affinity rules", what)
        for spread in self._spread:
            if not spread.term.hard:
                continue
            if spread.term.topology not in labels:
                what = f"the node has no label {spread.term.topology}"
                return Refusal("spread", "node(s) didn't match pod topology spread constraints", what)
            if spread.skew(node) > spread.term.max_skew:
                what = f"skew over {spread.term.topology} would be {spread.skew(node)}, at most {spread.term.max_skew}"
                return Refusal("spread", "node(s) didn't match pod topology spread constraints", what)
        return None

    def _starts(self, tally: Tally, node: Node) -> bool:
        """A pod that matches its own affinity may be the first of its group.

        As kube-scheduler: satisfyPodAffinity of pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
        """
        pod = self._pod
        if tally.term.topology not in node.labels or tally.total:
            return False
        return tally.term.selects(pod.key.namespace, pod.key.namespace, pod.labels)

    def score(self, node: Node) -> float:
        """Between -1 and 1: the weight of what the node grants minus that of what it denies."""
        wanted = sum(t.term.weight for t in self._prefer_near) + sum(t.term.weight for t in self._prefer_apart)
        got = sum(t.term.weight for t in self._prefer_near if t.matching(node))
        got -= sum(t.term.weight for t in self._prefer_apart if t.here(node))
        score = got / wanted if wanted else 0.0
        for spread in self._spread:
            if not spread.term.hard:
                excess = max(0, spread.skew(node) - spread.term.max_skew)
                score -= excess / (1 + excess)
        return score
