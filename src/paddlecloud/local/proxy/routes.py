"""Which addresses the proxy listens on for a Service, and where each leads. Pure.

Only endpoints that are ready are used; when none is, those that still serve on their way out, as kube-proxy does
(CategorizeEndpoints of pkg/proxy/topology.go). A port without any is not listened on, so that clients are refused at
once instead of being let in and hung up on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paddlecloud.kube.resource import Object

NODE_ADDRESS = "127.0.0.1"
DEFAULT_AFFINITY = 10800


class SocketAddress(NamedTuple):
    ip: str
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}"


class Route(NamedTuple):
    """`affinity` is for how many seconds a client keeps its backend; 0 for not at all."""

    backends: tuple[SocketAddress, ...]
    affinity: int = 0


def routes_of(service: Object, slices: Sequence[Object]) -> dict[SocketAddress, Route]:
    spec = service.get("spec") or {}
    cluster_ip = spec.get("clusterIP")
    if service["metadata"].get("deletionTimestamp") or spec.get("type") == "ExternalName":
        return {}
    affinity, by_port = _affinity(spec), _backends(slices)
    routes: dict[SocketAddress, Route] = {}
    for port in spec.get("ports") or ():
        if port.get("protocol", "TCP") != "TCP":
            continue
        backends = by_port.get(port.get("name", ""), ())
        if not backends:
            continue
        if cluster_ip and cluster_ip != "None":
            routes[SocketAddress(cluster_ip, port["port"])] = Route(backends, affinity)
        if port.get("nodePort") and spec.get("type") in ("NodePort", "LoadBalancer"):
            routes[SocketAddress(NODE_ADDRESS, port["nodePort"])] = Route(backends, affinity)
    return routes


def unsupported(service: Object) -> list[str]:
    """Ports of a Service that this proxy cannot serve, in words."""
    spec = service.get("spec") or {}
    if spec.get("clusterIP") in (None, "", "None"):
        return []
    return [
        f"port {port['port']}/{port['protocol']} is not proxied: only TCP is; give the Service `clusterIP: None` "
        "and let clients connect to the pods"
        for port in spec.get("ports") or ()
        if port.get("protocol", "TCP") != "TCP"
    ]


def _affinity(spec: Object) -> int:
    if spec.get("sessionAffinity") != "ClientIP":
        return 0
    config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    return int(config.get("timeoutSeconds") or DEFAULT_AFFINITY)


def _backends(slices: Iterable[Object]) -> dict[str, tuple[SocketAddress, ...]]:
    """Where to connect, by the name of the port."""
    found: dict[str, tuple[dict[SocketAddress, None], dict[SocketAddress, None]]] = {}
    for piece in slices:
        for port in piece.get("ports") or ():
            if not port.get("port"):
                continue
            ready, leaving = found.setdefault(port.get("name") or "", ({}, {}))
            for endpoint in piece.get("endpoints") or ():
                chosen = _chosen(endpoint.get("conditions") or {}, ready, leaving)
                for ip in endpoint.get("addresses") or ():
                    if chosen is not None:
                        chosen[SocketAddress(ip, port["port"])] = None
    return {name: tuple(ready or leaving) for name, (ready, leaving) in found.items()}


def _chosen(
    conditions: Object, ready: dict[SocketAddress, None], leaving: dict[SocketAddress, None]
) -> dict[SocketAddress, None] | None:
    """A condition that is not given counts as ready, by the API's own words."""
    if conditions.get("ready") is not False:
        return ready
    if conditions.get("serving") and conditions.get("terminating"):
        return leaving
    return None
