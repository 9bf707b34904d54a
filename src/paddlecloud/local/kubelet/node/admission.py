"""Whether a node takes a pod that was assigned to it. Pure.

The scheduler asks the same before it assigns a pod; a pod whose author named the node has passed by it. Of what the
kubelet of Kubernetes checks (pkg/kubelet/lifecycle/predicate.go) these are the ports of the host: two programs cannot
have one.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.pods import NO_FREE_PORTS, host_ports, is_finished, taken_port
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.pod_state import Rejection


def rejected(pod: Object, others: Iterable[Object]) -> Rejection | None:
    """Why the node refuses a pod that is new to it; `others` are on this machine, perhaps on other nodes of it."""
    ports = host_ports(pod["spec"])
    if not ports or (pod.get("status") or {}).get("startTime"):
        return None
    for other in others:
        same_node = other["spec"].get("nodeName") == pod["spec"].get("nodeName")
        if same_node and not is_finished(other) and taken_port(ports, host_ports(other["spec"])) is not None:
            return Rejection("NodePorts", f"Predicate NodePorts failed: {NO_FREE_PORTS}")
    return None
