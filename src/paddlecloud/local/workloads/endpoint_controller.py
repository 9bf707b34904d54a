"""The endpoints controller: which pods belong to which services."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan, PlanFailed, PlannedEvent
from paddlecloud.kube.reconciler import Reconciler
from paddlecloud.kube.resource import ENDPOINTS, ENDPOINTSLICES, PODS, SERVICES, Key, Object, key_of
from paddlecloud.local.workloads.endpoints import MIRROR_LABEL, SERVICE_LABEL, Observed, decide, listed
from paddlecloud.local.workloads.pace import rest
from paddlecloud.local.workloads.pods import is_ready

MOMENT = 1.0
"""Seconds in which a pod that has just got its address may become ready, and be written down once instead of twice:
half of all writes of a start, at the moment when the pod needs the machine itself."""


class EndpointReconciler(Reconciler[Observed, Plan]):
    def __init__(self, manager: Manager, clock: Clock) -> None:
        super().__init__(manager.client, component="endpoint-controller", clock=clock)
        self._services = manager.informer(SERVICES, indexers={"selector": by_selector})
        self._pods = manager.informer(PODS, indexers={"labels": by_labels})
        self._slices = manager.informer(ENDPOINTSLICES, label_selector=SERVICE_LABEL, indexers={"service": by_service})
        self._mirrors = manager.informer(ENDPOINTS, label_selector=MIRROR_LABEL)
        self._early: dict[str, dict[str, float]] = {}  # by uid of the service
        self.primary = (self._services,)
        controller = manager.controller("endpoints", self.reconcile)
        controller.watch(self._services)
        controller.watch(self._slices, map=service_of, expectations=self.expectations)
        controller.watch(self._mirrors, expectations=self.expectations)
        controller.watch(self._pods, map=self._services_of)

    async def observe(self, service: Object) -> Observed:
        key, uid = key_of(service), service["metadata"]["uid"]
        likely = [pod for pair in by_selector(service) for pod in self._pods.cache.by_index("labels", pair)]
        found = tuple(pod for pod in likely if _matches(service, pod))
        slices = tuple(self._slices.cache.by_index("service", str(key)))
        early = _early(service, found, listed(slices), self._early.pop(uid, {}), self.clock.now())
        if early:
            self._early[uid] = early
        there = tuple(pod for pod in found if pod["metadata"]["uid"] not in early)
        return Observed(there, slices, self._mirrors.cache.get(key), early)

    def decide(self, service: Object, observed: Observed, now: float) -> Plan:
        plan = decide(service, observed)
        if observed.early:
            plan.after = max(0.0, min(observed.early.values()) + MOMENT - now)
        return plan

    def refused(self, service: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        return [PlannedEvent("FailedToUpdateEndpointSlices", str(failed), type="Warning")]  # as Kubernetes names it

    def rest(self, observed: Observed) -> float:
        return rest(len(observed.pods) + len(observed.early))

    def forget(self, key: Key, uid: str) -> None:
        self._early.pop(uid, None)

    def _services_of(self, pod: Object) -> Iterable[Key]:
        for pair in by_labels(pod):
            for service in self._services.cache.by_index("selector", pair):
                if _matches(service, pod):
                    yield key_of(service)


def _early(
    service: Object, pods: Iterable[Object], known: frozenset[str], since: dict[str, float], now: float
) -> dict[str, float]:
    """Pods that get a moment before they are written down as not ready, and since when each has had it."""
    if service["spec"].get("publishNotReadyAddresses"):
        return {}
    uids = [pod["metadata"]["uid"] for pod in pods if not is_ready(pod) and (pod.get("status") or {}).get("podIP")]
    found = {uid: since.get(uid, now) for uid in uids if uid not in known}
    return {uid: first for uid, first in found.items() if now < first + MOMENT}


def service_of(piece: Object) -> Iterable[Key]:
    meta = piece["metadata"]
    if name := (meta.get("labels") or {}).get(SERVICE_LABEL):
        yield Key(meta.get("namespace", ""), name)


def by_service(piece: Object) -> Iterable[str]:
    return [str(key) for key in service_of(piece)]


def by_labels(pod: Object) -> Iterable[str]:
    meta = pod["metadata"]
    return _pairs(meta.get("labels") or {}, meta.get("namespace", ""))


def by_selector(service: Object) -> Iterable[str]:
    """Under one of its labels, which every pod it selects must have: thousands of services are not gone through."""
    pairs = _pairs(service["spec"].get("selector") or {}, service["metadata"].get("namespace", ""))
    return sorted(pairs)[:1]


def _pairs(labels: Object, namespace: str) -> list[str]:
    return [f"{namespace}/{name}={value}" for name, value in labels.items()]


def _matches(service: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in service["spec"]["selector"].items())
