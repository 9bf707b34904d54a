"""Which nodes a DaemonSet wants a pod on, and the pod for a node. Pure."""

from __future__ import annotations

import copy
from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.defaults import TEMPLATE_GENERATION
from paddlecloud.local.nodes.marks import SIMULATE
from paddlecloud.local.scheduler.decision import filters
from paddlecloud.local.scheduler.state.shape import Shape, shape_of
from paddlecloud.local.scheduler.state.snapshot import Node
from paddlecloud.local.workloads.pods import pod_from
from paddlecloud.local.workloads.revisions import REVISION

GENERATION = "pod-template-generation"
_NAME_FIELD = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_THE_HOSTS_NETWORK = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


class NodeDecision(NamedTuple):
    """`should_run`: a pod is wanted here. `should_continue`: a pod that is here already may go on."""

    should_run: bool
    should_continue: bool


class Placement:
    """Decides about nodes for one DaemonSet."""

    def __init__(self, daemon_set: Object) -> None:
        template = daemon_set["spec"]["template"]
        spec = {**(template.get("spec") or {})}
        spec["tolerations"] = tolerations_of(spec)
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        self._only_node: str = spec.get("nodeName") or ""
        self._shape: Shape = shape_of(spec, simulated=SIMULATE in annotations)

    def on(self, node: Node) -> NodeDecision:
        """As NodeShouldRunDaemonPod: neither resources nor readiness count, and a taint that keeps new pods away does
        not drive away those that run."""
        if self._only_node not in ("", node.name) or filters.selector(self._shape, node) is not None:
            return NodeDecision(False, False)
        if filters.taints(self._shape, node) is None:
            return NodeDecision(True, True)
        expelled = any(t.get("effect") == "NoExecute" and not self._shape.tolerates(t) for t in node.taints)
        return NodeDecision(False, not expelled)


def tolerations_of(spec: Object) -> list[Object]:
    """Those of the template and those that every pod of a DaemonSet has."""
    given = list(spec.get("tolerations") or ())
    added = _TOLERATED + (_TOLERATED_ON_THE_HOSTS_NETWORK if spec.get("hostNetwork") else ())
    ours = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    kept = [toleration for toleration in given if _without_time(toleration) not in ours]
    return [*kept, *ours]


def _without_time(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def pod_for(daemon_set: Object, node: str, *, name: str, revision: str) -> Object:
    pod = pod_from(daemon_set["spec"]["template"], name=name, owner=daemon_set)
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] = {**meta.get("labels", {}), REVISION: revision}
    if generation := (daemon_set["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION):
        meta["labels"][GENERATION] = generation
    spec["tolerations"] = tolerations_of(spec)
    spec["affinity"] = _bound_to(node, spec.get("affinity") or {})
    return pod


def _bound_to(node: str, affinity: Object) -> Object:
    """The affinity of the template, and to the node of this name in each of its alternatives."""
    bound = copy.deepcopy(affinity)
    required = bound.setdefault("nodeAffinity", {}).setdefault(_REQUIRED, {})
    here = [{"key": _NAME_FIELD, "operator": "In", "values": [node]}]
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": here} for term in terms]
    return bound


def node_of(pod: Object) -> str:
    """The node a pod is on or is for; empty if neither is known."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == _NAME_FIELD and field.get("operator") == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""
