"""The CronWorkflow controller: its caches, what it observes, and since when it keeps each schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Key, Object
from paddlecloud.local.workflow.cron.decide import Observed, decide, written_schedule
from paddlecloud.local.workflow.names import CRON_WORKFLOWS, WORKFLOWS
from paddlecloud.local.workloads.reconciler import OWNER, WorkloadReconciler


class CronWorkflowReconciler(WorkloadReconciler[Observed]):
    def __init__(self, manager: Manager, clock: Clock) -> None:
        super().__init__(
            manager, CRON_WORKFLOWS, name="cron-controller", observe=self._observed, decide=decide, clock=clock
        )
        self._workflows = self.owns(WORKFLOWS, adopting=False)
        self._kept: dict[str, tuple[object, float]] = {}
        """By uid: the schedule, and since when it is kept: at the earliest since this process started."""

    async def decided(self, obj: Object, observed: Observed) -> Plan:
        """In a thread, as for workflows: its author chooses what the conditions and a copy of the spec cost."""
        return await asyncio.to_thread(self.decide, obj, observed, self.clock.now())

    def forget(self, key: Key, uid: str) -> None:
        self._kept.pop(uid, None)

    def _observed(self, cron: Object) -> Observed:
        workflows = tuple(self._workflows.cache.by_index(OWNER, owned_by(cron)))
        spec: Mapping[str, Any] = cron.get("spec") or {}
        uid, state = cron["metadata"]["uid"], (written_schedule(spec), bool(spec.get("suspend")))
        known = self._kept.get(uid)
        if known is None or known[0] != state:
            known = self._kept[uid] = (state, self.clock.now())
        return Observed(workflows, known[1], self.refusal_of(cron))
