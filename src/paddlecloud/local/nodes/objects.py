"""Node objects that `pdc` makes, and how a machine is divided among virtual nodes. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from paddlecloud import __version__
from paddlecloud.kube import quantity
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.nodes.marks import CAPACITY, NODE_KIND, SIMULATED, SIMULATED_TAINT

SIMULATED_CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "250"}
SIMULATED_TAINTS: tuple[Object, ...] = ({"key": SIMULATED_TAINT, "effect": "NoSchedule"},)
WHOLE = ("pods", "nvidia.com/gpu")
"""What cannot be divided below one."""


def simulated_name(number: int) -> str:
    return f"simulated-{number}"


def new_node(
    name: str,
    kind: str,
    *,
    capacity: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    now: float,
) -> Object:
    """A Node of the given kind.

    The status of a simulated one must be written separately, as the API wants it; that of a virtual one comes from the
    machine's kubelet, which finds the declared capacity in an annotation.
    """
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                NODE_KIND: kind,
                **(labels or {}),
            },
        },
        "spec": {},
    }
    if kind == SIMULATED:
        has = {**SIMULATED_CAPACITY, **capacity}
        node["status"] = {
            "capacity": has,
            "allocatable": has,
            "conditions": [_ready(now)],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _info(),
        }
        taints = [*SIMULATED_TAINTS, *taints]
    else:
        node["metadata"]["annotations"] = {CAPACITY: json.dumps(dict(capacity))}
    if taints:
        node["spec"]["taints"] = list(taints)
    return node


def declared_capacity(node: Object) -> dict[str, str]:
    """What a virtual node was declared to have. What cannot be read counts as nothing said."""
    text = (node["metadata"].get("annotations") or {}).get(CAPACITY) or "{}"
    try:
        found = json.loads(text)
        return {str(name): quantity.canonical(value) for name, value in found.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}


def _ready(now: float) -> Object:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Simulated",
        "message": "pods of this node are simulated: no process runs",
        "lastHeartbeatTime": rfc3339(now),
        "lastTransitionTime": rfc3339(now),
    }


def _info() -> Object:
    nothing = ("machineID", "systemUUID", "bootID", "kernelVersion", "kubeProxyVersion")
    return {
        **dict.fromkeys(nothing, ""),
        "osImage": "simulated",
        "containerRuntimeVersion": f"simulated://{__version__}",
        "kubeletVersion": f"v1.34.0-paddlecloud.{__version__}",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def share_of(capacity: Mapping[str, str], parts: int, index: int) -> dict[str, str]:
    """Part `index` of a machine divided by `parts`. What cannot be divided goes to the first nodes.

    Example: 2 CPUs and 3 GPUs on two nodes are 1 CPU and 2 GPUs, and 1 CPU and 1 GPU.
    """
    if parts == 1:
        return dict(capacity)
    shares = {}
    for name, text in capacity.items():
        if name in WHOLE:
            each, rest = divmod(quantity.whole(text), parts)
            shares[name] = str(each + (index < rest))
        else:
            unit = quantity.MILLI if name == "cpu" else quantity.ONE
            amount = quantity.parse(text) // parts // unit * unit
            shares[name] = quantity.format(amount, quantity.family_of(name))
    return shares
