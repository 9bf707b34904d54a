"""The templates a StatefulSet had, as ControllerRevisions: what `kubectl rollout history` and `undo` read. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import CONTROLLERREVISIONS, Object, owner_reference
from paddlecloud.local.workloads.pods import template_hash

HASH = "controller.kubernetes.io/hash"


class Revisions(NamedTuple):
    """Names of the revision all pods had and of the one they are to get, and the templates behind names."""

    current: str
    update: str
    templates: dict[str, Object]


def settle(stateful_set: Object, known: Sequence[Object], plan: Plan) -> Revisions:
    """Record the set's template as its newest revision, in `plan` where it is not yet."""
    meta, template = stateful_set["metadata"], stateful_set["spec"]["template"]
    templates = {revision["metadata"]["name"]: template_in(revision) for revision in known}
    newest = max((int(revision.get("revision") or 0) for revision in known), default=0)
    same = next((revision for revision in known if template_in(revision) == template), None)
    if same is None:
        same = _revision(stateful_set, newest + 1)
        plan.create.append(same)
        templates[same["metadata"]["name"]] = template
    elif int(same.get("revision") or 0) < newest:
        name, version = same["metadata"]["name"], same["metadata"]["resourceVersion"]
        plan.patch.append(Patch(CONTROLLERREVISIONS, name, meta["namespace"], {"revision": newest + 1}, seen=version))
    update = same["metadata"]["name"]
    current = (stateful_set.get("status") or {}).get("currentRevision") or update
    return Revisions(current if current in templates else update, update, templates)


def template_in(revision: Object) -> Object:
    template = copy.deepcopy(((revision.get("data") or {}).get("spec") or {}).get("template") or {})
    template.pop("$patch", None)
    return dict(template)


def forget(stateful_set: Object, known: Iterable[Object], live: set[str], plan: Plan) -> None:
    """Of the revisions that no pod has any more, the oldest beyond the limit go."""
    idle = sorted(
        (revision for revision in known if revision["metadata"]["name"] not in live),
        key=lambda revision: int(revision.get("revision") or 0),
    )
    limit = int(stateful_set["spec"].get("revisionHistoryLimit", 10))
    for revision in idle[: max(0, len(idle) - limit)]:
        meta = revision["metadata"]
        plan.delete.append(Delete(CONTROLLERREVISIONS, meta["name"], meta["namespace"], uid=meta["uid"]))


def _revision(stateful_set: Object, number: int) -> Object:
    """Its data is a patch that, applied to the set, brings its template back."""
    meta, spec = stateful_set["metadata"], stateful_set["spec"]
    mark = template_hash(spec["template"])
    return {
        "apiVersion": CONTROLLERREVISIONS.api_version,
        "kind": CONTROLLERREVISIONS.kind,
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": {**((spec.get("selector") or {}).get("matchLabels") or {}), HASH: mark},
            "ownerReferences": [owner_reference(stateful_set)],
        },
        "data": {"spec": {"template": {**copy.deepcopy(spec["template"]), "$patch": "replace"}}},
        "revision": number,
    }
