"""Endpoints that people write for a Service without a selector become EndpointSlices, which is what proxies read.

As kubernetes/pkg/controller/endpointslicemirroring: Endpoints of a Service with a selector, of leader election and of
no Service are left alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Delete, Plan
from paddlecloud.kube.reconciler import Reconciler
from paddlecloud.kube.resource import ENDPOINTS, ENDPOINTSLICES, SERVICES, Key, Object, key_of, owner_reference
from paddlecloud.local.workloads.endpoint_controller import by_service, service_of
from paddlecloud.local.workloads.endpoints import MANAGER_LABEL, MIRROR_LABEL, MIRROR_SIZE, SERVICE_LABEL, bring
from paddlecloud.local.workloads.pods import suffix

MIRRORING = "endpointslicemirroring-controller.k8s.io"
SKIP_LABEL = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"


class Observed(NamedTuple):
    service: Object | None
    slices: tuple[Object, ...]
    """Those that mirror these Endpoints."""


def decide(endpoints: Object, observed: Observed) -> Plan:
    plan = Plan()
    wanted = {piece["metadata"]["name"]: piece for piece in _slices(endpoints, observed.service)}
    for piece in observed.slices:
        meta = piece["metadata"]
        if (now := wanted.pop(meta["name"], None)) is None:
            plan.delete.append(Delete(ENDPOINTSLICES, meta["name"], meta["namespace"], uid=meta["uid"]))
        else:
            bring(plan, ENDPOINTSLICES, piece, {name: now[name] for name in ("endpoints", "ports")})
    plan.create.extend(wanted.values())
    return plan


def _slices(endpoints: Object, service: Object | None) -> Iterator[Object]:
    meta = endpoints["metadata"]
    if service is None or service["spec"].get("selector") or meta.get("deletionTimestamp"):
        return
    if (meta.get("labels") or {}).get(SKIP_LABEL) == "true" or LEADER in (meta.get("annotations") or {}):
        return
    for number, subset in enumerate(endpoints.get("subsets") or ()):
        for family, members in _by_family(subset).items():
            yield {
                "apiVersion": ENDPOINTSLICES.api_version,
                "kind": ENDPOINTSLICES.kind,
                "metadata": {
                    "name": f"{meta['name']}-{suffix(meta['uid'], str(number), family)}",
                    "namespace": meta["namespace"],
                    "labels": {
                        **(meta.get("labels") or {}), SERVICE_LABEL: meta["name"], MANAGER_LABEL: MIRRORING,
                    },
                    "ownerReferences": [owner_reference(endpoints)],
                },
                "addressType": family,
                "endpoints": members[:MIRROR_SIZE],
                "ports": [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()],
            }  # fmt: skip


def _by_family(subset: Object) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or ():
            family = f"IPv{ipaddress.ip_address(address['ip']).version}"
            member = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
            member |= {name: address[name] for name in ("hostname", "nodeName", "targetRef") if name in address}
            found.setdefault(family, []).append(member)
    return found


class MirroringReconciler(Reconciler[Observed, Plan]):
    def __init__(self, manager: Manager, clock: Clock) -> None:
        super().__init__(manager.client, component="endpoint-slice-mirroring-controller", clock=clock)
        self._endpoints = manager.informer(ENDPOINTS, label_selector=f"!{MIRROR_LABEL}")
        self._services = manager.informer(SERVICES)
        mirrored = f"{MANAGER_LABEL}={MIRRORING}"
        self._slices = manager.informer(ENDPOINTSLICES, label_selector=mirrored, indexers={"service": by_service})
        self.primary = (self._endpoints,)
        controller = manager.controller("endpointslice-mirroring", self.reconcile)
        controller.watch(self._endpoints)
        controller.watch(self._services, map=self._of_service)
        controller.watch(self._slices, map=service_of, expectations=self.expectations)

    async def observe(self, endpoints: Object) -> Observed:
        key = key_of(endpoints)
        slices = tuple(self._slices.cache.by_index("service", str(key)))
        return Observed(self._services.cache.get(key), slices)

    def decide(self, endpoints: Object, observed: Observed, now: float) -> Plan:
        return decide(endpoints, observed)

    def _of_service(self, service: Object) -> Iterable[Key]:
        key = key_of(service)
        return [key] if self._endpoints.cache.get(key) is not None else []
