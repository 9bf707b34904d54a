"""Services to EndpointSlices: which pods answer behind a name, and whether they are ready.

One slice per service: on one machine there are never so many pods that splitting would pay. Old clients read the same
as a core/v1 Endpoints object; slices of services without a selector are written by hand and left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paddlecloud.kube.controller import Controller
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Patch, Plan, carry_out
from paddlecloud.kube.resource import PODS, SERVICES, Key, Object, Resource, key_of
from paddlecloud.local.workloads.pods import is_finished, is_leaving, is_ready, owner_reference
from paddlecloud.local.workloads.resources import ENDPOINTS

SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SERVICE_LABEL = "kubernetes.io/service-name"
MIRROR_LABEL = "endpoints.kubernetes.io/managed-by"
MANAGER = "paddlecloud"


@dataclass(frozen=True, slots=True)
class Observed:
    """The pods a service selects, and what was written for it before."""

    pods: tuple[Object, ...] = ()
    piece: Object | None = None
    mirror: Object | None = None


def decide(service: Object, observed: Observed) -> Plan:
    plan = Plan()
    if not service["spec"].get("selector") or service["metadata"].get("deletionTimestamp"):
        return plan
    wanted = desired_slice(service, observed.pods)
    _bring(plan, SLICES, wanted, observed.piece, ("endpoints", "ports"))
    _bring(plan, ENDPOINTS, desired_mirror(service, wanted), observed.mirror, ("subsets",))
    return plan


def _bring(plan: Plan, resource: Resource, wanted: Object, current: Object | None, fields: tuple[str, ...]) -> None:
    if current is None:
        plan.create.append(wanted)
        return
    changed = {name: wanted[name] for name in fields if (current.get(name) or []) != wanted[name]}
    if changed:
        meta = wanted["metadata"]
        plan.patch.append(Patch(resource, meta["name"], meta["namespace"], changed))


# Slices


def desired_slice(service: Object, pods: Iterable[Object]) -> Object:
    """The slice a service should have. Pods without an address cannot answer; ended ones no longer do."""
    meta, spec = service["metadata"], service["spec"]
    pods = sorted((pod for pod in pods if _has_address(pod)), key=key_of)
    named = _named_ports(pods)
    return {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {SERVICE_LABEL: meta["name"], "endpointslice.kubernetes.io/managed-by": MANAGER},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(pod, service) for pod in pods],
        "ports": [_port(port, named) for port in spec.get("ports") or ()],
    }


def _has_address(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("podIP")) and not is_finished(pod)


def _endpoint(pod: Object, service: Object) -> Object:
    meta, spec = pod["metadata"], pod["spec"]
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    endpoint: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": publish or (is_ready(pod) and not is_leaving(pod)),
            "serving": publish or is_ready(pod),
            "terminating": is_leaving(pod),
        },
        "nodeName": spec.get("nodeName", ""),
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    }
    if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]:
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


# Endpoints, for old clients


def desired_mirror(service: Object, piece: Object) -> Object:
    meta = service["metadata"]
    return {
        "apiVersion": ENDPOINTS.api_version,
        "kind": ENDPOINTS.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**(meta.get("labels") or {}), MIRROR_LABEL: MANAGER},
            "ownerReferences": [owner_reference(service)],
        },
        "subsets": _subsets(piece),
    }


def _subsets(piece: Object) -> list[Object]:
    groups: dict[str, list[Object]] = {"addresses": [], "notReadyAddresses": []}
    for endpoint in piece["endpoints"]:
        conditions = endpoint["conditions"]
        if conditions["terminating"] and not conditions["ready"]:
            continue
        address = {"ip": endpoint["addresses"][0], "nodeName": endpoint["nodeName"], "targetRef": endpoint["targetRef"]}
        if "hostname" in endpoint:
            address["hostname"] = endpoint["hostname"]
        groups["addresses" if conditions["ready"] else "notReadyAddresses"].append(address)
    present = {name: addresses for name, addresses in groups.items() if addresses}
    ports = [{name: value for name, value in port.items() if value != ""} for port in piece["ports"]]
    return [{**present, **({"ports": ports} if ports else {})}] if present else []


# The controller


def _pairs(labels: Object, namespace: str) -> Iterable[str]:
    return [f"{namespace}/{name}={value}" for name, value in labels.items()]


def by_labels(pod: Object) -> Iterable[str]:
    meta = pod["metadata"]
    return _pairs(meta.get("labels") or {}, meta.get("namespace", ""))


def by_selector(service: Object) -> Iterable[str]:
    """Under one of its labels, which every pod it selects must have: thousands of services are not gone through."""
    pairs = _pairs(service["spec"].get("selector") or {}, service["metadata"].get("namespace", ""))
    return sorted(pairs)[:1]


def _matches(service: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in service["spec"]["selector"].items())


def endpoint_controller(manager: Manager) -> Controller:
    client = manager.client
    services = manager.informer(SERVICES, indexers={"selector": by_selector})
    pods = manager.informer(PODS, indexers={"labels": by_labels})
    slices = manager.informer(SLICES, label_selector=SERVICE_LABEL)
    mirrors = manager.informer(ENDPOINTS, label_selector=MIRROR_LABEL)

    async def reconcile(key: Key) -> float | None:
        service = services.cache.get(key)
        if service is None:
            return None  # what was made for it goes with its owner
        likely = [pod for pair in by_selector(service) for pod in pods.cache.by_index("labels", pair)]
        found = tuple(pod for pod in likely if _matches(service, pod))
        plan = decide(service, Observed(found, slices.cache.get(key), mirrors.cache.get(key)))
        await carry_out(plan, client, owner=service)
        return plan.after

    def concerned(pod: Object) -> Iterable[Key]:
        for pair in by_labels(pod):
            for service in services.cache.by_index("selector", pair):
                if _matches(service, pod):
                    yield key_of(service)

    controller = manager.controller("endpoints", reconcile)
    controller.watch(services)
    controller.watch(slices)
    controller.watch(mirrors)
    controller.watch(pods, map=concerned)
    return controller
