"""Services to EndpointSlices: which pods answer behind a name, and whether they are ready. Pure.

A slice holds a hundred endpoints at most, and a pod stays in the slice it is in: when one of a thousand pods turns
ready, a tenth of the list is written, not all of it. A slice has one list of ports for all its endpoints: pods that
give the name of a target port different numbers are in different slices, as in Kubernetes (getEndpointPorts of
staging/src/k8s.io/endpointslice). Old clients read the same as a core/v1 Endpoints object. Slices of services without
a selector are written by hand and left alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
    early: Mapping[str, float] = field(default_factory=dict)
    """Further pods, by uid, that are not written down yet, and since when each has had an address."""


class Port(NamedTuple):
    """As slices list it: `name` is that of the service's port, `port` the number in the pod."""

    name: str
    port: int
    protocol: str


class Member(NamedTuple):
    """A pod behind a service."""

    endpoint: Object
    ports: tuple[Port, ...]


def decide(service: Object, observed: Observed) -> Plan:
    plan = Plan()
    if not service["spec"].get("selector") or service["metadata"].get("deletionTimestamp"):
        return plan
    pods = sorted((pod for pod in observed.pods if _has_address(pod)), key=key_of)
    members = {pod["metadata"]["uid"]: Member(_endpoint(pod, service), _ports(pod, service)) for pod in pods}
    _bring_slices(plan, service, observed.slices, members)
    mirror = _mirror(service, _subsets(members.values(), portless=not service["spec"].get("ports")))
    if observed.mirror is None:
        plan.create.append(mirror)
    else:
        bring(plan, ENDPOINTS, observed.mirror, {"subsets": mirror["subsets"]})
    return plan


def bring(plan: Plan, resource: Resource, current: Object, wanted: Object) -> None:
    changed = {name: value for name, value in wanted.items() if (current.get(name) or []) != value}
    if changed:
        meta = current["metadata"]
        plan.patch.append(Patch(resource, meta["name"], meta["namespace"], changed))


# Slices


class Slice(NamedTuple):
    ports: tuple[Port, ...]
    uids: list[str]


def _bring_slices(plan: Plan, service: Object, slices: Sequence[Object], members: dict[str, Member]) -> None:
    known = {piece["metadata"]["name"]: piece for piece in slices if _manager(piece) in (MANAGER, _EARLIER)}
    wanted = _place(known, members, _names(service, known))
    for number, (name, held) in enumerate(sorted(wanted.items(), key=lambda item: (not item[1].uids, item[0]))):
        body = {
            "endpoints": [members[uid].endpoint for uid in held.uids],
            "ports": [port._asdict() for port in held.ports],
        }
        if name not in known:
            plan.create.append(_slice(service, name, body))
        elif held.uids or number == 0:  # one stays even when it is empty: there is a service, with nobody behind it
            bring(plan, ENDPOINTSLICES, known[name], body)
        else:
            meta = known[name]["metadata"]
            plan.delete.append(Delete(ENDPOINTSLICES, name, meta["namespace"], uid=meta["uid"]))


def _place(known: dict[str, Object], members: dict[str, Member], names: Iterator[str]) -> dict[str, Slice]:
    """Who is in which slice: newcomers fill those of their ports that have room, then empty ones, then further ones."""
    left: dict[tuple[Port, ...], dict[str, None]] = {}
    for uid, member in members.items():
        left.setdefault(member.ports, {})[uid] = None
    placed: dict[str, Slice] = {}
    for name, piece in sorted(known.items()):
        ports = tuple(_port_of_slice(port) for port in piece.get("ports") or ())
        newcomers = left.get(ports, {})
        placed[name] = Slice(ports, [uid for uid in _uids(piece) if uid in newcomers])
        for uid in placed[name].uids:
            del newcomers[uid]
    for ports, uids in left.items():
        waiting = iter(uids)
        for held in placed.values():
            if held.ports == ports:
                held.uids.extend(itertools.islice(waiting, max(0, SLICE_SIZE - len(held.uids))))
        while batch := list(itertools.islice(waiting, SLICE_SIZE)):
            empty = next((name for name, held in placed.items() if not held.uids), None)
            placed[empty or next(names)] = Slice(ports, batch)
    return placed or {next(names): Slice((), [])}


def _port_of_slice(port: Object) -> Port:
    return Port(port.get("name") or "", port.get("port") or 0, port.get("protocol") or "TCP")


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


def _ports(pod: Object, service: Object) -> tuple[Port, ...]:
    """Those of the service that this pod has: a name that none of its containers gives a port is left out."""
    found = ((port, _target(pod, port)) for port in service["spec"].get("ports") or ())
    return tuple(
        Port(port.get("name", ""), number, port.get("protocol", "TCP")) for port, number in found if number is not None
    )


def _target(pod: Object, port: Object) -> int | None:
    target = port.get("targetPort") or port["port"]
    if not isinstance(target, str):
        return int(target)
    wanted = (target, port.get("protocol", "TCP"))
    sidecars = (one for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy") == "Always")
    for container in (*(pod["spec"].get("containers") or ()), *sidecars):
        for declared in container.get("ports") or ():
            if (declared.get("name"), declared.get("protocol", "TCP")) == wanted:
                return int(declared["containerPort"])
    return None


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


def _subsets(members: Iterable[Member], *, portless: bool) -> list[Object]:
    """One for all addresses of the same ports. `portless` services list addresses alone."""
    subsets: dict[tuple[Port, ...], Object] = {}
    room = dict.fromkeys(("addresses", "notReadyAddresses"), MIRROR_SIZE)
    for endpoint, ports in members:
        conditions = endpoint["conditions"]
        where = "addresses" if conditions["ready"] else "notReadyAddresses"
        if (conditions["terminating"] and not conditions["ready"]) or not (ports or portless) or not room[where]:
            continue
        room[where] -= 1
        address = {"ip": endpoint["addresses"][0], "nodeName": endpoint["nodeName"], "targetRef": endpoint["targetRef"]}
        if "hostname" in endpoint:
            address["hostname"] = endpoint["hostname"]
        subsets.setdefault(ports, {}).setdefault(where, []).append(address)
    return [
        {**subset, **({"ports": [_shown(port) for port in ports]} if ports else {})}
        for ports, subset in subsets.items()
    ]


def _shown(port: Port) -> Object:
    return {name: value for name, value in port._asdict().items() if value != ""}
