"""PodMetrics and NodeMetrics as kinds that are answered, not stored: get and list, by name and by label.

A node's usage is that of its pods: several virtual nodes may share the machine, whose own numbers belong to none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paddlecloud.kube import errors
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import NODE_METRICS, NODES, POD_METRICS, PODS, Object, Resource
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.selection import Filter
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.kubelet.node.usage import pod_usage
from paddlecloud.local.workloads.metrics.meter import Meter, Rate

GROUP, VERSION = "metrics.k8s.io", "v1beta1"


def serve_metrics(control_plane: ControlPlane) -> None:
    """Add the group to what the API serves."""
    folder = control_plane.data / "pods"
    meter = Meter(lambda uid: pod_usage(folder / uid), control_plane.clock)
    for resource in (POD_METRICS, NODE_METRICS):
        control_plane.registry.add(KindInfo(resource, singular="", verbs=("get", "list")))
    handlers = control_plane.extensions.handlers
    handlers[GROUP, POD_METRICS.plural, ""] = _pods(control_plane, meter)
    handlers[GROUP, NODE_METRICS.plural, ""] = _nodes(control_plane, meter)


def _pods(control_plane: ControlPlane, meter: Meter) -> Handler:
    async def handle(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        found = [pod for pod in _chosen(control_plane, PODS, request, info) if phase_of(pod) == "Running"]
        rates = await meter.measure(pod["metadata"]["uid"] for pod in found)
        now = control_plane.clock.now()
        return _answer(info, kind, [pod_metrics(pod, rates[pod["metadata"]["uid"]], now) for pod in found])

    return handle


def _nodes(control_plane: ControlPlane, meter: Meter) -> Handler:
    async def handle(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        nodes = _chosen(control_plane, NODES, request, info)
        names = {node["metadata"]["name"] for node in nodes}
        running = [
            pod
            for pod in (record.object for record in control_plane.store.list("/pods"))
            if phase_of(pod) == "Running" and pod["spec"].get("nodeName") in names
        ]
        rates = await meter.measure(pod["metadata"]["uid"] for pod in running)
        now = control_plane.clock.now()
        by_node: dict[str, list[Rate]] = {name: [] for name in names}
        for pod in running:
            by_node[pod["spec"]["nodeName"]] += rates[pod["metadata"]["uid"]].values()
        return _answer(info, kind, [node_metrics(node, by_node[node["metadata"]["name"]], now) for node in nodes])

    return handle


def _chosen(control_plane: ControlPlane, resource: Resource, request: Request, info: RequestInfo) -> list[Object]:
    if info.verb not in ("get", "list"):
        raise errors.MethodNotAllowed(f"{info.verb} is not supported on {info.resource}.{GROUP}")
    kind = control_plane.registry.find(resource.group, resource.version, resource.plural)
    assert kind is not None, f"{resource.plural} are always served"
    if info.verb == "get":
        return [control_plane.verbs.get(kind, info.namespace, info.name).object]
    wanted = Filter(kind, request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))
    records = control_plane.store.list(kind.collection, info.namespace or None)
    return [record.object for record in records if wanted.matches(record)]


def _answer(info: RequestInfo, kind: KindInfo, items: list[Object]) -> Response:
    if info.verb == "list":
        head = {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": {}}
        return Response(body=encode({**head, "items": items}))
    if not items:
        raise errors.not_found(info.resource, info.name, group=GROUP)
    return Response(body=encode(items[0]))


# Objects


def pod_metrics(pod: Object, rates: Mapping[str, Rate], now: float) -> Object:
    containers = [{"name": name, "usage": _usage([rate])} for name, rate in sorted(rates.items())]
    return {**_head(POD_METRICS, pod, rates.values(), now), "containers": containers}


def node_metrics(node: Object, rates: Iterable[Rate], now: float) -> Object:
    rates = list(rates)
    return {**_head(NODE_METRICS, node, rates, now), "usage": _usage(rates)}


def _head(resource: Resource, obj: Object, rates: Iterable[Rate], now: float) -> Object:
    meta = obj["metadata"]
    kept = {name: meta[name] for name in ("name", "namespace", "labels", "creationTimestamp") if meta.get(name)}
    window = max((rate.window for rate in rates), default=0.0)
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": kept,
        "timestamp": rfc3339(now),
        "window": f"{window:.3f}s",
    }


def _usage(rates: Iterable[Rate]) -> dict[str, str]:
    rates = list(rates)
    cores, memory = sum(rate.cores for rate in rates), sum(rate.memory for rate in rates)
    return {"cpu": f"{round(cores * 1e9)}n", "memory": f"{memory // 1024}Ki"}
