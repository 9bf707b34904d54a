"""ReplicaSets and ReplicationControllers: so many pods of one template, no more and no fewer.

The two differ in their selectors alone, so one controller carries out both, as in Kubernetes
(pkg/controller/replication).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from paddlecloud.kube.bursts import burst
from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock, parse_rfc3339
from paddlecloud.kube.conditions import conditions_of, with_condition, without_condition
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Delete, Plan, PlannedEvent
from paddlecloud.kube.pods import phase_of
from paddlecloud.kube.resource import PODS, REPLICASETS, REPLICATIONCONTROLLERS, Object, Resource
from paddlecloud.local.workloads.ownership import claim
from paddlecloud.local.workloads.pods import fresh_names, is_active, is_available, is_ready, next_available, pod_from
from paddlecloud.local.workloads.reconciler import ORPHANS, OWNER, WorkloadReconciler

BURST = 500
"""Pods created or removed in one pass; the rest follows in the next."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True, slots=True)
class Observed:
    """`refusal` is why the last pass could not create what it wanted."""

    pods: tuple[Object, ...] = ()
    orphans: tuple[Object, ...] = ()
    refusal: str = ""


def decide(replica_set: Object, observed: Observed, now: float) -> Plan:
    if replica_set["metadata"].get("deletionTimestamp"):
        return Plan()  # the garbage collector takes the pods
    spec = replica_set["spec"]
    wanted = int(spec.get("replicas", 1))
    min_ready = int(spec.get("minReadySeconds") or 0)
    pods, patches = claim(replica_set, PODS, observed.pods, observed.orphans)
    active = [pod for pod in pods if is_active(pod)]
    plan = Plan(patch=patches, after=next_available(active, min_ready, now))
    if len(active) < wanted:
        _grow(plan, replica_set, wanted - len(active), taken=[pod["metadata"]["name"] for pod in observed.pods])
    elif len(active) > wanted:
        _shrink(plan, active, len(active) - wanted)
    plan.status = _status(replica_set, active, observed.refusal, now)
    return plan


def _grow(plan: Plan, replica_set: Object, count: int, *, taken: list[str]) -> None:
    template = replica_set["spec"].get("template") or {}
    names = list(islice(fresh_names(replica_set, taken), burst(template, min(count, BURST))))
    plan.create += [pod_from(template, name=name, owner=replica_set) for name in names]
    plan.events.append(PlannedEvent("SuccessfulCreate", named_pods("Created", names), if_done=True))


def _shrink(plan: Plan, active: list[Object], count: int) -> None:
    chosen = sorted(active, key=worth)[: min(count, BURST)]
    for pod in chosen:
        meta = pod["metadata"]
        plan.delete.append(Delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"]))
    plan.events.append(
        PlannedEvent(
            "SuccessfulDelete", named_pods("Deleted", [pod["metadata"]["name"] for pod in chosen]), if_done=True
        )
    )


def named_pods(verb: str, names: list[str]) -> str:
    """`Created pod: a` as Kubernetes says it; of a whole batch the first few by name."""
    if len(names) == 1:
        return f"{verb} pod: {names[0]}"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{verb} {len(names)} pods: {', '.join(names[:3])}{more}"


def worth(pod: Object) -> tuple[object, ...]:
    """The least is given up first: without a node, not running, not ready, cheap, young, often restarted."""
    meta, status = pod["metadata"], pod.get("status") or {}
    try:
        cost = int((meta.get("annotations") or {}).get(DELETION_COST) or 0)
    except ValueError:
        cost = 0  # Kubernetes refuses such a value when the pod is written; here it counts as not given
    born = meta.get("creationTimestamp")
    restarts = sum(int(c.get("restartCount") or 0) for c in status.get("containerStatuses") or ())
    return (
        bool(pod["spec"].get("nodeName")),
        ("Pending", "Unknown", "Running").index(phase_of(pod)),
        is_ready(pod),
        cost,
        -parse_rfc3339(born) if born else 0.0,
        -restarts,
        meta["name"],
    )


def _status(replica_set: Object, active: list[Object], refusal: str, now: float) -> Object:
    spec = replica_set["spec"]
    min_ready = int(spec.get("minReadySeconds") or 0)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    conditions = without_condition(conditions_of(replica_set), "ReplicaFailure")
    if refusal:
        conditions = with_condition(
            conditions_of(replica_set), "ReplicaFailure", "True", reason="FailedCreate", message=refusal, now=now
        )
    counts = {
        "fullyLabeledReplicas": sum(labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active),
        "readyReplicas": sum(is_ready(pod) for pod in active),
        "availableReplicas": sum(is_available(pod, min_ready, now) for pod in active),
    }
    return {
        "replicas": len(active),
        **{name: count for name, count in counts.items() if count},
        "observedGeneration": replica_set["metadata"].get("generation", 0),
        **({"conditions": conditions} if conditions else {}),
    }


def replica_set_controller(manager: Manager, clock: Clock) -> None:
    _controller(manager, clock, REPLICASETS, name="replicaset-controller")


def replication_controller(manager: Manager, clock: Clock) -> None:
    _controller(manager, clock, REPLICATIONCONTROLLERS, name="replication-controller")


def _controller(manager: Manager, clock: Clock, resource: Resource, *, name: str) -> None:
    def observe(replica_set: Object) -> Observed:
        meta = replica_set["metadata"]
        return Observed(
            pods=tuple(pods.cache.by_index(OWNER, owned_by(replica_set))),
            orphans=tuple(pods.cache.by_index(ORPHANS, meta["namespace"])),
            refusal=reconciler.refusal_of(replica_set),
        )

    reconciler = WorkloadReconciler(
        manager,
        resource,
        name=name,
        observe=observe,
        decide=decide,
        clock=clock,
        size=lambda observed: len(observed.pods),
    )
    pods = reconciler.owns(PODS)
