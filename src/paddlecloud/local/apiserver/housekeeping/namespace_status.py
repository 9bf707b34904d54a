"""What a dying namespace says about itself: why it is still there, in the conditions that `kubectl describe` shows.

Kinds and finalizers are named without counting, so that a namespace of a thousand pods is not written a thousand times
while they go.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.store.record import Record

_SETTLED = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content was told to go; some may wait for finalizers"),
)
"""What can fail where content is deleted over a network, and cannot here."""

_CONTENT = (
    "NamespaceContentRemaining",
    ("SomeResourcesRemain", "Some resources are remaining: "),
    ("ContentRemoved", "All content successfully removed"),
)
_FINALIZERS = (
    "NamespaceFinalizersRemaining",
    ("SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "),
    ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


def conditions(content: Iterable[Record], before: Iterable[Object], now: float) -> list[Object]:
    """The conditions for what is left; one that says what it said before keeps its time."""
    kinds: set[str] = set()
    finalizers: set[str] = set()
    for record in content:
        group, _, plural = record.address.collection.partition("/")
        kinds.add(f"{plural}.{group}" if group else plural)
        finalizers.update(record.meta.finalizers or ())
    told = [(kind, "False", reason, message) for kind, reason, message in _SETTLED]
    for names, (kind, (reason, text), nothing) in ((kinds, _CONTENT), (finalizers, _FINALIZERS)):
        found = ("True", reason, text + ", ".join(sorted(names))) if names else ("False", *nothing)
        told.append((kind, *found))
    known = {condition["type"]: condition for condition in before}
    return [_condition(known.get(entry[0]), *entry, now=now) for entry in told]


def _condition(before: Object | None, kind: str, status: str, reason: str, message: str, *, now: float) -> Object:
    told = {"type": kind, "status": status, "reason": reason, "message": message}
    if before is not None and all(before.get(key) == value for key, value in told.items()):
        return before
    return {**told, "lastTransitionTime": rfc3339(now)}
