"""PodDisruptionBudgets: how many pods of a group may be evicted now. Pure, but for the controller at the end.

An eviction takes one from `disruptionsAllowed` itself (`eviction.py`); here it is counted anew whenever pods change.
A pod that was promised to an eviction is held as disrupted until it is gone, or for two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paddlecloud.kube import selectors
from paddlecloud.kube.clock import Clock, parse_rfc3339
from paddlecloud.kube.conditions import conditions_of, with_condition
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.pods import is_finished, is_leaving
from paddlecloud.kube.resource import (
    DEPLOYMENTS,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Key,
    Object,
    controller_of,
    key_of,
)
from paddlecloud.local.workloads.deployment.rollout import resolve
from paddlecloud.local.workloads.pods import is_ready
from paddlecloud.local.workloads.reconciler import WorkloadReconciler

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Observed:
    """The pods a budget selects, and how many their owners want of them all."""

    pods: tuple[Object, ...] = ()
    wanted: int = 0


def selects(budget: Object, pod: Object) -> bool:
    """An empty selector means every pod of the namespace, a missing one none."""
    return selectors.selects(budget["spec"].get("selector"), pod["metadata"].get("labels") or {})


def decide(budget: Object, observed: Observed, now: float) -> Plan:
    if budget["metadata"].get("deletionTimestamp"):
        return Plan()
    spec = budget["spec"]
    pods = [pod for pod in observed.pods if not is_finished(pod)]
    promised = _promised(budget, pods, now)
    healthy = sum(is_ready(pod) and not is_leaving(pod) and pod["metadata"]["name"] not in promised for pod in pods)
    expected = len(pods) if isinstance(spec.get("minAvailable"), int) else observed.wanted
    desired = _desired(spec, expected)
    allowed = max(0, healthy - desired) if expected else 0
    sufficient = allowed > 0
    status: Object = {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_condition(
            conditions_of(budget),
            "DisruptionAllowed",
            "True" if sufficient else "False",
            reason="SufficientPods" if sufficient else "InsufficientPods",
            message="",
            now=now,
        ),
    }
    if promised:
        status["disruptedPods"] = promised
    until = [parse_rfc3339(moment) + PATIENCE - now for moment in promised.values()]
    return Plan(status=status, after=max(0.0, min(until)) + 1.0 if until else None)


def _promised(budget: Object, pods: list[Object], now: float) -> dict[str, str]:
    here = {pod["metadata"]["name"] for pod in pods if not is_leaving(pod)}
    return {
        name: moment
        for name, moment in ((budget.get("status") or {}).get("disruptedPods") or {}).items()
        if name in here and parse_rfc3339(moment) + PATIENCE > now
    }


def _desired(spec: Object, expected: int) -> int:
    if (least := spec.get("minAvailable")) is not None:
        return resolve(least, expected, up=True)
    if (most := spec.get("maxUnavailable")) is not None:
        return max(0, expected - resolve(most, expected, up=True))
    return max(0, expected - 1)


def total_wanted(standings: Iterable[tuple[str, int | None]]) -> int:
    """How many pods there should be: an owner's number once, the pods of others one by one."""
    totals: dict[str, int] = {}
    for owner, number in standings:
        totals[owner] = totals.get(owner, 0) + 1 if number is None else number
    return sum(totals.values())


def budget_controller(manager: Manager, clock: Clock) -> None:
    pods = manager.informer(PODS)
    deployments = manager.informer(DEPLOYMENTS)
    scaled = {kind.kind: manager.informer(kind) for kind in (REPLICATIONCONTROLLERS, REPLICASETS, STATEFULSETS)}

    def standing(pod: Object) -> tuple[str, int | None]:
        """Whose pod it is in the end, and how many pods that one wants; None where it has no such number."""
        namespace = pod["metadata"]["namespace"]
        owner = controller_of(pod)
        if owner is None:
            return pod["metadata"]["uid"], None
        informer = scaled.get(owner["kind"])
        obj = informer.cache.get(Key(namespace, owner["name"])) if informer else None
        above = controller_of(obj) if obj else None
        if above and above["kind"] == "Deployment":
            obj = deployments.cache.get(Key(namespace, above["name"])) or obj
        return (above or owner)["uid"], int(obj["spec"].get("replicas", 1)) if obj else None

    def observe(budget: Object) -> Observed:
        chosen = tuple(pod for pod in pods.cache.list(budget["metadata"]["namespace"]) if selects(budget, pod))
        return Observed(chosen, total_wanted(standing(pod) for pod in chosen if not is_finished(pod)))

    def budgets_of(pod: Object) -> Iterable[Key]:
        for budget in reconciler.cache.list(pod["metadata"].get("namespace", "")):
            if selects(budget, pod):
                yield key_of(budget)

    reconciler = WorkloadReconciler(
        manager,
        PODDISRUPTIONBUDGETS,
        name="disruption-controller",
        observe=observe,
        decide=decide,
        clock=clock,
        size=lambda observed: len(observed.pods),
    )
    reconciler.controller.watch(pods, map=budgets_of)
