"""Label and field selectors of lists and watches, on stored objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

from paddlecloud.kube.field_selectors import FieldSelector
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import Record

SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    ("", "events"): (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
}  # fmt: skip


STORED = {"status.successful": "status.succeeded", "source": "source.component"}
"""Fields that are stored under another name than the one that selects them (ToSelectableFields of each kind's strategy
in kubernetes/pkg/registry)."""

ABSENT = {"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0", "status.succeeded": "0"}
"""What selectors compare where the object has no such field: Go's zero value."""

INSTEAD = {"source.component": "reportingComponent"}
"""Fields that are selected by another one where they are empty: events of events.k8s.io name no source, only the
controller that reports them (pkg/registry/core/event/strategy.go)."""

NO_NAMESPACE = (("", "nodes"), ("", "namespaces"))
"""Built-in kinds that cannot be selected by metadata.namespace, as custom cluster-scoped ones cannot."""


class Filter:
    """A compiled pair of selectors for one kind. `matches` decodes of an object only the fields that are asked for."""

    def __init__(self, info: KindInfo, labels: str, fields: str) -> None:
        self._labels = LabelSelector.parse(labels) if labels else None
        self._fields = FieldSelector.parse(fields) if fields else None
        converted = info.conversion.fields if info.conversion else {}
        self._paths = converted or STORED
        if self._fields is not None:
            own = converted or SELECTABLE.get((info.resource.group, info.resource.plural), ())
            if _has_namespace(info):
                own = ("metadata.namespace", *own)
            self._fields.check(("metadata.name", *own))
        self.trivial = self._labels is None and self._fields is None
        asked = {requirement.field for requirement in self._fields.requirements} if self._fields else set()
        paths = {self._paths.get(field, field) for field in asked if not field.startswith("metadata.")}
        paths |= {INSTEAD[path] for path in paths & INSTEAD.keys()}
        self._decode = decoder(frozenset(paths)) if paths else None

    def matches(self, record: Record) -> bool:
        if self._labels is not None and not self._labels.matches(record.labels):
            return False
        if self._fields is None:
            return True
        return self._fields.matches(self._getter(record))

    def _getter(self, record: Record) -> Callable[[str], str]:
        obj = self._decode(record.value) if self._decode else {}

        def get(path: str) -> str:
            if path == "metadata.name":
                return record.address.name
            if path == "metadata.namespace":
                return record.address.namespace
            return field_text(obj, self._paths.get(path, path))

        return get


def _has_namespace(info: KindInfo) -> bool:
    resource = info.resource
    return resource.namespaced or not (info.custom or (resource.group, resource.plural) in NO_NAMESPACE)


def field_text(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if not value and path in INSTEAD:
        return field_text(obj, INSTEAD[path])
    return ABSENT.get(path, "") if value is None else str(value)


@functools.lru_cache(maxsize=128)
def decoder(paths: frozenset[str]) -> Callable[[bytes], Object]:
    """Skips all but these fields: every node watches all pods for its own, and an object decoded in full costs five
    times as much as one that is not."""
    tree: dict[str, Any] = {}
    for path in paths:
        below = tree
        for part in path.split("."):
            below = below.setdefault(part, {})
    return msgspec.json.Decoder(_shape(tree)).decode


def _shape(tree: dict[str, Any]) -> Any:
    fields = {name: _shape(below) | None if below else Any for name, below in tree.items()}
    return TypedDict("Selected", fields, total=False)  # type: ignore[operator]
