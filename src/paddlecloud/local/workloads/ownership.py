"""Which objects belong to a controller: those it made, orphans it may take in, and those it must let go.

A selector says which pods are ours. A pod whose labels were changed so that it no longer matches is released (that is
how people take a pod out of service to look at it); one without an owner that matches is adopted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.kube.plan import Patch
from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import Object, Resource, controller_of, owner_reference
from paddlecloud.kube.selectors import LabelSelector


class Claimed(NamedTuple):
    """`ours` includes what is being adopted; `patches` make it so."""

    ours: list[Object]
    patches: list[Patch]


def claim(owner: Object, resource: Resource, owned: Iterable[Object], orphans: Iterable[Object]) -> Claimed:
    selector = LabelSelector.of_workload(owner)
    ours: list[Object] = []
    patches: list[Patch] = []
    for obj in owned:
        if selector.matches(obj["metadata"].get("labels") or {}):
            ours.append(obj)
        elif not obj["metadata"].get("deletionTimestamp"):
            patches.append(_rewrite(resource, obj, _without(obj, owner)))
    for obj in orphans:
        if _may_adopt(selector, obj):
            ours.append(obj)
            references = [*(obj["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
            patches.append(_rewrite(resource, obj, references))
    return Claimed(ours, patches)


def orphans_by_namespace(obj: Object) -> Iterable[str]:
    """An index of what nobody controls."""
    return () if controller_of(obj) else (obj["metadata"].get("namespace", ""),)


def _may_adopt(selector: LabelSelector, obj: Object) -> bool:
    free = not is_leaving(obj) and not is_finished(obj)
    return free and selector.matches(obj["metadata"].get("labels") or {})


def _without(obj: Object, owner: Object) -> list[Object]:
    uid = owner["metadata"]["uid"]
    return [reference for reference in obj["metadata"].get("ownerReferences") or () if reference.get("uid") != uid]


def _rewrite(resource: Resource, obj: Object, references: list[Object]) -> Patch:
    meta = obj["metadata"]
    body = {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "ownerReferences": references}}
    return Patch(resource, meta["name"], meta.get("namespace"), body, seen=meta["resourceVersion"])
