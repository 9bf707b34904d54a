"""Node objects that `pdc` makes, and how a machine is divided among virtual nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlecloud import __version__
from paddlecloud.kube import quantity
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object

from .marks import NODE_KIND, SIMULATED, SIMULATED_TAINT

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
    """A Node of the given kind. Its status must be written separately, as the API wants it."""
    own = SIMULATED_TAINTS if kind == SIMULATED else ()
    spec: Object = {}
    if all_taints := [*own, *taints]:
        spec["taints"] = list(all_taints)
    if kind == SIMULATED:
        capacity = {**SIMULATED_CAPACITY, **capacity}
    return {
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
        "spec": spec,
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            # A virtual node becomes ready when the machine's kubelet takes it up.
            "conditions": [_ready(now)] if kind == SIMULATED else [],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _info(),
        },
    }


def _ready(now: float) -> Object:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Simulated",
        "message": "pods of this node live on paper",
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
