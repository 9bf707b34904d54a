"""May this pod run on that node? Each rule answers with nothing or with the reason why not.

The reasons are the words of kube-scheduler, because people search for them; numbers are added where there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.kube import quantity
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector

from .snapshot import Node, Pod, Snapshot


class Refusal(NamedTuple):
    """`reason` groups nodes in the summary; `detail` has the numbers of this node."""

    reason: str
    detail: str


Filter = Callable[[Pod, Node, Snapshot], "Refusal | None"]


def node_is_up(pod: Pod, node: Node, snapshot: Snapshot) -> Refusal | None:
    if not node.ready:
        return Refusal("node(s) were not ready", "the node is not Ready")
    if node.unschedulable and not _tolerates(pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}):
        return Refusal("node(s) were unschedulable", "the node is cordoned: kubectl uncordon")
    return None


def node_name(pod: Pod, node: Node, snapshot: Snapshot) -> Refusal | None:
    """nodeSelector and required node affinity."""
    spec = pod.spec
    for key, value in (spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            has = node.labels.get(key, "nothing")
            return Refusal(
                "node(s) didn't match Pod's node affinity/selector", f"nodeSelector wants {key}={value}, it has {has}"
            )
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required and not any(matches_term(node, term) for term in required.get("nodeSelectorTerms") or ()):
        return Refusal("node(s) didn't match Pod's node affinity/selector", "no required node affinity term matches")
    return None


def matches_term(node: Node, term: Object) -> bool:
    """All expressions of a term must hold; an empty term matches nothing."""
    expressions = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if expressions and not LabelSelector.from_dict({"matchExpressions": expressions}).matches(node.labels):
        return False
    return all(_field_matches(node, field) for field in fields)


def _field_matches(node: Node, field: Object) -> bool:
    """Kubernetes offers one field here: metadata.name."""
    inside = node.name in (field.get("values") or ())
    return inside if field.get("operator") == "In" else not inside


def taints(pod: Pod, node: Node, snapshot: Snapshot) -> Refusal | None:
    for taint in node.taints:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _tolerates(pod, taint):
            text = f"{taint.get('key')}: {taint.get('value', '')}"
            return Refusal(f"node(s) had untolerated taint {{{text}}}", f"taint {text} ({taint.get('effect')})")
    return None


def _tolerates(pod: Pod, taint: Object) -> bool:
    for toleration in pod.spec.get("tolerations") or ():
        if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
            continue
        if toleration.get("operator") == "Exists":
            if not toleration.get("key") or toleration["key"] == taint.get("key"):
                return True
        elif toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def resources(pod: Pod, node: Node, snapshot: Snapshot) -> Refusal | None:
    short = [name for name, amount in pod.requests.items() if amount > node.free(name)]
    if not short:
        return None
    details = [
        f"{name}: needs {shown(name, pod.requests[name])}, {shown(name, max(node.free(name), 0))} free of "
        f"{shown(name, node.allocatable.get(name, 0))}"
        for name in sorted(short)
    ]
    first = sorted(short)[0]
    reason = "Too many pods" if first == "pods" else f"Insufficient {first}"
    return Refusal(reason, "; ".join(details))


def shown(resource: str, amount: quantity.Amount) -> str:
    """As Kubernetes writes it: `1500m` of cpu, `16Gi` of memory."""
    return quantity.format(amount, quantity.family_of(resource))


def pod_affinity(pod: Pod, node: Node, snapshot: Snapshot) -> Refusal | None:
    """Required affinity and anti-affinity, in both directions: a running pod may refuse a newcomer too."""
    own = pod.spec.get("affinity") or {}
    for term in _required(own.get("podAffinity")):
        found = _in_domain(term, pod, node, snapshot)
        if not found and not _first_of_its_kind(term, pod, snapshot):
            return Refusal("node(s) didn't match pod affinity rules", f"no matching pod in its {term['topologyKey']}")
    for term in _required(own.get("podAntiAffinity")):
        if term["topologyKey"] in node.labels and _in_domain(term, pod, node, snapshot):
            return Refusal(
                "node(s) didn't match pod anti-affinity rules",
                f"a matching pod is already in its {term['topologyKey']}",
            )
    for other_node in snapshot.nodes.values():
        for other in other_node.pods:
            for term in _required((other.spec.get("affinity") or {}).get("podAntiAffinity")):
                key = term["topologyKey"]
                same = key in node.labels and node.labels[key] == other_node.labels.get(key)
                if same and _selects(term, other, pod):
                    return Refusal(
                        "node(s) didn't satisfy existing pods anti-affinity rules", f"pod {other.key} refuses company"
                    )
    return None


def _required(affinity: Object | None) -> list[Object]:
    return list((affinity or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _selects(term: Object, owner: Pod, candidate: Pod) -> bool:
    namespaces = term.get("namespaces") or [owner.key.namespace]
    if candidate.key.namespace not in namespaces:
        return False
    return LabelSelector.from_dict(term.get("labelSelector")).matches(candidate.labels)


def _in_domain(term: Object, pod: Pod, node: Node, snapshot: Snapshot) -> bool:
    domain = node.labels.get(term["topologyKey"])
    if domain is None:
        return False
    return any(
        _selects(term, pod, other)
        for near in snapshot.nodes.values()
        if near.labels.get(term["topologyKey"]) == domain
        for other in near.pods
    )


def _first_of_its_kind(term: Object, pod: Pod, snapshot: Snapshot) -> bool:
    """A pod that matches its own affinity may start the group, as in Kubernetes."""
    if not _selects(term, pod, pod):
        return False
    return not any(_selects(term, pod, other) for node in snapshot.nodes.values() for other in node.pods)


FILTERS: tuple[Filter, ...] = (node_is_up, node_name, taints, resources, pod_affinity)


def refusal(pod: Pod, node: Node, snapshot: Snapshot) -> Refusal | None:
    """The first rule that says no."""
    for rule in FILTERS:
        found = rule(pod, node, snapshot)
        if found is not None:
            return found
    return None
