"""The SampleSet controller: which changes concern a set, and the work it gives to cache servers.

Nothing sleeps here: a set that has to wait is requeued. What is remembered (the last answers of the servers) is a
convenience; losing it costs a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.sampledata.sampleset import events
from paddlecloud.controllers.sampledata.sampleset.case import Observed, SampleSetOptions
from paddlecloud.controllers.sampledata.sampleset.decide import decide
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetPlan
from paddlecloud.controllers.sampledata.sampleset.observer import Observer
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import (
    keys_of,
    set_by_claim,
    set_by_label,
    set_of_paddle_job,
    set_of_sample_job,
    status_moved,
)
from paddlecloud.controllers.sampledata.servers.polling import ServerPoller
from paddlecloud.controllers.sampledata.servers.requests import RETRY, ServerAddress, Servers, Submission, submit
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.plan import PlanFailed, PlannedEvent
from paddlecloud.kube.resource import SAMPLESETS, Key, Object

COMPONENT = "SampleSet"


class SampleSetController(Operator[Observed, SampleSetPlan]):
    def __init__(
        self,
        client: Client,
        *,
        options: SampleSetOptions,
        namespace: str | None = None,
        clock: Clock | None = None,
        workers: int = 4,
        hooks: Hooks | None = None,
        servers: Servers | None = None,
    ) -> None:
        super().__init__(
            client, "sampleset", component=COMPONENT, namespace=namespace, clock=clock, workers=workers, hooks=hooks
        )
        self.options = options
        self._servers = servers or Servers()
        self._polling = ServerPoller(self._servers, self.clock)
        self._observer = Observer(client, self.informer, self._polling, options)
        self._submissions: dict[str, Submission] = {}  # by uid: what became of the work of the last pass
        self.primary = (self._observer.sets,)
        self._watch()

    def _watch(self) -> None:
        caches, watch = self._observer, self.controller.watch
        watch(caches.sets, expectations=self.expectations)
        for informer in caches.owned.values():
            self.controller.watch_owned(informer, owner_kind=SAMPLESETS, expectations=self.expectations)
        watch(caches.pods, map=set_by_label)
        watch(caches.volumes, map=set_by_claim, expectations=self.expectations)
        watch(caches.nodes, map=caches.sets_on)
        watch(caches.sample_jobs, map=keys_of(set_of_sample_job), expectations=self.expectations)
        watch(caches.paddle_jobs, map=keys_of(set_of_paddle_job), when=status_moved)

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._servers.close()

    async def observe(self, sample_set: Object) -> Observed:
        last = self._submissions.get(sample_set["metadata"]["uid"], Submission())
        observed = await self._observer.observe(sample_set)
        return replace(observed, trouble=self.refusal_of(sample_set) or last.silent, refused=last.refused)

    def decide(self, sample_set: Object, observed: Observed, now: float) -> SampleSetPlan:
        return decide(sample_set, observed, now, self.options)

    async def act(self, sample_set: Object, observed: Observed, plan: SampleSetPlan) -> float | None:
        """Work is given to servers before the status that says so is written."""
        uid, pods = sample_set["metadata"]["uid"], {server.name: server for server in observed.cache_servers}
        self._submissions.pop(uid, None)
        if plan.submit:
            access = observed.access
            if access is None:
                return RETRY
            orders = [(ServerAddress(pod, pods[pod].ip, access), work) for pod, work in plan.submit.items()]
            submission = await submit(self._servers, orders)
            if not submission.taken:
                self._submissions[uid] = submission
                return RETRY
        return await super().act(sample_set, observed, plan)

    def refused(self, sample_set: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        return events.refused(failed)

    def forget(self, key: Key, uid: str) -> None:
        self._polling.forget(key)
        self._submissions.pop(uid, None)
