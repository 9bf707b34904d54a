"""The endpoints controller's hands: which pods concern which services."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import carry_out
from paddlecloud.kube.resource import PODS, SERVICES, Key, Object, key_of
from paddlecloud.local.workloads.endpoints import MIRROR_LABEL, SERVICE_LABEL, SLICES, Observed, decide, listed
from paddlecloud.local.workloads.pace import Pace
from paddlecloud.local.workloads.pods import is_ready
from paddlecloud.local.workloads.resources import ENDPOINTS

MOMENT = 1.0
"""Seconds in which a pod that has just got its address may become ready, and be written down once instead of twice:
half of all writes of a start, at the moment when the pod needs the machine itself."""


def endpoint_controller(manager: Manager, clock: Clock) -> None:
    client = manager.client
    services = manager.informer(SERVICES, indexers={"selector": by_selector})
    pods = manager.informer(PODS, indexers={"labels": by_labels})
    slices = manager.informer(SLICES, label_selector=SERVICE_LABEL, indexers={"service": by_service})
    mirrors = manager.informer(ENDPOINTS, label_selector=MIRROR_LABEL)
    pace: Pace[Key] = Pace(clock)
    newcomers: dict[Key, dict[str, float]] = {}

    async def reconcile(key: Key) -> float | None:
        service = services.cache.get(key)
        if service is None:
            pace.forget(key)
            newcomers.pop(key, None)
            return None  # what was made for it goes with its owner
        if (wait := pace.wait(key)) is not None:
            return wait
        likely = [pod for pair in by_selector(service) for pod in pods.cache.by_index("labels", pair)]
        found = tuple(pod for pod in likely if _matches(service, pod))
        pace.note(key, len(found))
        pieces = tuple(slices.cache.by_index("service", str(key)))
        early = _early(service, found, listed(pieces), newcomers.pop(key, {}), clock.now())
        there = tuple(pod for pod in found if pod["metadata"]["uid"] not in early)
        await carry_out(decide(service, Observed(there, pieces, mirrors.cache.get(key))), client, owner=service)
        if not early:
            return None
        newcomers[key] = early
        return max(0.0, min(early.values()) + MOMENT - clock.now())

    def concerned(pod: Object) -> Iterable[Key]:
        for pair in by_labels(pod):
            for service in services.cache.by_index("selector", pair):
                if _matches(service, pod):
                    yield key_of(service)

    controller = manager.controller("endpoints", reconcile)
    controller.watch(services)
    controller.watch(slices, map=service_of)
    controller.watch(mirrors)
    controller.watch(pods, map=concerned)


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
