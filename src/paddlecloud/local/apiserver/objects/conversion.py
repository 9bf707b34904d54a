"""Kinds that share a collection with another one: how they are stored, and how they are shown.

Events are one collection under two API groups, and a custom kind is one under all its versions. Both are stored in one
form; a `Conversion` says which collection that is and translates objects on their way in and out. Metadata is shared,
never translated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paddlecloud.kube.resource import Object

Translate = Callable[[Object], Object]
"""Gives a new outer dict; `metadata` stays the same object, so that what the store sets there is seen by both."""


@dataclass(frozen=True, slots=True)
class Conversion:
    collection: str
    inward: Translate
    outward: Translate
    fields: Mapping[str, str] = field(default_factory=dict)
    """Selectable fields under their name here → their path in the stored object."""


# --- events -----------------------------------------------------------------------------------------------------------

_CORE, _EVENTS = "v1", "events.k8s.io/v1"

_NEW_TO_OLD = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_OLD_TO_NEW = {old: new for new, old in _NEW_TO_OLD.items()}
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _renamed(names: Mapping[str, str], api_version: str) -> Translate:
    def translate(obj: Object) -> Object:
        return {names.get(key, key): value for key, value in obj.items()} | {"apiVersion": api_version}

    return translate


EVENTS = Conversion(
    collection="/events",
    inward=_renamed(_NEW_TO_OLD, _CORE),
    outward=_renamed(_OLD_TO_NEW, _EVENTS),
    fields={
        "reason": "reason",
        "type": "type",
        "reportingController": "reportingComponent",
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _REFERENCE},
    },
)
"""Events of events.k8s.io: stored as core events, whatever group wrote them."""


# --- versions of custom kinds -----------------------------------------------------------------------------------------


def between_versions(collection: str, *, group: str, stored: str, shown: str) -> Conversion:
    """The strategy `None` of Kubernetes: nothing but the version is translated."""

    def to(version: str) -> Translate:
        return lambda obj: obj | {"apiVersion": f"{group}/{version}"}

    return Conversion(collection, inward=to(stored), outward=to(shown))
