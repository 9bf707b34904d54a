"""Each template a Deployment ever had is a ReplicaSet: which of them is the newest, and what number it bears. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.kube.resource import REPLICASETS, Object, owner_reference
from paddlecloud.local.workloads.deployment.rollout import DESIRED, MOST, Limits
from paddlecloud.local.workloads.pods import template_hash

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
_OWN_ANNOTATIONS = frozenset((REVISION, HISTORY, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration"))
"""Of a Deployment or of a ReplicaSet alone: never copied from one to the other."""


class Generations(NamedTuple):
    """`old` without the newest, oldest first."""

    new: Object | None
    old: list[Object]


def generations(deployment: Object, replica_sets: Iterable[Object]) -> Generations:
    by_age = sorted(replica_sets, key=lambda rs: (rs["metadata"].get("creationTimestamp", ""), rs["metadata"]["name"]))
    template = deployment["spec"]["template"]
    new = next((rs for rs in by_age if plain_template(rs) == template), None)
    return Generations(new, [rs for rs in by_age if rs is not new])


def plain_template(replica_set: Object) -> Object:
    """A set's template without the label that the Deployment put in."""
    template = copy.deepcopy(replica_set["spec"].get("template") or {})
    labels = (template.get("metadata") or {}).get("labels") or {}
    labels.pop(HASH, None)
    return template


def revision_of(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def next_revision(old: Iterable[Object]) -> int:
    """One more than any other: a template that comes back becomes the newest revision again."""
    return max((revision_of(rs) for rs in old), default=0) + 1


def annotations_for(deployment: Object, replica_set: Object | None, old: Iterable[Object]) -> dict[str, str]:
    """What the newest set's annotations should be: the Deployment's, its own number, and the numbers it had before."""
    copied = {
        name: value
        for name, value in (deployment["metadata"].get("annotations") or {}).items()
        if name not in _OWN_ANNOTATIONS
    }
    present = (replica_set or {"metadata": {}})["metadata"].get("annotations") or {}
    had = revision_of(replica_set) if replica_set else 0
    number = max(next_revision(old), had)
    wanted = {**present, **copied, REVISION: str(number)}
    if had and had != number:
        wanted[HISTORY] = ",".join(filter(None, (present.get(HISTORY), str(had))))
    return wanted


def replica_set_for(deployment: Object, replicas: int, old: Iterable[Object]) -> Object:
    """The set of the Deployment's template. Its name follows from the template, so a second one cannot be made."""
    meta, spec = deployment["metadata"], deployment["spec"]
    mark = {HASH: template_hash(spec["template"])}
    template = copy.deepcopy(spec["template"])
    template_meta = template.setdefault("metadata", {})
    template_meta["labels"] = {**(template_meta.get("labels") or {}), **mark}
    selector = copy.deepcopy(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **mark}
    body: Object = {"replicas": replicas, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        body["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": REPLICASETS.api_version,
        "kind": REPLICASETS.kind,
        "metadata": {
            "name": f"{meta['name']}-{mark[HASH]}",
            "namespace": meta["namespace"],
            "labels": dict(template_meta["labels"]),
            "annotations": {**annotations_for(deployment, None, old), **Limits.of(deployment).annotations},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": body,
    }
