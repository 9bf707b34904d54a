"""Configurations: every change of the template makes a Revision; which one is the newest, which is ready. Pure."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import NamedTuple

from paddlecloud.kube.conditions import ConditionState
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent
from paddlecloud.kube.resource import Object, owner_reference
from paddlecloud.local.knative.conditions import judged, ready_of
from paddlecloud.local.knative.names import CONFIGURATION, GENERATION, REVISIONS, SERVICE

IDLE_KEPT = 20
"""Revisions without traffic that are kept, as Knative does: the newest."""

TAKEN = "RevisionNameTaken"
"""The name of a revision that an earlier template made: Knative wants another name for every template."""


class Observed(NamedTuple):
    """`routed` are the names of revisions that a route leads to."""

    revisions: tuple[Object, ...] = ()
    routed: Collection[str] = ()


def decide(configuration: Object, observed: Observed, now: float) -> Plan:
    plan = Plan()
    if configuration["metadata"].get("deletionTimestamp"):
        return plan
    name = revision_name(configuration)
    newest = next((r for r in observed.revisions if r["metadata"]["name"] == name), None)
    taken = newest is not None and not _is_its(newest, configuration)
    if newest is None:
        plan.create.append(revision_for(configuration))
        plan.events.append(PlannedEvent("Created", f"Created Revision {name}", if_done=True))
    plan.status = _status(configuration, observed.revisions, name, newest, taken=taken, now=now)
    _forget(plan, observed, name)
    return plan


def revision_name(configuration: Object) -> str:
    """What the author chose, else the configuration's name with its generation."""
    meta = configuration["metadata"]
    template = (configuration.get("spec") or {}).get("template") or {}
    chosen = (template.get("metadata") or {}).get("name")
    return str(chosen or f"{meta['name']}-{int(meta.get('generation', 1)):05d}")


def revision_for(configuration: Object) -> Object:
    meta = configuration["metadata"]
    template = copy.deepcopy((configuration.get("spec") or {}).get("template") or {})
    own = template.get("metadata") or {}
    service = (meta.get("labels") or {}).get(SERVICE)
    labels = {
        **(own.get("labels") or {}),
        CONFIGURATION: meta["name"],
        GENERATION: str(meta.get("generation", 1)),
        **({SERVICE: service} if service else {}),
    }
    return {
        "apiVersion": REVISIONS.api_version,
        "kind": REVISIONS.kind,
        "metadata": {
            "name": revision_name(configuration),
            "namespace": meta["namespace"],
            "labels": labels,
            **({"annotations": own["annotations"]} if own.get("annotations") else {}),
            "ownerReferences": [owner_reference(configuration)],
        },
        "spec": template.get("spec") or {},
    }


def _is_its(revision: Object, configuration: Object) -> bool:
    """Made of this template, or of an earlier one with the same spec: going back to a name needs its very content."""
    spec = ((configuration.get("spec") or {}).get("template") or {}).get("spec") or {}
    made_of_this = generation_of(revision) == int(configuration["metadata"].get("generation", 1))
    return made_of_this or (revision.get("spec") or {}) == spec


def generation_of(revision: Object) -> int:
    text = (revision["metadata"].get("labels") or {}).get(GENERATION, "")
    return int(text) if text.isdecimal() else 0


def _status(
    configuration: Object, revisions: tuple[Object, ...], name: str, newest: Object | None, *, taken: bool, now: float
) -> Object:
    state = ready_of(newest)
    if taken:
        text = f'The revision name "{name}" is taken by a conflicting Revision, so traffic will not be migrated'
        state = ConditionState("False", TAKEN, text)
    elif state.status == "False":
        state = state._replace(
            reason="RevisionFailed", message=f'Revision "{name}" failed with message: {state.message}.'
        )
    status: Object = {
        "observedGeneration": configuration["metadata"].get("generation", 0),
        "latestCreatedRevisionName": name,
        "conditions": judged(configuration, {"Ready": state}, now, informative={}),
    }
    ready = [revision for revision in revisions if ready_of(revision).status == "True"]
    before = (configuration.get("status") or {}).get("latestReadyRevisionName")
    if newest in ready and not taken:
        status["latestReadyRevisionName"] = name
    elif ready:
        status["latestReadyRevisionName"] = max(ready, key=generation_of)["metadata"]["name"]
    elif before and any(r["metadata"]["name"] == before for r in revisions):
        status["latestReadyRevisionName"] = before
    return status


def _forget(plan: Plan, observed: Observed, newest: str) -> None:
    idle = [
        revision
        for revision in observed.revisions
        if revision["metadata"]["name"] != newest and revision["metadata"]["name"] not in observed.routed
    ]
    for revision in sorted(idle, key=generation_of)[: max(0, len(idle) - IDLE_KEPT)]:
        meta = revision["metadata"]
        plan.delete.append(Delete(REVISIONS, meta["name"], meta["namespace"], uid=meta["uid"]))
