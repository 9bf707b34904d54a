"""The StatefulSet controller: its caches, and what it observes."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import (
    CONTROLLERREVISIONS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    STATEFULSETS,
    Key,
    Object,
    key_of,
)
from paddlecloud.local.workloads.reconciler import ORPHANS, OWNER, WorkloadReconciler
from paddlecloud.local.workloads.statefulset.decide import Observed, decide
from paddlecloud.local.workloads.statefulset.identity import claim_templates, ordinal_of


def stateful_set_controller(manager: Manager, clock: Clock) -> None:
    def observe(stateful_set: Object) -> Observed:
        meta = stateful_set["metadata"]
        in_namespace = claims.cache.list(meta["namespace"]) if claim_templates(stateful_set) else ()
        return Observed(
            pods=tuple(pods.cache.by_index(OWNER, owned_by(stateful_set))),
            orphans=tuple(pods.cache.by_index(ORPHANS, meta["namespace"])),
            revisions=tuple(revisions.cache.by_index(OWNER, owned_by(stateful_set))),
            claims=tuple(claim for claim in in_namespace if _made_for(stateful_set, claim)),
        )

    def sets_behind(claim: Object) -> Iterable[Key]:
        """Claims have no owner reference: their names identify the set."""
        for stateful_set in reconciler.cache.list(claim["metadata"]["namespace"]):
            if _made_for(stateful_set, claim):
                yield key_of(stateful_set)

    reconciler = WorkloadReconciler(
        manager,
        STATEFULSETS,
        name="statefulset-controller",
        observe=observe,
        decide=decide,
        clock=clock,
        size=lambda observed: len(observed.pods),
    )
    pods = reconciler.owns(PODS)
    revisions = reconciler.owns(CONTROLLERREVISIONS, adopting=False)
    claims = reconciler.follows(PERSISTENTVOLUMECLAIMS, map=sets_behind)


def _made_for(stateful_set: Object, claim: Object) -> bool:
    name = claim["metadata"]["name"]
    return any(
        ordinal_of(stateful_set, name, prefix=f"{template['metadata']['name']}-") is not None
        for template in claim_templates(stateful_set)
    )
