"""The templates that a StatefulSet or DaemonSet had, as ControllerRevisions. Pure.

`kubectl rollout history` and `undo` read them: the data of each is a patch that brings its template back.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import CONTROLLERREVISIONS, Object, owner_reference
from paddlecloud.local.workloads.pods import template_hash

REVISION = "controller-revision-hash"
"""Label of a pod: the revision that it was made from."""


def newest(owner: Object, known: Sequence[Object], plan: Plan, *, label: str) -> Object:
    """The revision of the owner's template, recorded in `plan` as the newest where it is not yet.

    `label` holds the hash of the template on the revision.
    """
    meta, template = owner["metadata"], owner["spec"]["template"]
    last = max((int(revision.get("revision") or 0) for revision in known), default=0)
    same = next((revision for revision in known if template_in(revision) == template), None)
    if same is None:
        same = _revision(owner, last + 1, label)
        plan.create.append(same)
    elif int(same.get("revision") or 0) < last:
        name, version = same["metadata"]["name"], same["metadata"]["resourceVersion"]
        plan.patch.append(Patch(CONTROLLERREVISIONS, name, meta["namespace"], {"revision": last + 1}, seen=version))
    return same


def template_in(revision: Object) -> Object:
    template = copy.deepcopy(((revision.get("data") or {}).get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    return dict(template)


def forget(owner: Object, known: Iterable[Object], live: set[str], plan: Plan) -> None:
    """Of the revisions that no pod has any more, the oldest beyond the limit go. `live` are names."""
    idle = sorted(
        (revision for revision in known if revision["metadata"]["name"] not in live),
        key=lambda revision: int(revision.get("revision") or 0),
    )
    limit = int(owner["spec"].get("revisionHistoryLimit", 10))
    for revision in idle[: max(0, len(idle) - limit)]:
        meta = revision["metadata"]
        plan.delete.append(Delete(CONTROLLERREVISIONS, meta["name"], meta["namespace"], uid=meta["uid"]))


def _sorted(value: Any) -> Any:
    """A copy with the keys in order: clients compare the bytes of a revision with those that Go makes of a template."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


def _revision(owner: Object, number: int, label: str) -> Object:
    """The owner's annotations come along: one of them is the cause of the change that the history shows."""
    meta, template = owner["metadata"], owner["spec"]["template"]
    mark = template_hash(template)
    annotations = meta.get("annotations")
    return {
        "apiVersion": CONTROLLERREVISIONS.api_version,
        "kind": CONTROLLERREVISIONS.kind,
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), label: mark},
            **({"annotations": dict(annotations)} if annotations else {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": _sorted({"spec": {"template": {**template, "$patch": "replace"}}}),
        "revision": number,
    }
