"""May a pod of this shape run on that node? Each rule answers with nothing or with the reason why not.

The reasons are the words of kube-scheduler, because people search for them; numbers are added where there are any.
Rules stand in the order of their price. Those about neighbours are in `affinity`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.kube import quantity
from paddlecloud.kube.pods import NO_FREE_PORTS, taken_port
from paddlecloud.kube.selectors import FEW, few
from paddlecloud.kube.sizes import binary_quantity
from paddlecloud.local.scheduler.state.shape import NodeTerm, Shape
from paddlecloud.local.scheduler.state.snapshot import Node

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
REFUSING = frozenset(("NoSchedule", "NoExecute"))
AFFINITY = "node(s) didn't match Pod's node affinity/selector"


class Refusal(NamedTuple):
    """`reason` groups nodes in the summary; `detail` has the numbers of this node; `rule` is for programs."""

    rule: str
    reason: str
    detail: str


Rule = Callable[[Shape, Node], "Refusal | None"]


def node_is_up(shape: Shape, node: Node) -> Refusal | None:
    if not node.ready:
        return Refusal("ready", "node(s) were not ready", "the node is not Ready")
    if node.unschedulable and not shape.tolerates(UNSCHEDULABLE):
        return Refusal("cordon", "node(s) were unschedulable", f"the node is cordoned: kubectl uncordon {node.name}")
    return None


def selector(shape: Shape, node: Node) -> Refusal | None:
    """nodeSelector and required node affinity."""
    for key, value in shape.selector.items():
        if node.labels.get(key) != value:
            has = f"it has {node.labels[key]}" if key in node.labels else "it has no such label"
            return Refusal("selector", AFFINITY, f"nodeSelector requires {key}={value}, {has}")
    if shape.required is not None and not any(term.matches(node.name, node.labels) for term in shape.required):
        wanted = few(shape.required, " or ", NodeTerm.brief) or "nothing that exists"
        return Refusal("affinity", AFFINITY, f"required node affinity requires {wanted}")
    return None


def taints(shape: Shape, node: Node) -> Refusal | None:
    for taint in node.taints:
        if taint.get("effect") in REFUSING and not shape.tolerates(taint):
            text = f"{taint.get('key')}: {taint.get('value') or ''}"
            return Refusal("taint", f"node(s) had untolerated taint {{{text}}}", f"taint {text} ({taint['effect']})")
    return None


def resources(shape: Shape, node: Node) -> Refusal | None:
    if has_room(shape, node):
        return None
    short = sorted(name for name, amount in shape.requests.items() if amount > node.free(name))
    details = [
        f"{name}: needs {shown(name, shape.requests[name])}, {shown(name, max(node.free(name), 0))} free of "
        f"{shown(name, node.allocatable.get(name, 0))}"
        for name in short[:FEW]
    ]
    reason = "Too many pods" if short == ["pods"] else f"Insufficient {next(name for name in short if name != 'pods')}"
    return Refusal("resources", reason, "; ".join(details))


def has_room(shape: Shape, node: Node) -> bool:
    used, allocatable = node.used, node.allocatable
    for name, amount in shape.requests.items():  # noqa: SIM110 - a plain loop: asked for every candidate of every pod
        if amount > allocatable.get(name, 0) - used.get(name, 0):
            return False
    return True


def ports(shape: Shape, node: Node) -> Refusal | None:
    if not shape.ports:
        return None
    for pod in node.pods:
        taken = taken_port(shape.ports, pod.shape.ports)
        if taken is not None:
            detail = f"host port {taken.number}/{taken.protocol} is taken by {pod.key}"
            return Refusal("ports", NO_FREE_PORTS, detail)
    return None


STATIC: tuple[Rule, ...] = (node_is_up, selector, taints)
"""What no pod that comes or goes changes."""
DYNAMIC: tuple[Rule, ...] = (resources, ports)


def refusal(shape: Shape, node: Node) -> Refusal | None:
    """The first rule that says no."""
    for rule in (*STATIC, *DYNAMIC):
        found = rule(shape, node)
        if found is not None:
            return found
    return None


def admits(shape: Shape, node: Node) -> bool:
    """Whether the node would take such a pod if it were empty, resources aside."""
    return all(rule(shape, node) is None for rule in STATIC)


def fits(shape: Shape, node: Node) -> bool:
    """`refusal(…) is None`, asked in the order that answers soonest."""
    return has_room(shape, node) and admits(shape, node) and ports(shape, node) is None


EXACT = 6
"""Characters of an amount of bytes up to which it is read at a glance."""


def shown(resource: str, amount: quantity.Amount) -> str:
    """As Kubernetes writes it: `1500m` of cpu, `16Gi` of memory; bytes that are no round number as `23.54Gi`."""
    exact = quantity.format(amount, quantity.family_of(resource))
    if quantity.family_of(resource) != "binary" or len(exact) <= EXACT:
        return exact
    return binary_quantity(amount // quantity.ONE)
