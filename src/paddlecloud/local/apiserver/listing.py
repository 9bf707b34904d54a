"""list: selectors, pages that all come from one moment, and the three shapes a client may ask for."""

from __future__ import annotations

import base64
import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import FieldSelector, LabelSelector
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store

from .registry import KindInfo

SNAPSHOTS = 64  # pages begun and not finished that are remembered; the oldest must start again (410)

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
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
}  # fmt: skip


class Filter:
    """A compiled pair of selectors for one kind. `matches` decodes an object only when a field is asked for."""

    def __init__(self, info: KindInfo, labels: str, fields: str) -> None:
        self._labels = LabelSelector.parse(labels) if labels else None
        self._fields = FieldSelector.parse(fields) if fields else None
        self._paths = info.conversion.fields if info.conversion else {}
        if self._fields is not None:
            own = self._paths or SELECTABLE.get((info.resource.group, info.resource.plural), ())
            self._fields.check(("metadata.name", "metadata.namespace", *own))
        self.trivial = self._labels is None and self._fields is None
        self._needs_object = self._fields is not None and any(
            not requirement.field.startswith("metadata.") for requirement in self._fields.requirements
        )

    def matches(self, record: Record) -> bool:
        if self._labels is not None and not self._labels.matches(record.labels):
            return False
        if self._fields is None:
            return True
        return self._fields.matches(self._getter(record))

    def _getter(self, record: Record) -> Callable[[str], str]:
        obj = record.object if self._needs_object else {}

        def get(path: str) -> str:
            if path == "metadata.name":
                return record.address.name
            if path == "metadata.namespace":
                return record.address.namespace
            return field_text(obj, self._paths.get(path, path))

        return get


def field_text(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):  # events: `source` selects by component
        value = value.get("component")
    return "" if value is None else str(value)


class Pages:
    """Unfinished lists, so that every page of one list shows the state of one moment."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[int, tuple[list[Record], int]] = OrderedDict()
        self._ids = itertools.count(1)

    def keep(self, rest: list[Record], revision: int) -> str:
        number = next(self._ids)
        self._snapshots[number] = (rest, revision)
        while len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(msgspec.json.encode({"v": 1, "rv": revision, "page": number})).decode()

    def take(self, token: str) -> tuple[list[Record], int]:
        try:
            decoded = msgspec.json.decode(base64.urlsafe_b64decode(token))
            number = int(decoded["page"])
        except (ValueError, KeyError, TypeError, msgspec.DecodeError):
            raise errors.BadRequest("continue key is not valid") from None
        if number not in self._snapshots:
            raise errors.Expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        return self._snapshots[number]


def list_records(
    store: Store,
    pages: Pages,
    info: KindInfo,
    namespace: str | None,
    *,
    labels: str,
    fields: str,
    limit: int = 0,
    token: str = "",
    at: int | None = None,
) -> tuple[list[Record], int, str, int | None]:
    """One page: records, the revision they are of, the token of the next page, and how many remain if known.

    The newest state is shown, or that of revision `at`.
    """
    chosen = Filter(info, labels, fields)
    if token:
        records, revision = pages.take(token)
    else:
        records, revision = store.list(info.collection, namespace), store.revision
        if at is not None:
            records, revision = store.list_at(info.collection, namespace, at), at
        if not chosen.trivial:
            records = [record for record in records if chosen.matches(record)]
    if not limit or len(records) <= limit:
        return records, revision, "", None
    return records[:limit], revision, pages.keep(records[limit:], revision), len(records) - limit
