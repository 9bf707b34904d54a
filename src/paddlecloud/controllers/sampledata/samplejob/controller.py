"""The SampleJob controller: what it observes of a job, and the work it gives to cache servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from paddlecloud.api.samplejob import SampleJobSettings
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.samplejob.decide import decide
from paddlecloud.controllers.sampledata.samplejob.draft import FINISHED, Observed, ParsedJob, SampleJobPlan
from paddlecloud.controllers.sampledata.samplejob.work import given_to, secret_of
from paddlecloud.controllers.sampledata.sampleset.case import CacheServer, Parsed, SampleSetOptions, SecretView
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import (
    cache_servers,
    read_secret,
    set_by_label,
    set_of_sample_job,
)
from paddlecloud.controllers.sampledata.servers.access import Access
from paddlecloud.controllers.sampledata.servers.access import read as read_access
from paddlecloud.controllers.sampledata.servers.requests import (
    RETRY,
    ServerAddress,
    ServerRefused,
    Servers,
    ServerSilent,
    submit,
)
from paddlecloud.controllers.sampledata.servers.responses import JobReport
from paddlecloud.kube.cache import by_label, by_owner, owned_by
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import PODS, SAMPLEJOBS, SAMPLESETS, SECRETS, STATEFULSETS, Key, Object, key_of

COMPONENT = "SampleJob"


@dataclass(slots=True)
class _Memory:
    """Since when servers have been silent, and why one refused the work."""

    silent_since: dict[int, float] = field(default_factory=dict)
    refused: str = ""


class SampleJobController(Operator[Observed, SampleJobPlan]):
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
            client, "samplejob", component=COMPONENT, namespace=namespace, clock=clock, workers=workers, hooks=hooks
        )
        self.options = options
        self._servers = servers or Servers()
        self._memory: dict[str, _Memory] = {}  # by uid
        self._jobs = self.informer(SAMPLEJOBS, indexers={"set": set_of_sample_job, "owner": by_owner})
        self.primary = (self._jobs,)
        self._sets = self.informer(SAMPLESETS)
        self._pods = self.informer(PODS, label_selector=names.SAMPLE_SET, indexers={"set": by_label(names.SAMPLE_SET)})
        self._stateful_sets = self.informer(STATEFULSETS, label_selector=names.SAMPLE_SET)
        self.controller.watch(self._jobs, expectations=self.expectations)
        self.controller.watch_owned(self._jobs, owner_kind=SAMPLEJOBS, expectations=self.expectations)
        self.controller.watch(self._sets, map=lambda found: self._jobs_of(key_of(found)))
        self.controller.watch(self._pods, map=self._jobs_on)

    def _jobs_of(self, sample_set: Key) -> Iterable[Key]:
        """Jobs of a set that have not ended: nothing that happens to the set concerns the others."""
        jobs = self._jobs.cache.by_index("set", str(sample_set))
        return [key_of(job) for job in jobs if (job.get("status") or {}).get("phase") not in FINISHED]

    def _jobs_on(self, pod: Object) -> Iterable[Key]:
        return [job for sample_set in set_by_label(pod) for job in self._jobs_of(sample_set)]

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._servers.close()

    def decide(self, job: Object, observed: Observed, now: float) -> SampleJobPlan:
        return decide(job, observed, now, self.options)

    async def act(self, job: Object, observed: Observed, plan: SampleJobPlan) -> float | None:
        """Work is given to servers before the status that says so is written."""
        memory, pods = self._remember(job), {server.ordinal: server for server in observed.servers}
        memory.refused = ""
        await self._cancel(plan, observed)
        if plan.submit:
            access = observed.access
            if access is None:
                return RETRY
            orders = [(ServerAddress(pods[n].name, pods[n].ip, access), work) for n, work in plan.submit.items()]
            submission = await submit(self._servers, orders)
            memory.refused = submission.refused
            if not submission.taken:
                return RETRY
        return await super().act(job, observed, plan)

    def forget(self, key: Key, uid: str) -> None:
        self._memory.pop(uid, None)

    def _remember(self, job: Object) -> _Memory:
        return self._memory.setdefault(job["metadata"]["uid"], _Memory())

    async def _cancel(self, plan: SampleJobPlan, observed: Observed) -> None:
        """Cancel work on the servers, never what is about to be submitted. One that does not answer has none."""
        own = {work.id for work in plan.submit.values()}
        for server in _reachable(observed):
            for id in plan.cancel:
                try:
                    ids = [id]
                    if id == "*":
                        ids = [other.id for other in await self._servers.jobs(server) if not other.ended]
                    for found in ids:
                        if found not in own:
                            await self._servers.cancel(server, found)
                except (ServerSilent, ServerRefused):
                    continue

    async def observe(self, job: Object) -> Observed:
        key, memory = key_of(job), self._remember(job)
        name = next((text.split("/", 1)[1] for text in set_of_sample_job(job)), "")
        sample_set = self._sets.cache.get(Key(key.namespace, name))
        owner = sample_set["metadata"]["uid"] if sample_set else ""
        stateful_set = self._stateful_sets.cache.get(Key(key.namespace, names.runtime(name)))
        servers = cache_servers(self._pods.cache, Key(key.namespace, name), stateful_set, owner)
        access = await self._access(key.namespace, name) if servers else None
        reports, silent = await self._ask(job, servers, access)
        now = self.clock.monotonic()
        memory.silent_since = {ordinal: memory.silent_since.get(ordinal, now) for ordinal in silent}
        parsed, parsed_set = ParsedJob.of(job), Parsed.of(sample_set) if sample_set else None
        return Observed(
            parsed=parsed,
            parsed_set=parsed_set,
            sample_set=sample_set,
            servers=servers,
            access=access,
            secret=await self._secret(parsed.settings, parsed_set) if parsed.decoded else None,
            reports=reports,
            silent=silent,
            silent_for={ordinal: now - since for ordinal, since in memory.silent_since.items()},
            children=tuple(self._jobs.cache.by_index("owner", owned_by(job))),
            refused=memory.refused,
        )

    async def _access(self, namespace: str, name: str) -> Access | None:
        try:
            return read_access(await self.client.get(SECRETS, names.runtime_keys(name), namespace))
        except NotFound:
            return None

    async def _secret(self, settings: SampleJobSettings, sample_set: Parsed | None) -> SecretView | None:
        secret = secret_of(settings, sample_set.settings if sample_set else None)
        return await read_secret(self.client, secret, namespace=settings.namespace) if secret else None

    async def _ask(
        self, job: Object, servers: tuple[CacheServer, ...], access: Access | None
    ) -> tuple[dict[int, JobReport | None], dict[int, str]]:
        """How the job stands on each of its servers."""
        status = job.get("status") or {}
        id = status.get("jobName")
        reports: dict[int, JobReport | None] = {}
        silent: dict[int, str] = {}
        if not id or status.get("phase") in FINISHED:
            return reports, silent
        pods = {server.ordinal: server for server in servers}

        async def ask(ordinal: int) -> None:
            pod = pods.get(ordinal)
            if pod is None or not pod.running or not pod.ip or access is None:
                silent[ordinal] = f"waiting for {pod.name if pod else f'cache server {ordinal}'}"
                return
            try:
                reports[ordinal] = await self._servers.job(ServerAddress(pod.name, pod.ip, access), id)
            except (ServerSilent, ServerRefused) as error:
                silent[ordinal] = str(error)

        await asyncio.gather(*(ask(ordinal) for ordinal in given_to(status.get("partitions"))))
        return reports, silent


def _reachable(observed: Observed) -> list[ServerAddress]:
    access = observed.access
    return [ServerAddress(s.name, s.ip, access) for s in observed.servers if access and s.running and s.ip]
