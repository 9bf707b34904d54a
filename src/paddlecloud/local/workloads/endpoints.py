"""Services to EndpointSlices: which pods answer behind a name, and whether they are ready. Pure.

A slice holds a hundred endpoints at most, and a pod stays in the slice it is in: when one of a thousand pods turns
ready, a tenth of the list is written, not all of it. Old clients read the same as a core/v1 Endpoints object. Slices
of services without a selector are written by hand and left alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import ENDPOINTS, ENDPOINTSLICES, Object, Resource, key_of, owner_reference
from paddlecloud.local.workloads.pods import is_ready, suffix

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by"
MIRROR_LABEL = "endpoints.kubernetes.io/managed-by"
MANAGER, MIRROR_MANAGER = "endpointslice-controller.k8s.io", "endpoint-controller"
"""As Kubernetes' controllers call themselves: programs select slices and Endpoints by it."""
_EARLIER = "paddlecloud"
"""What this controller called itself before: its slices go on being its own."""
SLICE_SIZE = 100
MIRROR_SIZE = 1000
"""Of one Endpoints object; Kubernetes cuts it off there, too."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The pods a service selects, and what was written for it before."""

    pods: tuple[Object, ...] = ()
    slices: tuple[Object, ...] = ()
    mirror: Object | None = None


def decide(service: Object, observed: Observed) -> Plan:
    plan = Plan()
    if not service["spec"].get("selector") or service["metadata"].get("deletionTimestamp"):
        return plan
    pods = sorted((pod for pod in observed.pods if _has_address(pod)), key=key_of)
    endpoints = {pod["metadata"]["uid"]: _endpoint(pod, service) for pod in pods}
    named = _named_ports(pods)
    ports = [_port(port, named) for port in service["spec"].get("ports") or ()]
    _bring_slices(plan, service, observed.slices, endpoints, ports)
    mirror = _mirror(service, _subsets(endpoints.values(), ports))
    if observed.mirror is None:
        plan.create.append(mirror)
    else:
        _bring(plan, ENDPOINTS, observed.mirror, {"subsets": mirror["subsets"]})
    return plan


def _bring(plan: Plan, resource: Resource, current: Object, wanted: Object) -> None:
    changed = {name: value for name, value in wanted.items() if (current.get(name) or []) != value}
    if changed:
        meta = current["metadata"]
        plan.patch.append(Patch(resource, meta["name"], meta["namespace"], changed))


# Slices


def _bring_slices(
    plan: Plan, service: Object, slices: Sequence[Object], endpoints: dict[str, Object], ports: list[Object]
) -> None:
    members: dict[str, list[str]] = {}
    left = dict.fromkeys(endpoints)
    ours = [piece for piece in slices if _manager(piece) in (MANAGER, _EARLIER)]
    for piece in sorted(ours, key=key_of):
        held = [uid for uid in _uids(piece) if uid in left]
        members[piece["metadata"]["name"]] = held
        for uid in held:
            del left[uid]
    _place(members, iter(left), _names(service, members))
    known = {piece["metadata"]["name"]: piece for piece in ours}
    for number, (name, held) in enumerate(sorted(members.items(), key=lambda item: (not item[1], item[0]))):
        body = {"endpoints": [endpoints[uid] for uid in held], "ports": ports}
        if name not in known:
            plan.create.append(_slice(service, name, body))
        elif held or number == 0:  # one stays even when it is empty: there is a service, with nobody behind it
            _bring(plan, ENDPOINTSLICES, known[name], body)
        else:
            meta = known[name]["metadata"]
            plan.delete.append(Delete(ENDPOINTSLICES, name, meta["namespace"], uid=meta["uid"]))


def _place(members: dict[str, list[str]], newcomers: Iterator[str], names: Iterator[str]) -> None:
    """Newcomers fill the slices that have room, then further ones."""
    for held in members.values():
        held.extend(itertools.islice(newcomers, max(0, SLICE_SIZE - len(held))))
    while batch := list(itertools.islice(newcomers, SLICE_SIZE)):
        members[next(names)] = batch
    if not members:
        members[next(names)] = []


def _manager(piece: Object) -> str | None:
    return (piece["metadata"].get("labels") or {}).get(MANAGER_LABEL)


def _names(service: Object, taken: Iterable[str]) -> Iterator[str]:
    meta, used = service["metadata"], set(taken)
    for number in itertools.count():
        name = f"{meta['name']}-{suffix(meta['uid'], str(number))}"
        if name not in used:
            yield name


def _slice(service: Object, name: str, body: Object) -> Object:
    meta = service["metadata"]
    return {
        "apiVersion": ENDPOINTSLICES.api_version,
        "kind": ENDPOINTSLICES.kind,
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": {SERVICE_LABEL: meta["name"], MANAGER_LABEL: MANAGER},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        **body,
    }


def listed(slices: Iterable[Object]) -> frozenset[str]:
    """The pods, by uid, that are written down already."""
    return frozenset(uid for piece in slices for uid in _uids(piece))


def _uids(piece: Object) -> list[str]:
    return [endpoint.get("targetRef", {}).get("uid", "") for endpoint in piece.get("endpoints") or ()]


def _has_address(pod: Object) -> bool:
    """Pods without an address cannot answer; ended ones no longer do."""
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


def _mirror(service: Object, subsets: list[Object]) -> Object:
    meta = service["metadata"]
    return {
        "apiVersion": ENDPOINTS.api_version,
        "kind": ENDPOINTS.kind,
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**(meta.get("labels") or {}), MIRROR_LABEL: MIRROR_MANAGER},
            "ownerReferences": [owner_reference(service)],
        },
        "subsets": subsets,
    }


def _subsets(endpoints: Iterable[Object], ports: list[Object]) -> list[Object]:
    groups: dict[str, list[Object]] = {"addresses": [], "notReadyAddresses": []}
    for endpoint in endpoints:
        conditions = endpoint["conditions"]
        if conditions["terminating"] and not conditions["ready"]:
            continue
        address = {"ip": endpoint["addresses"][0], "nodeName": endpoint["nodeName"], "targetRef": endpoint["targetRef"]}
        if "hostname" in endpoint:
            address["hostname"] = endpoint["hostname"]
        groups["addresses" if conditions["ready"] else "notReadyAddresses"].append(address)
    present = {name: addresses[:MIRROR_SIZE] for name, addresses in groups.items() if addresses}
    shown = [{name: value for name, value in port.items() if value != ""} for port in ports]
    return [{**present, **({"ports": shown} if shown else {})}] if present else []
