"""The few questions that everybody asks of a pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.kube.resource import Object

ENDED = frozenset(("Succeeded", "Failed"))
"""Phases that no pod leaves again."""

NODE_SHUTDOWN = "Terminated"
"""Reason of a pod that failed because its node was shut down on purpose (Kubernetes: pkg/kubelet/nodeshutdown)."""

CONTAINER_UNKNOWN = "ContainerStatusUnknown"
"""Reason of a container that had not run when its pod ended (Kubernetes: pkg/kubelet/status); its exit code, 137, is
nobody's."""


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    return phase_of(pod) in ENDED


def is_leaving(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


class HostPort(NamedTuple):
    """A port of the node. `ip` is empty for all its addresses."""

    ip: str
    protocol: str
    number: int


NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports"


def host_ports(spec: Object) -> frozenset[HostPort]:
    """The ports of its node that a pod asks for."""
    found = set()
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else None)
            if number:
                ip = port.get("hostIP") or ""
                everywhere = ip == "0.0.0.0"  # noqa: S104
                found.add(HostPort("" if everywhere else ip, port.get("protocol") or "TCP", int(number)))
    return frozenset(found)


def taken_port(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> HostPort | None:
    """One of `taken` that stands in the way of one that is wanted."""
    for theirs in taken:
        for mine in wanted:
            if mine[1:] == theirs[1:] and (mine.ip == theirs.ip or not mine.ip or not theirs.ip):
                return theirs
    return None
