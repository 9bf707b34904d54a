"""The SampleSet controller: what it observes of a set, and the work it gives to cache servers.

Nothing sleeps here: a set that has to wait is requeued. What is remembered (the last answers of the servers) is a
convenience; losing it costs a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from paddlecloud.api.paddlejob import phase_of
from paddlecloud.api.problems import DecodeError
from paddlecloud.api.sampleset import SampleSetStatus, Secret, decode, normalise
from paddlecloud.controllers import grants
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import events
from paddlecloud.controllers.sampledata.sampleset.case import Case, Observed, Options, SecretView
from paddlecloud.controllers.sampledata.sampleset.decide import decide
from paddlecloud.controllers.sampledata.sampleset.draft import Decision
from paddlecloud.controllers.sampledata.sampleset.observe import (
    epochs_of,
    finished,
    handle_of,
    is_over,
    keys_of,
    only_metadata,
    only_reading,
    read_secret,
    runtimes,
    same_handle,
    set_by_claim,
    set_by_label,
    set_of_paddle_job,
    set_of_sample_job,
    status_moved,
    uses_claim,
    volume_of,
    without_ids,
)
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.access import fresh as fresh_access
from paddlecloud.controllers.sampledata.servers.polling import Interview
from paddlecloud.controllers.sampledata.servers.requests import Server, ServerRefused, Servers, ServerSilent
from paddlecloud.kube.cache import by_label
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.plan import PlanFailed, PlannedEvent
from paddlecloud.kube.resource import (
    CSIDRIVERS,
    EVENTS,
    NODES,
    PADDLEJOBS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    SAMPLEJOBS,
    SAMPLESETS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    key_of,
)

COMPONENT = "SampleSet"
OWNED = (PERSISTENTVOLUMECLAIMS, SECRETS, SERVICES, STATEFULSETS)
READING = frozenset({"Starting", "Running", "Restarting", "Scaling"})
"""Phases of PaddleJobs whose pods read. Pods of others are found by the claim they mount."""
RETRY = 2.0
"""Seconds until work is offered again to a server that did not answer."""


@dataclass(slots=True)
class _Memory:
    """Why a cache server did not take the work of the last pass: it did not answer, or it refused."""

    silent: str = ""
    refused: str = ""


class SampleSetController(Operator[Observed, Decision]):
    def __init__(
        self,
        client: Client,
        *,
        options: Options,
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
        self._interview = Interview(self._servers, self.clock)
        self._memory: dict[str, _Memory] = {}  # by uid
        self._sets = self.informer(SAMPLESETS)
        self.primary = (self._sets,)
        self._owned = {resource: self.informer(resource, label_selector=names.SAMPLE_SET) for resource in OWNED}
        self._pods = self.informer(PODS, label_selector=names.SAMPLE_SET, indexers={"set": by_label(names.SAMPLE_SET)})
        self._volumes = self.informer(PERSISTENTVOLUMES, everywhere=True, indexers={"handle": handle_of})
        self._nodes = self.informer(NODES, everywhere=True, transform=only_metadata)
        self._sample_jobs = self.informer(SAMPLEJOBS, indexers={"set": set_of_sample_job})
        self._paddle_jobs = self.informer(PADDLEJOBS, transform=only_reading, indexers={"set": set_of_paddle_job})
        self._watch()

    def _watch(self) -> None:
        watch = self.controller.watch
        watch(self._sets, expectations=self.expectations)
        for informer in self._owned.values():
            self.controller.watch_owned(informer, owner_kind=SAMPLESETS, expectations=self.expectations)
        watch(self._pods, map=set_by_label)
        watch(self._volumes, map=set_by_claim, expectations=self.expectations)
        watch(self._nodes, map=self._sets_on)
        watch(self._sample_jobs, map=keys_of(set_of_sample_job), expectations=self.expectations)
        watch(self._paddle_jobs, map=keys_of(set_of_paddle_job), when=status_moved)

    def _sets_on(self, node: Object) -> Iterable[Key]:
        """Sets whose label the node carries. Loss and return of nodes is seen on the pods."""
        values = (node["metadata"].get("labels") or {}).items()
        pods = {value for key, value in values if key.startswith("paddlepaddle.org/")}
        return [
            key_of(found)
            for found in self._sets.cache.list()
            if any(pod.startswith(names.runtime(found["metadata"]["name"])) for pod in pods)
        ]

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._servers.close()

    # One pass

    def decide(self, sample_set: Object, observed: Observed, now: float) -> Decision:
        return decide(sample_set, observed, now, self.options)

    async def act(self, sample_set: Object, observed: Observed, decision: Decision) -> float | None:
        memory = self._memory[sample_set["metadata"]["uid"]] = _Memory()
        if not await self._submit(decision, observed, memory):
            return RETRY
        return await super().act(sample_set, observed, decision)

    def refused(self, sample_set: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        return events.refused(failed)

    def forget(self, key: Key, uid: str) -> None:
        self._interview.forget(key)
        self._memory.pop(uid, None)

    async def _submit(self, decision: Decision, observed: Observed, memory: _Memory) -> bool:
        """Give work to servers, before the status that says so is written; False when one did not take it."""
        pods = {server.name: server for server in observed.runtimes}
        access = observed.access
        if access is None:
            return not decision.submit
        for pod, work in decision.submit.items():
            try:
                await self._servers.submit(Server(pod, pods[pod].ip, access), work)
            except ServerSilent as error:
                memory.silent = str(error)  # nothing is written: the next pass offers it again
                return False
            except ServerRefused as error:
                memory.refused = str(error)
                return False
        return True

    # What is known

    async def observe(self, sample_set: Object) -> Observed:
        key = key_of(sample_set)
        memory = self._memory.get(sample_set["metadata"]["uid"], _Memory())
        runtime = Key(key.namespace, names.runtime(key.name))
        begun = bool((sample_set.get("status") or {}).get("phase"))
        ours, taken = volume_of(self._volumes.cache, key)
        stateful_set = await self._named(STATEFULSETS, runtime) if begun else None
        secret = self._owned[SECRETS].cache.get(Key(key.namespace, names.runtime_keys(key.name)))
        observed = Observed(
            volume=ours,
            taken=taken,
            same_handle=same_handle(self._volumes.cache, ours),
            claim=await self._named(PERSISTENTVOLUMECLAIMS, key),
            service=await self._named(SERVICES, Key(key.namespace, names.service(key.name))) if begun else None,
            stateful_set=stateful_set,
            secret=secret,
            runtimes=runtimes(self._pods.cache, key, stateful_set, sample_set["metadata"]["uid"]),
            jobs=tuple(finished(job) for job in self._sample_jobs.cache.by_index("set", str(key))),
            readers=self._training(key),
            reads=tuple(
                report for job in self._paddle_jobs.cache.by_index("set", str(key)) for report in epochs_of(job)
            ),
            fresh_access=fresh_access() if begun and secret is None else {},
            trouble=self.refusal_of(sample_set) or memory.silent,
            refused=memory.refused,
        )
        try:
            settings = normalise(decode(sample_set)).settings
        except DecodeError:
            return observed  # `decide` will say so
        case = Case(sample_set, settings, decode(sample_set).status or SampleSetStatus(), observed, 0.0, self.options)
        if not case.known_driver:
            observed = replace(observed, juicefs=await self._has_juicefs())
            case = replace(case, observed=observed)
        labelled = {
            node["metadata"]["name"]: node["metadata"]["labels"][case.label]
            for node in self._nodes.cache.list()
            if case.label in (node["metadata"].get("labels") or {})
        }
        observed = replace(observed, nodes=labelled)
        if sample_set["metadata"].get("deletionTimestamp"):
            return await self._observe_leaving(replace(case, observed=observed), sample_set)
        observed = replace(observed, secrets=await self._secrets(case), missing_source=await self._missing_source(case))
        if case.phase == "Bound" and not any(server.ready for server in observed.runtimes):
            observed = replace(observed, warning=await self._last_warning(key))
        if case.phase in ("PartialReady", "Ready"):
            observed = replace(observed, cleared=await self._interview.is_cleared(case, key))
        return await self._interview.ask(replace(case, observed=observed), key)

    async def _named(self, resource: Resource, key: Key) -> Object | None:
        """From the cache; what does not carry our label, as other controllers leave it, is looked up by name."""
        found = self._owned[resource].cache.get(key)
        return found if found is not None else await self.client.find(resource, key.name, key.namespace)

    def _training(self, key: Key) -> tuple[str, ...]:
        """PaddleJobs that read the set. One that waits does not: it may wait for this very set."""
        jobs = self._paddle_jobs.cache.by_index("set", str(key))
        active = [job for job in jobs if phase_of((job.get("status") or {}).get("phase")) in READING]
        return tuple(sorted(f"PaddleJob {job['metadata']['name']}" for job in active))

    async def _has_juicefs(self) -> bool:
        try:
            await self.client.get(CSIDRIVERS, names.JUICEFS_DRIVER)
        except NotFound:
            return False
        return True

    async def _secrets(self, case: Case) -> dict[Secret, SecretView | None]:
        """The Secrets the set refers to, read when they matter: before it is bound and around an import.

        Those of other namespaces matter always: their grant may be withdrawn.
        """
        own, needed = case.settings.namespace, case.phase in ("", "Mount", "Syncing", "SyncFailed")
        wanted = [secret for secret in case.secrets if needed or grants.is_foreign(secret, own)]
        return {secret: await read_secret(self.client, secret, namespace=own) for secret in wanted}

    async def _missing_source(self, case: Case) -> str:
        """The folder of this machine that is still to be imported, if it does not exist; else empty."""
        source, sources = case.settings.uri, self.options.sources
        if not case.imports or sources is None or not source.startswith("file://"):
            return ""
        if transfer.source_problem(source, sources):
            return ""  # whether it exists is nobody's to know who may not read it
        folder = transfer.folder_of(source)
        return "" if await asyncio.to_thread(self.options.exists, folder) else folder

    async def _last_warning(self, key: Key) -> tuple[str, str] | None:
        pod = names.runtime_pod(key.name, 0)
        selector = f"involvedObject.name={pod},involvedObject.kind=Pod,type=Warning"
        try:
            warnings = (await self.client.list(EVENTS, key.namespace, field_selector=selector)).items
        except ApiError:
            return None  # a nicety: the condition says what is awaited all the same
        newest = max(warnings, key=lambda event: str(event.get("lastTimestamp") or ""), default=None)
        return (str(newest.get("reason")), without_ids(str(newest.get("message")))) if newest else None

    async def _observe_leaving(self, case: Case, sample_set: Object) -> Observed:
        """Who still uses a set that is to go, and whether its caches are empty."""
        key = key_of(sample_set)
        pods = [pod for pod in (await self.client.list(PODS, key.namespace)).items if uses_claim(pod, key.name)]
        using, ended = ([_called(pod) for pod in pods if is_over(pod) is over] for over in (False, True))
        readers = (*case.observed.readers, *sorted(using))
        cleared = not readers and await self._interview.is_cleared(case, key)
        return replace(case.observed, readers=readers, holders=tuple(sorted(ended)), cleared=cleared)


def _called(pod: Object) -> str:
    return f"Pod {pod['metadata']['name']}"
