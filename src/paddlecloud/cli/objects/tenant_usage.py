"""What a tenant used: hours of GPUs and CPUs, storage, and how long its jobs waited. Pure.

It is counted from what is there: PaddleJobs, by the pods that they ask for and the time in which they ran; pods of no
job, by their own times; claims. What was deleted is not in it, so an invoice needs a metrics store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from paddlecloud.api.names import JOB_LABEL, ROLES
from paddlecloud.api.training_pod import mapping, mappings
from paddlecloud.kube.quantity import ONE, QuantityError, parse
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339

HOUR = 3600.0


@dataclass
class TenantUsage:
    jobs: int = 0
    gpu_hours: float = 0.0
    cpu_hours: float = 0.0
    queue_hours: float = 0.0
    """From the creation of a job until all of its pods ran, or until now."""
    storage: int = 0
    """Bytes that claims have, or ask for."""

    def add(self, requests: Mapping[str, float], hours: float) -> None:
        self.cpu_hours += requests.get("cpu", 0.0) * hours
        self.gpu_hours += sum(amount for name, amount in requests.items() if name.endswith("/gpu")) * hours

    def __add__(self, other: TenantUsage) -> TenantUsage:
        return TenantUsage(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class Window(NamedTuple):
    """Only what lies in it counts."""

    since: float
    now: float

    def hours(self, start: str | None, end: str | None) -> float:
        if not start:
            return 0.0
        first = max(parse_rfc3339(start), self.since)
        last = min(parse_rfc3339(end) if end else self.now, self.now)
        return max(0.0, last - first) / HOUR


def usage(jobs: Iterable[Object], pods: Iterable[Object], claims: Iterable[Object], window: Window) -> TenantUsage:
    found = TenantUsage()
    for job in jobs:
        status, created = job.get("status") or {}, job["metadata"]["creationTimestamp"]
        started, ended = status.get("startTime"), status.get("completionTime")
        found.jobs += 1
        found.queue_hours += window.hours(created, started or ended)
        for role in ROLES:
            part = mapping(mapping(job.get("spec")).get(role))
            pod = mapping(mapping(part.get("template")).get("spec"))
            count = part.get("replicas")
            found.add(requests(pod), window.hours(started, ended) * (1 if count is None else int(count)))
    for pod in pods:
        if JOB_LABEL not in (pod["metadata"].get("labels") or {}):
            status = pod.get("status") or {}
            found.add(requests(pod.get("spec") or {}), window.hours(status.get("startTime"), _end(status)))
    found.storage = sum(_size(claim) for claim in claims)
    return found


def requests(pod: Mapping[str, Any]) -> dict[str, float]:
    """Of all containers together; a limit where nothing is requested, as Kubernetes has it. Templates of jobs may be
    nonsense, of which no pod is made."""
    found: dict[str, float] = {}
    for container in mappings(pod.get("containers")):
        resources = mapping(container.get("resources"))
        for name, amount in {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}.items():
            with contextlib.suppress(QuantityError):
                found[name] = found.get(name, 0.0) + parse(amount) / ONE
    return found


def _end(status: Mapping[str, Any]) -> str | None:
    """When its last container ended; None while it runs."""
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    states: Sequence[Any] = [(each.get("state") or {}).get("terminated") or {} for each in _containers(status)]
    return max((str(state["finishedAt"]) for state in states if state.get("finishedAt")), default=status["startTime"])


def _containers(status: Mapping[str, Any]) -> Sequence[Any]:
    return status.get("containerStatuses") or ()


def _size(claim: Object) -> int:
    asked = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    amount = ((claim.get("status") or {}).get("capacity") or asked).get("storage", 0)
    return parse(amount) // ONE
