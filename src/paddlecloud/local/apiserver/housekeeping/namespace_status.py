"""The status of a namespace that is being deleted: why it is still there, in the conditions `kubectl describe` shows.

Kinds and finalizers are named without counting, so that a namespace of a thousand pods is not written a thousand times
while they go.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.conditions import dated
from paddlecloud.kube.resource import Object
from paddlecloud.local.store.record import Record

_SETTLED = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
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
    """The conditions for what is left; times move only with the status, as in Kubernetes (namespace_conditions.go)."""
    kinds: set[str] = set()
    finalizers: set[str] = set()
    for record in content:
        group, _, plural = record.address.collection.partition("/")
        kinds.add(f"{plural}.{group}" if group else plural)
        finalizers.update(record.meta.finalizers or ())
    found = [(kind, "False", reason, message) for kind, reason, message in _SETTLED]
    for names, (kind, (reason, text), nothing) in ((kinds, _CONTENT), (finalizers, _FINALIZERS)):
        state = ("True", reason, text + ", ".join(sorted(names))) if names else ("False", *nothing)
        found.append((kind, *state))
    known = {condition["type"]: condition for condition in before}
    return [
        dated({"type": kind, "status": status, "reason": reason, "message": message}, known.get(kind), now)
        for kind, status, reason, message in found
    ]
