"""What a pod asks of a node, compiled once and shared by all pods that ask for the same.

Two pods of one shape get the same answer from every node, so a gang of ten thousand costs one look at each node and not
ten thousand. Labels and namespace are no part of a shape: only rules about neighbours (`affinity`) read those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from paddlecloud.kube.pods import HostPort, host_ports
from paddlecloud.kube.quantity import ONE, Amount, amounts, total
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector, Requirement, few
from paddlecloud.local.nodes.marks import NODE_KIND, SIMULATED, SIMULATED_TAINT

Resources = Mapping[str, Amount]

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}
CACHE_LABEL = "paddlepaddle.org/"
"""Nodes that cache data of claim C carry a label `paddlepaddle.org/<driver>-C`."""


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node affinity: all expressions must hold. A term without any matches nothing, as in Kubernetes."""

    labels: tuple[Requirement, ...]
    names: tuple[tuple[bool, frozenset[str]], ...]  # matchFields on metadata.name: (wanted inside?, names)

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.labels and not self.names:
            return False
        for inside, names in self.names:
            if (name in names) != inside:
                return False
        return all(rule.matches(labels) for rule in self.labels)

    def brief(self) -> str:
        """For messages."""
        names = (Requirement("name", "in" if inside else "notin", names) for inside, names in self.names)
        return few((*self.labels, *names), ",", Requirement.brief)


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str
    exists: bool
    value: str
    effect: str

    def tolerates(self, taint: Object) -> bool:
        if self.effect and self.effect != taint.get("effect"):
            return False
        if self.exists:
            return not self.key or self.key == taint.get("key")
        return self.key == taint.get("key") and self.value == (taint.get("value") or "")


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One rule about the pods nearby. `topology` is the node label whose value makes nodes neighbours."""

    topology: str
    selector: LabelSelector
    namespaces: frozenset[str]
    """Empty means the namespace of the pod that has the rule."""
    everywhere: bool = False
    weight: int = 0

    def selects(self, owner: str, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels in `namespace` is meant by a rule of a pod in namespace `owner`."""
        if not self.everywhere and namespace not in (self.namespaces or (owner,)):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadTerm:
    topology: str
    selector: LabelSelector
    max_skew: int
    hard: bool


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """A pod's wishes about its neighbours; None in a shape that has none, which is nearly always."""

    near: tuple[AffinityTerm, ...]
    apart: tuple[AffinityTerm, ...]
    prefer_near: tuple[AffinityTerm, ...]
    prefer_apart: tuple[AffinityTerm, ...]
    spread: tuple[SpreadTerm, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Compared by identity: `shape_of` gives equal requirements one object."""

    requests: Resources
    selector: Mapping[str, str] = field(default_factory=dict)
    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    ports: frozenset[HostPort] = frozenset()
    claims: frozenset[str] = frozenset()
    pod_affinity: PodAffinity | None = None

    def tolerates(self, taint: Object) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


_shapes: dict[bytes, Shape] = {}
MOST_SHAPES = 10_000
LARGEST_KEPT = 8 * 1024
"""Bytes of what a shape is made of. Larger ones are shared by nobody: ten thousand of them would fill the memory."""
_RELEVANT = ("nodeSelector", "affinity", "tolerations", "overhead", "topologySpreadConstraints", "hostNetwork")
_encode = msgspec.json.Encoder(order="deterministic").encode


def shape_of(spec: Object, *, simulated: bool = False) -> Shape:
    """The shared shape of a pod's spec. A pod that is to be simulated goes to simulated nodes, and only there."""
    parts: list[object] = [simulated, *(spec.get(name) for name in _RELEVANT)]
    for kind in ("containers", "initContainers"):
        parts += [(c.get("resources"), c.get("restartPolicy"), c.get("ports")) for c in spec.get(kind) or ()]
        parts.append(kind)
    parts += [v["persistentVolumeClaim"] for v in spec.get("volumes") or () if "persistentVolumeClaim" in v]
    key = _encode(parts)
    shape = _shapes.get(key)
    if shape is None:
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()  # shapes are compared by identity within a round at most: a second copy is only slower
        shape = _compile(spec, simulated=simulated)
        if len(key) <= LARGEST_KEPT:
            _shapes[key] = shape
    return shape


def _compile(spec: Object, *, simulated: bool) -> Shape:
    affinity = spec.get("affinity") or {}
    nodes = affinity.get("nodeAffinity") or {}
    required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution")
    return Shape(
        requests=requests_of(spec),
        selector={**(spec.get("nodeSelector") or {}), **({NODE_KIND: SIMULATED} if simulated else {})},
        required=tuple(map(_node_term, required.get("nodeSelectorTerms") or ())) if required else None,
        preferred=tuple(
            (int(entry.get("weight") or 0), _node_term(entry.get("preference") or {}))
            for entry in nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ),
        tolerations=(*map(_toleration, spec.get("tolerations") or ()), *((_SIMULATION,) if simulated else ())),
        ports=host_ports(spec),
        claims=frozenset(
            volume["persistentVolumeClaim"].get("claimName", "")
            for volume in spec.get("volumes") or ()
            if volume.get("persistentVolumeClaim")
        ),
        pod_affinity=_pod_affinity(affinity, spec.get("topologySpreadConstraints") or ()),
    )


_SIMULATION = Toleration(SIMULATED_TAINT, True, "", "")


def _toleration(written: Object) -> Toleration:
    exists = written.get("operator") == "Exists"
    return Toleration(written.get("key") or "", exists, written.get("value") or "", written.get("effect") or "")


def _node_term(term: Object) -> NodeTerm:
    return NodeTerm(
        tuple(
            Requirement(e.get("key", ""), _OPERATORS.get(e.get("operator", ""), "in"), frozenset(e.get("values") or ()))
            for e in term.get("matchExpressions") or ()
        ),
        tuple((f.get("operator") == "In", frozenset(f.get("values") or ())) for f in term.get("matchFields") or ()),
    )


def _pod_affinity(affinity: Object, spread: Iterable[Object]) -> PodAffinity | None:
    near, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    found = PodAffinity(
        near=_required_terms(near),
        apart=_required_terms(apart),
        prefer_near=_preferred_terms(near),
        prefer_apart=_preferred_terms(apart),
        spread=tuple(
            SpreadTerm(
                topology=entry.get("topologyKey") or "",
                selector=LabelSelector.from_dict(entry.get("labelSelector")),
                max_skew=int(entry.get("maxSkew") or 1),
                hard=entry.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule",
            )
            for entry in spread
        ),
    )
    empty = not (found.near or found.apart or found.prefer_near or found.prefer_apart or found.spread)
    return None if empty else found


def _required_terms(affinity: Object) -> tuple[AffinityTerm, ...]:
    return tuple(_affinity_term(t) for t in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _preferred_terms(affinity: Object) -> tuple[AffinityTerm, ...]:
    return tuple(
        _affinity_term(entry.get("podAffinityTerm") or {}, weight=int(entry.get("weight") or 0))
        for entry in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    )


def _affinity_term(term: Object, *, weight: int = 0) -> AffinityTerm:
    """A namespaceSelector that is empty means every namespace; one that chooses by label is read as none matching."""
    return AffinityTerm(
        topology=term.get("topologyKey") or "",
        selector=LabelSelector.from_dict(term.get("labelSelector")),
        namespaces=frozenset(term.get("namespaces") or ()),
        everywhere=term.get("namespaceSelector") == {},
        weight=weight,
    )


def requests_of(spec: Object) -> Resources:
    """What a pod needs at its hungriest moment: all containers together, or the largest init container before them."""
    running = total(_container(c) for c in spec.get("containers") or ())
    sidecars: Resources = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        own = _container(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, own)
            own = {}
        for name, amount in add(sidecars, own).items():
            peak[name] = max(peak.get(name, 0), amount)
    steady = add(running, sidecars)
    needed = {name: max(steady.get(name, 0), peak.get(name, 0)) for name in {*steady, *peak}}
    needed = dict(add(needed, amounts(spec.get("overhead") or {})))
    needed = {name: amount for name, amount in needed.items() if amount > 0}
    needed["pods"] = ONE
    return needed


def _container(container: Object) -> Resources:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def add(left: Resources, right: Resources) -> Resources:
    if not left or not right:
        return left or right
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}


def subtract(left: Resources, right: Resources) -> Resources:
    return {name: left.get(name, 0) - right.get(name, 0) for name in {**left, **right}}
