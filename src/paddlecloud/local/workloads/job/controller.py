"""The Job controller: its caches, and what it observes."""

from __future__ import annotations

from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import JOBS, PODS, Object
from paddlecloud.local.workloads.job.decide import Observed, decide
from paddlecloud.local.workloads.reconciler import ORPHANS, OWNER, WorkloadReconciler


def job_controller(manager: Manager, clock: Clock) -> None:
    def observe(job: Object) -> Observed:
        return Observed(
            pods=tuple(pods.cache.by_index(OWNER, owned_by(job))),
            orphans=tuple(pods.cache.by_index(ORPHANS, job["metadata"]["namespace"])),
        )

    reconciler = WorkloadReconciler(
        manager,
        JOBS,
        name="job-controller",
        observe=observe,
        decide=decide,
        clock=clock,
        size=lambda observed: len(observed.pods),
    )
    pods = reconciler.owns(PODS)
