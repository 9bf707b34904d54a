"""The Deployment controller: its caches, and what it observes."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import DEPLOYMENTS, PODS, REPLICASETS, Key, Object, controller_of
from paddlecloud.local.workloads.deployment.decide import Observed, decide
from paddlecloud.local.workloads.reconciler import ORPHANS, OWNER, WorkloadReconciler


def deployment_controller(manager: Manager, clock: Clock) -> None:
    def observe(deployment: Object) -> Observed:
        meta = deployment["metadata"]
        owned = tuple(sets.cache.by_index(OWNER, owned_by(deployment)))
        orphans = tuple(sets.cache.by_index(ORPHANS, meta["namespace"]))
        found = {rs["metadata"]["uid"]: pods.cache.by_index(OWNER, owned_by(rs)) for rs in (*owned, *orphans)}
        return Observed(owned, orphans, found)

    def deployment_behind(pod: Object) -> Iterable[Key]:
        """A Deployment that recreates waits for the last old pod to be gone, of which its sets say nothing."""
        namespace = pod["metadata"].get("namespace", "")
        owner = controller_of(pod)
        replica_set = sets.cache.get(Key(namespace, owner["name"])) if owner and owner["kind"] == "ReplicaSet" else None
        behind = controller_of(replica_set) if replica_set else None
        if behind and behind["kind"] == "Deployment":
            yield Key(namespace, behind["name"])

    def gone(old: Object | None, new: Object | None) -> bool:
        return new is None

    reconciler = WorkloadReconciler(
        manager, DEPLOYMENTS, name="deployment-controller", observe=observe, decide=decide, clock=clock
    )
    sets = reconciler.owns(REPLICASETS)
    pods = manager.informer(PODS)
    reconciler.controller.watch(pods, map=deployment_behind, when=gone)
