"""Services to EndpointSlices: which pods answer behind a name, and whether they are ready.

One slice per service: on one machine there are never so many pods that splitting would pay.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.controller import Controller
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Patch, Plan, carry_out
from paddlecloud.kube.resource import PODS, SERVICES, Key, Object, Resource, key_of

SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SERVICE_LABEL = "kubernetes.io/service-name"


def desired_slice(service: Object, pods: Iterable[Object]) -> Object:
    """The slice a service should have. Pods without an address cannot answer; ended ones no longer do."""
    meta, spec = service["metadata"], service["spec"]
    publish = bool(spec.get("publishNotReadyAddresses"))
    endpoints = [_endpoint(pod, publish) for pod in sorted(pods, key=key_of) if _selected(spec, pod)]
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {SERVICE_LABEL: meta["name"], "endpointslice.kubernetes.io/managed-by": "paddlecloud"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [_port(port, _named_ports(pods)) for port in spec.get("ports") or ()],
    }


def _selected(spec: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    status = pod.get("status") or {}
    matches = all(labels.get(key) == value for key, value in (spec.get("selector") or {}).items())
    return matches and bool(status.get("podIP")) and status.get("phase") not in ("Succeeded", "Failed")


def _endpoint(pod: Object, publish: bool) -> Object:
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    is_ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
    leaving = bool(meta.get("deletionTimestamp"))
    endpoint: Object = {
        "addresses": [status["podIP"]],
        "conditions": {
            "ready": publish or (is_ready and not leaving),
            "serving": publish or is_ready,
            "terminating": leaving,
        },
        "nodeName": spec.get("nodeName", ""),
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    }
    if spec.get("hostname") and spec.get("subdomain"):
        endpoint["hostname"] = spec["hostname"]
    return endpoint


def _named_ports(pods: Iterable[Object]) -> dict[str, int]:
    return {
        port["name"]: port["containerPort"]
        for pod in pods
        for container in pod["spec"].get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("name")
    }


def _port(port: Object, named: dict[str, int]) -> Object:
    target = port.get("targetPort", port["port"])
    number = named.get(target, port["port"]) if isinstance(target, str) else target
    return {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}


def decide(service: Object, pods: Iterable[Object], current: Object | None) -> Plan:
    """Services without a selector are somebody else's business: their slices are written by hand."""
    if not service["spec"].get("selector") or service["metadata"].get("deletionTimestamp"):
        return Plan()
    wanted = desired_slice(service, tuple(pods))
    if current is None:
        return Plan(create=[wanted])
    changed = {key: wanted[key] for key in ("endpoints", "ports") if (current.get(key) or []) != wanted[key]}
    if not changed:
        return Plan()
    return Plan(patch=[Patch(SLICES, wanted["metadata"]["name"], wanted["metadata"]["namespace"], changed)])


def endpoint_controller(manager: Manager) -> Controller:
    client = manager.client
    services, pods = manager.informer(SERVICES), manager.informer(PODS)
    slices = manager.informer(SLICES, label_selector=SERVICE_LABEL)

    async def reconcile(key: Key) -> float | None:
        service = services.cache.get(key)
        if service is None:
            return None  # the slice goes with its owner
        found = [pod for pod in pods.cache.list(key.namespace) if _matches(service, pod)]
        plan = decide(service, found, slices.cache.get(key))
        await carry_out(plan, client, owner=service)
        return plan.after

    def concerned(pod: Object) -> Iterable[Key]:
        for service in services.cache.list(pod["metadata"].get("namespace", "")):
            if _matches(service, pod):
                yield key_of(service)

    controller = manager.controller("endpoints", reconcile)
    controller.watch(services)
    controller.watch(slices)
    controller.watch(pods, map=concerned)
    return controller


def _matches(service: Object, pod: Object) -> bool:
    selector = service["spec"].get("selector")
    labels = pod["metadata"].get("labels") or {}
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())
