"""All pods or none: the PodGroup of a job, for the scheduler that understands it.

A job asks for it with `schedulingPolicy`, or by naming such a scheduler on any role, which then holds for all of them,
as the manual says. A foreign schedulerName anywhere turns it off for the whole job. A PodGroup of the job's name that
somebody else made is used as it is. Volcano is preferred where a cluster has both; where it has neither, a
`schedulingPolicy` is ignored, and the job says so.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from paddlecloud.api.names import GROUP_NAME
from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.controllers.paddlejob import names
from paddlecloud.kube import quantity
from paddlecloud.kube.resource import COSCHEDULING_PODGROUPS, PODGROUPS, Object, Resource

NOBODY = "schedulingPolicy is ignored: this cluster serves no PodGroups, neither Volcano's nor others"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
WAIT_FOR_USERS = 3.0
"""Seconds a job that only names the scheduler waits for the user's PodGroup: the manual's file lists the job first."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A scheduler that starts gangs, and the kind of PodGroup it reads."""

    scheduler: str
    resource: Resource
    queues: bool
    """Lets a group in before it has pods; others see no group before its pods exist."""


VOLCANO = Engine("volcano", PODGROUPS, queues=True)
COSCHEDULING = Engine("scheduler-plugins-scheduler", COSCHEDULING_PODGROUPS, queues=False)
ENGINES = (VOLCANO, COSCHEDULING)


def choose(settings: JobSettings, served: Collection[Engine]) -> Engine | None:
    """Who schedules the job as a gang; None when it was not asked for, or nobody here can."""
    named = {(role.template.get("spec") or {}).get("schedulerName") or "" for role in settings.roles} - {""}
    if named:
        return next((engine for engine in served if named == {engine.scheduler}), None)
    return next(iter(served), None) if settings.scheduling.requested else None


def missed(settings: JobSettings, served: Collection[Engine]) -> bool:
    """Whether the job asked for a gang that nobody here can schedule."""
    named = {(role.template.get("spec") or {}).get("schedulerName") or "" for role in settings.roles} - {""}
    return settings.scheduling.requested and not named and not served


def enroll(meta: Object, spec: dict[str, Any], settings: JobSettings, engine: Engine | None) -> None:
    """Make a pod a member of its gang."""
    if engine is None:
        return
    spec["schedulerName"] = engine.scheduler
    if engine is COSCHEDULING:
        meta["labels"][GROUP_LABEL] = settings.name
        if settings.scheduling.priority_class:  # its groups have none of their own: the pods' counts
            spec.setdefault("priorityClassName", settings.scheduling.priority_class)
        return
    meta["annotations"] |= {
        GROUP_NAME: settings.name,
        "volcano.sh/task-spec": meta["labels"][names.ROLE],
        "volcano.sh/job-name": settings.name,
        "volcano.sh/job-version": "0",
        "volcano.sh/queue-name": settings.scheduling.queue,
    }


def build(meta: Object, settings: JobSettings, engine: Engine) -> Object:
    """The PodGroup; `meta` is its metadata."""
    kind = engine.resource
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec_of(settings, engine)}


def spec_of(settings: JobSettings, engine: Engine) -> Object:
    policy = settings.scheduling
    spec: Object = {
        "minMember": policy.min_available,
        "minResources": policy.min_resources if policy.min_resources is not None else total_resources(settings),
    }
    if engine is COSCHEDULING:
        return spec
    if policy.queue:
        spec["queue"] = policy.queue
    if policy.priority_class:
        spec["priorityClassName"] = policy.priority_class
    return spec


def total_resources(settings: JobSettings) -> dict[str, str]:
    """What all pods ask for together: requests, or limits where a container has no requests.

    Example: two workers with requests of 200m and two servers with limits of 300m need 1 CPU.
    """
    needs = [
        {name: role.replicas * amount for name, amount in _asked(container).items()}
        for role in settings.roles
        for container in (role.template.get("spec") or {}).get("containers") or ()
    ]
    return quantity.written(quantity.total(needs))


def _asked(container: dict[str, Any]) -> quantity.Amounts:
    resources = container.get("resources") or {}
    try:
        return quantity.amounts(resources.get("requests") or resources.get("limits"))
    except quantity.QuantityError:
        return {}  # the API server will refuse the pod in better words than we have here
