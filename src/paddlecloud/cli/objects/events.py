"""The events that concern an object, in the order in which they happened."""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import EVENTS, Object


def about(session: Session, obj: Object) -> list[Object]:
    """The events that concern one object, oldest first."""
    meta = obj["metadata"]
    fields = {"name": meta["name"], "uid": meta.get("uid")}
    selector = ",".join(f"involvedObject.{key}={value}" for key, value in fields.items() if value)
    namespace = meta.get("namespace") or "default"  # events about cluster-wide objects live in default
    found = session.api.do(session.api.client.list(EVENTS, namespace, field_selector=selector, limit=500))
    return sorted(found.items, key=order)


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
