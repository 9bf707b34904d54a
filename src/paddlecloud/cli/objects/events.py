"""The events that concern an object, in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.api.paddlejob.ending import planned_end
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import Forbidden
from paddlecloud.kube.resource import EVENTS, PODS, Object

DEADLINE = "DeadlineExceeded"
"""Kubernetes' kubelets write it also where a job's controller ended the pod: it does so through the pod's deadline."""


def about(session: Session, obj: Object) -> list[Object]:
    """The events that concern one object, oldest first."""
    meta = obj["metadata"]
    fields = {"name": meta["name"], "uid": meta.get("uid")}
    selector = ",".join(f"involvedObject.{key}={value}" for key, value in fields.items() if value)
    namespace = meta.get("namespace") or "default"  # events about cluster-wide objects live in default
    found = session.api.do(session.api.client.list(EVENTS, namespace, field_selector=selector, limit=500))
    return sorted(found.items, key=order)


def planned_ends(session: Session, events: Iterable[Object]) -> dict[str, str]:
    """Pods that their controller ended on purpose, by uid, and why: those of events about a deadline."""
    late = [event.get("involvedObject") or {} for event in events if event.get("reason") == DEADLINE]
    if not any(about.get("kind") == "Pod" for about in late):
        return {}
    try:
        pods = session.api.do(session.api.client.list(PODS, session.scope)).items
    except Forbidden:  # their events are shown as they were written
        return {}
    return planned_ends_of(pods)


def planned_ends_of(pods: Iterable[Object]) -> dict[str, str]:
    return {str(pod["metadata"].get("uid")): why for pod in pods if (why := planned_end(pod))}


def order(event: Object) -> tuple[str, int]:
    """By time; within a second as they were written."""
    version = str(event["metadata"].get("resourceVersion") or "")
    return moment(event), int(version) if version.isdigit() else 0


def moment(event: Object) -> str:
    """When an event happened last; every writer fills other fields. RFC 3339 in UTC sorts as text."""
    series = event.get("series") or {}
    for text in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        if text:
            return str(text)
    return str(event.get("firstTimestamp") or event["metadata"].get("creationTimestamp") or "")
