"""All pods or none: the Volcano PodGroup of a job.

A job asks for it with `schedulingPolicy`, or with `schedulerName: volcano` on any role, which then holds for all of
them, as the manual says. A foreign schedulerName anywhere turns it off for the whole job. A PodGroup of the job's name
that somebody else made is used as it is.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.controllers.paddlejob import names
from paddlecloud.kube import quantity
from paddlecloud.kube.resource import PODGROUPS, Object

VOLCANO = "volcano"
GROUP_NAME = "scheduling.k8s.io/group-name"
WAIT_FOR_USERS = 3.0
"""Seconds a job that only names the scheduler waits for the user's PodGroup: the manual's file lists the job first."""


def wanted(settings: JobSettings) -> bool:
    chosen = {(role.template.get("spec") or {}).get("schedulerName") or "" for role in settings.roles}
    if chosen - {"", VOLCANO}:
        return False
    return settings.scheduling.requested or VOLCANO in chosen


def enroll(meta: Object, spec: dict[str, Any], settings: JobSettings) -> None:
    if not wanted(settings):
        return
    spec["schedulerName"] = VOLCANO
    meta["annotations"] |= {
        GROUP_NAME: settings.name,
        "volcano.sh/task-spec": meta["labels"][names.ROLE],
        "volcano.sh/job-name": settings.name,
        "volcano.sh/job-version": "0",
        "volcano.sh/queue-name": settings.scheduling.queue,
    }


def build(meta: Object, settings: JobSettings) -> Object:
    """The PodGroup; `meta` is its metadata."""
    return {"apiVersion": PODGROUPS.api_version, "kind": PODGROUPS.kind, "metadata": meta, "spec": spec_of(settings)}


def spec_of(settings: JobSettings) -> Object:
    policy = settings.scheduling
    spec: Object = {
        "minMember": policy.min_available,
        "minResources": policy.min_resources if policy.min_resources is not None else total_resources(settings),
    }
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
