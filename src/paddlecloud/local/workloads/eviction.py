"""Evictions ask first: a pod under a disruption budget is deleted only while the budget allows it.

`kubectl drain` gets 429 otherwise and tries again. Checking a budget and taking from it is one step, so two drains
at once cannot both have the last disruption.
"""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.pods import is_leaving, phase_of
from paddlecloud.kube.resource import PODDISRUPTIONBUDGETS, Object
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.builtin.pods import eviction_options
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.store.store import Store
from paddlecloud.local.workloads.disruption import selects
from paddlecloud.local.workloads.pods import is_ready

SOON = 1  # seconds: clients wait for Retry-After, and a budget is counted in milliseconds


def guard(evict: Handler, *, store: Store, registry: Registry, verbs: Verbs, clock: Clock) -> Handler:
    """The eviction handler behind the budgets."""

    async def guarded(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb == "create":
            options = eviction_options(request, info)
            pod = verbs.get(kind, info.namespace, info.name).object
            budget = await _budget_of(store, pod)
            budgets = registry.find(
                PODDISRUPTIONBUDGETS.group, PODDISRUPTIONBUDGETS.version, PODDISRUPTIONBUDGETS.plural
            )
            if budget is not None and budgets is not None and is_disruption(budget, pod):
                await verbs.update(
                    budgets,
                    info.namespace,
                    budget["metadata"]["name"],
                    lambda newest: take(newest, pod, clock.now()),
                    options=WriteOptions("eviction", dry_run=options.dry_run),
                    subresource="status",
                )
        return await evict(request, info, kind)

    return guarded


async def _budget_of(store: Store, pod: Object) -> Object | None:
    records = store.list(f"{PODDISRUPTIONBUDGETS.group}/{PODDISRUPTIONBUDGETS.plural}", pod["metadata"]["namespace"])
    found = []
    slice_ = TimeSlice()
    for record in records:
        await slice_.checkpoint()
        if selects(budget := record.object, pod):
            found.append(budget)
    if len(found) > 1:
        raise errors.InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support: "
            + ", ".join(budget["metadata"]["name"] for budget in found)
        )
    return found[0] if found else None


def is_disruption(budget: Object, pod: Object) -> bool:
    """Whether losing this pod is a disruption at all: one that is over, on its way or useless is none."""
    if phase_of(pod) in ("Pending", "Succeeded", "Failed") or is_leaving(pod):
        return False
    if is_ready(pod):
        return True
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return False
    status = budget.get("status") or {}
    desired = int(status.get("desiredHealthy") or 0)
    return not (desired > 0 and int(status.get("currentHealthy") or 0) >= desired)


def take(budget: Object, pod: Object, now: float) -> Object:
    """One disruption less, and the pod noted as promised; raises where there is none to take."""
    status = budget.setdefault("status", {})
    name = budget["metadata"]["name"]
    if int(status.get("observedGeneration") or 0) < int(budget["metadata"].get("generation") or 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after=SOON)
    allowed = int(status.get("disruptionsAllowed") or 0)
    if allowed <= 0:
        desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod["metadata"]["name"]: rfc3339(now)}
    return budget


def _refused(why: str, *, retry_after: int | None = None) -> errors.TooManyRequests:
    """Without a time to wait for it is the client that decides: nobody knows when there will be room."""
    return errors.TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": why}]},
        retry_after=retry_after,
    )
