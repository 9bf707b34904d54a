"""The Deployment controller's judgement: `decide(deployment, observed, now)` is pure and says everything to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paddlecloud.kube.plan import Delete, Patch, Plan, PlannedEvent
from paddlecloud.kube.pods import is_finished
from paddlecloud.kube.resource import DEPLOYMENTS, REPLICASETS, Object
from paddlecloud.local.workloads.deployment import status
from paddlecloud.local.workloads.deployment.revisions import (
    REVISION,
    annotations_for,
    generations,
    next_revision,
    replica_set_for,
    revision_of,
)
from paddlecloud.local.workloads.deployment.rollout import Limits, Size, is_rescaled, rescale, roll
from paddlecloud.local.workloads.ownership import claim


@dataclass(frozen=True, slots=True)
class Observed:
    """`pods` are those of each ReplicaSet, by its uid."""

    replica_sets: tuple[Object, ...] = ()
    orphans: tuple[Object, ...] = ()
    pods: Mapping[str, Sequence[Object]] = field(default_factory=dict)


def decide(deployment: Object, observed: Observed, now: float) -> Plan:
    if deployment["metadata"].get("deletionTimestamp"):
        return Plan()
    sets, patches = claim(deployment, REPLICASETS, observed.replica_sets, observed.orphans)
    if patches:
        return Plan(patch=patches)  # sizes are decided on sets that are ours beyond doubt
    new, old = generations(deployment, sets)
    plan = Plan()
    made = None
    limits, ordered = Limits.of(deployment), [*old, *([new] if new else [])]
    sizes = [Size.of(rs) for rs in ordered]
    if deployment["spec"].get("paused") or (_is_rolling(deployment) and is_rescaled(limits.wanted, sizes)):
        if all(size.settled for size in sizes):  # else how many pods there are is not known yet
            pods = int((deployment.get("status") or {}).get("replicas") or 0)
            for rs, replicas in zip(ordered, rescale(limits, sizes, pods), strict=True):
                _resize(plan, limits, rs, replicas)
    else:
        made = _advance(deployment, plan, new, old, observed)
    name = (made or new or {"metadata": {"name": deployment["metadata"]["name"]}})["metadata"]["name"]
    plan.status, plan.after = status.status_of(deployment, new, old, name=name, created=made is not None, now=now)
    if new is not None and status.is_complete(deployment, plan.status):
        _forget_history(deployment, plan, old)
    return plan


def _advance(
    deployment: Object, plan: Plan, new: Object | None, old: list[Object], observed: Observed
) -> Object | None:
    """Bring the newest template forward and the others back. Returns the set to be created, if one is."""
    limits = Limits.of(deployment)
    size = Size.of(new) if new else Size(0)
    if not _is_rolling(deployment):
        for rs in old:
            _resize(plan, limits, rs, 0)
        if any(not is_finished(pod) for rs in old for pod in observed.pods.get(rs["metadata"]["uid"], ())):
            return None  # the last of the old must be gone before the first of the new begins
        target = limits.wanted
    else:
        target, targets = roll(limits, size, [Size.of(rs) for rs in old])
        for rs, replicas in zip(old, targets, strict=True):
            _resize(plan, limits, rs, replicas)
    _number(deployment, plan, max(next_revision(old), revision_of(new) if new else 0))
    if new is None:
        made = replica_set_for(deployment, target, old)
        plan.create.append(made)
        if target:
            plan.events.append(_scaled(made["metadata"]["name"], 0, target))
        return made
    _resize(plan, limits, new, target, **_kept_current(deployment, new, old))
    return None


def _is_rolling(deployment: Object) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type") != "Recreate")


def _number(deployment: Object, plan: Plan, revision: int) -> None:
    if revision_of(deployment) != revision:
        meta = deployment["metadata"]
        body = {"metadata": {"annotations": {REVISION: str(revision)}}}
        plan.patch.append(Patch(DEPLOYMENTS, meta["name"], meta["namespace"], body, seen=meta["resourceVersion"]))


def _kept_current(deployment: Object, new: Object, old: list[Object]) -> Object:
    """Changes to the newest set that follow the Deployment without being another template."""
    change: Object = {}
    annotations = annotations_for(deployment, new, old)
    if annotations != (new["metadata"].get("annotations") or {}):
        change["metadata"] = {"annotations": annotations}
    patience = deployment["spec"].get("minReadySeconds", 0)
    if patience != new["spec"].get("minReadySeconds", 0):
        change["spec"] = {"minReadySeconds": patience}
    return change


def _resize(plan: Plan, limits: Limits, replica_set: Object, replicas: int, **change: Object) -> None:
    """A set that has pods, or gets some, also gets the annotations that say what its size is part of."""
    meta = replica_set["metadata"]
    before = int(replica_set["spec"].get("replicas", 1))
    if (before or replicas) and not limits.annotations.items() <= (meta.get("annotations") or {}).items():
        kept = (change.get("metadata") or {}).get("annotations") or {}
        change["metadata"] = {"annotations": {**kept, **limits.annotations}}
    if before != replicas:
        change["spec"] = {**change.get("spec", {}), "replicas": replicas}
        plan.events.append(_scaled(meta["name"], before, replicas))
    if change:
        plan.patch.append(Patch(REPLICASETS, meta["name"], meta["namespace"], change, seen=meta["resourceVersion"]))


def _scaled(name: str, before: int, after: int) -> PlannedEvent:
    direction = "up" if after > before else "down"
    text = f"Scaled {direction} replica set {name} from {before} to {after}"
    return PlannedEvent("ScalingReplicaSet", text, if_done=True)


def _forget_history(deployment: Object, plan: Plan, old: list[Object]) -> None:
    """Of the sets that have nothing left, the oldest revisions go."""
    idle = [rs for rs in old if _is_idle(rs)]
    surplus = len(idle) - int(deployment["spec"].get("revisionHistoryLimit", 10))
    for rs in sorted(idle, key=revision_of)[: max(0, surplus)]:
        meta = rs["metadata"]
        plan.delete.append(Delete(REPLICASETS, meta["name"], meta["namespace"], uid=meta["uid"]))


def _is_idle(replica_set: Object) -> bool:
    size, meta = Size.of(replica_set), replica_set["metadata"]
    pods = (replica_set.get("status") or {}).get("replicas")
    return size.replicas == 0 and size.settled and not pods and not meta.get("deletionTimestamp")
