"""What is to be done for a Model or a ModelVersion. Pure functions of the object, what was observed, and the time.

A deletion is refused by waiting: a finalizer keeps the object while something uses it, and its status, an event and
`kubectl describe` name the users. When the last one is gone the manifest is removed from the store, then the finalizer:
killed in between, the next pass repeats the removal, which then finds nothing.

Only versions in the store that the controller has are kept by finalizers and removed by retention. Those in other
stores belong to who pushed them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from paddlecloud.api.fields import Condition
from paddlecloud.api.model import ModelSpec, ModelStatus, ModelVersionStatus, NextRemoval, decode, encode
from paddlecloud.api.model.aliases import unrecorded
from paddlecloud.api.model.reference import LONGEST
from paddlecloud.api.names import MODEL_FINALIZER
from paddlecloud.api.problems import DecodeError, decode_or_empty
from paddlecloud.kube import conditions
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent, set_finalizers
from paddlecloud.kube.resource import MODELVERSIONS, Object
from paddlecloud.modelhub import retention
from paddlecloud.modelhub.users import VersionUser, named

IN_USE, LOST, BROKEN = "InUse", "Lost", "AliasBroken"
TERMINATING = "Terminating"
LOOK_AGAIN = 60.0
"""Seconds after which a deletion that waits is tried again without a change that was watched."""
AT_ONCE = 100
"""Versions that one pass deletes."""
NAMED = 20
"""Versions, or broken aliases, that one text names. Names of aliases are cut: API servers take longer ones."""


@dataclass(slots=True)
class ModelPlan(Plan):
    forget: bool = False
    """Remove the manifest of the version from the store before the rest is done."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Of a ModelVersion: `users`, `stored`, `model`. Of a Model: `users` and the rest."""

    keeps: bool = True
    """Whether the controller has the store that the object's files are in."""
    users: Sequence[VersionUser] = ()
    """Who uses it; nobody in a namespace that is being deleted."""
    stored: bool | None = None
    """Whether the store has the manifest; None if that is not known."""
    versions: Sequence[Object] = ()
    kept_versions: Sequence[Object] = ()
    """Those of `versions` that are in the controller's store."""
    services: Sequence[Object] = ()
    broken: Sequence[str] = field(default_factory=tuple)
    """Aliases that name a version which does not exist."""
    model: Object | None = None
    """Of a ModelVersion: its Model."""


def decide(obj: Object, observed: Observed, now: float) -> ModelPlan:
    return (decide_version if obj["kind"] == MODELVERSIONS.kind else decide_model)(obj, observed, now)


def decide_version(version: Object, observed: Observed, now: float) -> ModelPlan:
    meta, old = version["metadata"], decode_or_empty(ModelVersionStatus, version.get("status") or {})
    finalizers = list(meta.get("finalizers") or [])
    plan, current = ModelPlan(), old.conditions
    if not observed.keeps:
        if MODEL_FINALIZER in finalizers:  # the controller was given another store, or none
            plan.patch.append(set_finalizers(version, _without(finalizers)))
            if meta.get("deletionTimestamp"):
                store = version["spec"].get("store") or "the store of the platform"
                text = f"its manifest stays in {store}, which the controller does not have"
                plan.events.append(PlannedEvent("ManifestLeft", text, type="Warning"))
        return plan
    if meta.get("deletionTimestamp"):
        if MODEL_FINALIZER not in finalizers:
            return plan
        if not observed.users:
            plan.forget = True
            plan.patch.append(set_finalizers(version, _without(finalizers)))
            if observed.model is not None and not observed.model["metadata"].get("deletionTimestamp"):
                text = f"{_shown(version)} is removed; its files go with the next garbage collection"
                plan.events.append(PlannedEvent("VersionRemoved", text, about=observed.model, if_done=True))
            return plan
        text = f"in use by {named(observed.users)}; it is removed when nothing uses it any more"
        current = _blocked(plan, current, text, now)
        return _with_status(plan, version, ModelVersionStatus(phase=TERMINATING, message=text, conditions=current))
    if MODEL_FINALIZER not in finalizers:
        plan.patch.append(set_finalizers(version, [*finalizers, MODEL_FINALIZER]))
    if observed.stored is False:
        text = f"the store has no manifest of it; push the same files as {_shown(version)} again, or delete it"
        if not conditions.holds(current, LOST):
            plan.events.append(PlannedEvent(LOST, text, type="Warning"))
        current = conditions.put(current, Condition(type=LOST, status="True", reason="NoManifest", message=text), now)
        return _with_status(plan, version, ModelVersionStatus(phase=LOST, message=text, conditions=current))
    if observed.stored and conditions.holds(current, LOST):
        plan.events.append(PlannedEvent("Restored", "the store has its manifest again"))
        current = conditions.put(current, Condition(type=LOST, status="False", reason="Stored"), now)
        return _with_status(plan, version, ModelVersionStatus(conditions=current))
    return plan


