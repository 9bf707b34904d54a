"""The CronJob controller: its caches, and what it observes."""

from __future__ import annotations

from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import CRONJOBS, JOBS, Object
from paddlecloud.local.workloads.cronjob.decide import Observed, decide
from paddlecloud.local.workloads.reconciler import OWNER, WorkloadReconciler


def cron_job_controller(manager: Manager, clock: Clock) -> None:
    def observe(cron_job: Object) -> Observed:
        return Observed(tuple(jobs.cache.by_index(OWNER, owned_by(cron_job))))

    reconciler = WorkloadReconciler(
        manager, CRONJOBS, name="cronjob-controller", observe=observe, decide=decide, clock=clock
    )
    jobs = reconciler.owns(JOBS, adopting=False)
