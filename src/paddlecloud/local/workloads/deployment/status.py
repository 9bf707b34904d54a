"""What a Deployment's status says: counts, whether it serves, and whether the rollout moves. Pure.

The words of the Progressing condition are what `kubectl rollout status` waits for.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.conditions import condition_in, conditions_of, with_condition, without_condition
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.deployment.rollout import Limits

NO_DEADLINE = 2**31 - 1
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"


def counts(deployment: Object, new: Object | None, old: Sequence[Object]) -> Object:
    def total(field: str, sets: Sequence[Object]) -> int:
        return sum(int((rs.get("status") or {}).get(field) or 0) for rs in sets)

    everything = [*old, *([new] if new else [])]
    replicas, available = total("replicas", everything), total("availableReplicas", everything)
    numbers = {
        "replicas": replicas,
        "updatedReplicas": total("replicas", [new] if new else []),
        "readyReplicas": total("readyReplicas", everything),
        "availableReplicas": available,
        "unavailableReplicas": max(0, replicas - available),
    }
    return {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        **{name: number for name, number in numbers.items() if number},
    }


def is_complete(deployment: Object, numbers: Object) -> bool:
    wanted = int(deployment["spec"].get("replicas", 1))
    return all(numbers.get(name, 0) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas"))


def status_of(
    deployment: Object, new: Object | None, old: Sequence[Object], *, name: str, created: bool, now: float
) -> tuple[Object, float | None]:
    """The whole status, and after how many seconds the deadline must be looked at. `name` is the newest set's."""
    numbers = counts(deployment, new, old)
    conditions = _availability(deployment, numbers, now)
    conditions = _progress(deployment, conditions, numbers, name=name, created=created, now=now)
    conditions = _failures(conditions, [*([new] if new else []), *old], now)
    status = {**numbers, "conditions": conditions}
    return status, _until_deadline(deployment, conditions, now)


def _availability(deployment: Object, numbers: Object, now: float) -> list[Object]:
    limits = Limits.of(deployment)
    enough = numbers.get("availableReplicas", 0) >= limits.wanted - limits.unavailable
    return with_condition(
        conditions_of(deployment),
        "Available",
        "True" if enough else "False",
        reason=f"MinimumReplicas{'Available' if enough else 'Unavailable'}",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        now=now,
        update_time=True,
    )


def _progress(
    deployment: Object, conditions: list[Object], numbers: Object, *, name: str, created: bool, now: float
) -> list[Object]:
    deadline = deployment["spec"].get("progressDeadlineSeconds", 600)
    if deadline == NO_DEADLINE:
        return without_condition(conditions, "Progressing")
    before = condition_in(conditions, "Progressing")
    reason = (before or {}).get("reason")

    def said(status: str, reason: str, message: str, *, touch: bool = False) -> list[Object]:
        return with_condition(
            conditions, "Progressing", status, reason=reason, message=message, now=now, update_time=True, touch=touch
        )

    if deployment["spec"].get("paused"):
        return conditions if reason == PAUSED else said("Unknown", PAUSED, "Deployment is paused")
    if reason == PAUSED:
        return said("Unknown", RESUMED, "Deployment is resumed")
    if created:
        return said("True", "NewReplicaSetCreated", f'Created new replica set "{name}"', touch=True)
    if reason == COMPLETE and numbers.get("replicas") == numbers.get("updatedReplicas"):
        return conditions  # it was complete and no other template has begun; lost pods are not a rollout
    if is_complete(deployment, numbers):
        return said("True", COMPLETE, f'ReplicaSet "{name}" has successfully progressed.')
    # In Kubernetes `rollout status` right after `rollout undo` may still read the time-out of the other set.
    if before is None or (reason == TIMED_OUT and f'"{name}"' not in before.get("message", "")):
        return said("True", "FoundNewReplicaSet", f'Found new replica set "{name}"', touch=True)
    if _moved(deployment.get("status") or {}, numbers):
        return said("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', touch=True)
    if reason == COMPLETE:  # another template has just begun
        return said("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    if _age(before, now) > deadline:
        return said("False", TIMED_OUT, f'ReplicaSet "{name}" has timed out progressing.')
    return conditions


def _moved(old: Object, new: Object) -> bool:
    def stale(numbers: Object) -> int:
        return int(numbers.get("replicas", 0)) - int(numbers.get("updatedReplicas", 0))

    grown = any(
        new.get(field, 0) > old.get(field, 0) for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grown or stale(new) < stale(old)


def _age(condition: Object, now: float) -> float:
    return now - parse_rfc3339(condition.get("lastUpdateTime") or condition["lastTransitionTime"])


def _until_deadline(deployment: Object, conditions: list[Object], now: float) -> float | None:
    deadline = deployment["spec"].get("progressDeadlineSeconds", 600)
    condition = condition_in(conditions, "Progressing")
    if condition is None or condition["reason"] in (COMPLETE, TIMED_OUT, PAUSED):
        return None
    return max(0.0, float(deadline) - _age(condition, now)) + 1.0


def _failures(conditions: list[Object], sets: Sequence[Object], now: float) -> list[Object]:
    """A set that is refused its pods says so; the newest set's word counts first."""
    for replica_set in sets:
        failure = condition_in(conditions_of(replica_set), "ReplicaFailure")
        if failure is not None:
            return with_condition(
                conditions,
                "ReplicaFailure",
                failure["status"],
                reason=failure.get("reason", ""),
                message=failure.get("message", ""),
                now=now,
                update_time=True,
            )
    return without_condition(conditions, "ReplicaFailure")