def decide_model(model: Object, observed: Observed, now: float) -> ModelPlan:
    meta, old = model["metadata"], decode_or_empty(ModelStatus, model.get("status") or {})
    finalizers = list(meta.get("finalizers") or [])
    plan = ModelPlan()
    if meta.get("deletionTimestamp"):
        return _delete_model(plan, model, observed, old, finalizers, now)
    if observed.keeps and MODEL_FINALIZER not in finalizers:
        plan.patch.append(set_finalizers(model, [*finalizers, MODEL_FINALIZER]))
    elif not observed.keeps and MODEL_FINALIZER in finalizers:
        plan.patch.append(set_finalizers(model, _without(finalizers)))
    try:
        spec = decode(model).spec or ModelSpec()
    except DecodeError as error:
        return _with_status(plan, model, ModelStatus(message=str(error), versions=len(observed.versions)))
    staying = [each for each in observed.versions if not each["metadata"].get("deletionTimestamp")]
    status = ModelStatus(
        observed_generation=meta.get("generation"),
        versions=len(staying),
        next_removal=_retain(plan, meta["name"], spec, observed, now),
        conditions=old.conditions,
    )
    _judge_aliases(plan, spec, observed, status, now)
    return _with_status(plan, model, status)


def _delete_model(
    plan: ModelPlan, model: Object, observed: Observed, old: ModelStatus, finalizers: list[str], now: float
) -> ModelPlan:
    """Its versions go first, each with its manifest. Nothing goes while anything of it is in use."""
    if MODEL_FINALIZER not in finalizers:
        return plan
    if observed.keeps and observed.users:
        text = f"in use by {named(observed.users)}; it is removed with its versions when nothing uses them any more"
        current = _blocked(plan, old.conditions, text, now)
        status = ModelStatus(versions=len(observed.versions), message=text, conditions=current)
        return _with_status(plan, model, status)
    if observed.versions:
        plan.delete += _deletions(observed.versions)
        plan.requeue_after(LOOK_AGAIN)
        return plan
    plan.patch.append(set_finalizers(model, _without(finalizers)))
    return plan


def _retain(plan: ModelPlan, name: str, spec: ModelSpec, observed: Observed, now: float) -> NextRemoval | None:
    if spec.retention is None or not observed.keeps:
        return None
    staying = [each for each in observed.kept_versions if not each["metadata"].get("deletionTimestamp")]
    found = retention.verdicts(name, spec, staying, observed.services)
    removed = {each.version: each.reason for each in retention.due(found, now)}
    doomed = [each for each in staying if each["spec"]["version"] in removed][:AT_ONCE]
    plan.delete += _deletions(doomed)
    for reason in dict.fromkeys(removed.values()):
        texts = [f"{name}:{each['spec']['version']}" for each in doomed if removed[each["spec"]["version"]] == reason]
        if texts:
            more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
            text = f"removed {', '.join(texts[:NAMED])}{more}: {reason}"
            plan.events.append(PlannedEvent("Retention", text, if_done=True))
    if len(removed) > len(doomed):
        plan.requeue_after(1.0)
    later = retention.next_removal(each for each in found if each.version not in removed)
    if later is None or later.removed_at is None:
        return None
    plan.requeue_after(max(1.0, later.removed_at - now))
    return NextRemoval(version=later.version, at=rfc3339(later.removed_at), reason=later.reason)


def _judge_aliases(plan: ModelPlan, spec: ModelSpec, observed: Observed, status: ModelStatus, now: float) -> None:
    """Rules of the kind cannot look at versions, and do not compare every alias with its history."""
    known = spec.aliases or {}
    lacking, moved = observed.broken, unrecorded(spec)
    texts = [f"alias {alias[:LONGEST]} names version {known[alias]}, which does not exist" for alias in lacking]
    texts += [f"alias {alias[:LONGEST]} was moved to {known[alias]} without an entry in spec.moves" for alias in moved]
    if texts:
        text = "; ".join(texts[:NAMED]) + (f"; and {len(texts) - NAMED} more" if len(texts) > NAMED else "")
        shown = conditions.find(status.conditions, BROKEN)
        if shown is None or shown.status != "True" or shown.message != text:
            plan.events.append(PlannedEvent(BROKEN, text, type="Warning"))
        status.message = text
        broken = Condition(type=BROKEN, status="True", reason="NoVersion", message=text)
        status.conditions = conditions.put(status.conditions, broken, now)
    elif conditions.holds(status.conditions, BROKEN):
        repaired = Condition(type=BROKEN, status="False", reason="Repaired")
        status.conditions = conditions.put(status.conditions, repaired, now)


def _deletions(versions: Sequence[Object]) -> list[Delete]:
    metas = [each["metadata"] for each in versions if not each["metadata"].get("deletionTimestamp")]
    return [Delete(MODELVERSIONS, meta["name"], meta["namespace"], uid=meta["uid"]) for meta in metas]


def _blocked(plan: ModelPlan, current: list[Condition] | None, text: str, now: float) -> list[Condition]:
    shown = conditions.find(current, IN_USE)
    if shown is None or shown.message != text:
        plan.events.append(PlannedEvent(IN_USE, text, type="Warning"))
    plan.requeue_after(LOOK_AGAIN)
    return conditions.put(current, Condition(type=IN_USE, status="True", reason="InUse", message=text), now)


def _shown(version: Object) -> str:
    return f"{version['spec'].get('model')}:{version['spec'].get('version')}"


def _without(finalizers: list[str]) -> list[str]:
    return [each for each in finalizers if each != MODEL_FINALIZER]


def _with_status(plan: ModelPlan, obj: Object, status: ModelStatus | ModelVersionStatus) -> ModelPlan:
    written = encode(status)
    if written != (obj.get("status") or {}):
        plan.status = written
    return plan
