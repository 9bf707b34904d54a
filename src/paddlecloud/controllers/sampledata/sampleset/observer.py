"""Everything that is observed of a set in one pass: its caches, and what has to be asked for (`lookups`).

The set is decoded here, once. What the controller itself remembers is added by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from paddlecloud.controllers.operator import MakeInformer
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import lookups
from paddlecloud.controllers.sampledata.sampleset.case import Observed, Parsed, SampleSetCase, SampleSetOptions
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import (
    cache_servers,
    epochs_of,
    handle_of,
    is_done_to,
    only_metadata,
    only_reading,
    read_secret,
    same_handle,
    sample_job_view,
    set_of_paddle_job,
    set_of_sample_job,
    training,
    uses_claim,
    volume_of,
    without_ids,
)
from paddlecloud.controllers.sampledata.servers.access import fresh as fresh_access
from paddlecloud.controllers.sampledata.servers.polling import ServerPoller
from paddlecloud.kube.cache import by_label
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.pods import is_finished
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

OWNED = (PERSISTENTVOLUMECLAIMS, SECRETS, SERVICES, STATEFULSETS)


class Observer:
    def __init__(
        self, client: Client, informer: MakeInformer, polling: ServerPoller, options: SampleSetOptions
    ) -> None:
        self._client = client
        self._polling = polling
        self._options = options
        self.sets = informer(SAMPLESETS)
        self.owned = {resource: informer(resource, label_selector=names.SAMPLE_SET) for resource in OWNED}
        self.pods = informer(PODS, label_selector=names.SAMPLE_SET, indexers={"set": by_label(names.SAMPLE_SET)})
        self.volumes = informer(PERSISTENTVOLUMES, everywhere=True, indexers={"handle": handle_of})
        self.nodes = informer(NODES, everywhere=True, transform=only_metadata)
        self.sample_jobs = informer(SAMPLEJOBS, indexers={"set": set_of_sample_job})
        self.paddle_jobs = informer(PADDLEJOBS, transform=only_reading, indexers={"set": set_of_paddle_job})

    def sets_on(self, node: Object) -> Iterable[Key]:
        """Sets whose label the node carries. Loss and return of nodes is seen on the pods."""
        values = (node["metadata"].get("labels") or {}).items()
        pods = {value for key, value in values if key.startswith("paddlepaddle.org/")}
        return [
            key_of(found)
            for found in self.sets.cache.list()
            if any(pod.startswith(names.runtime(found["metadata"]["name"])) for pod in pods)
        ]

    async def observe(self, sample_set: Object) -> Observed:
        key, parsed = key_of(sample_set), Parsed.of(sample_set)
        observed = replace(await self._objects(sample_set, key), parsed=parsed)
        if parsed.decoded is None:
            return observed  # `decide` says so
        case = SampleSetCase(sample_set, parsed.settings, parsed.status, observed, 0.0, self._options)
        if not case.known_driver:
            case = _knowing(case, juicefs=await self._has_juicefs())
        case = _knowing(case, nodes=self._labelled(case.label))
        if sample_set["metadata"].get("deletionTimestamp"):
            return await self._observe_deleted(case, key)
        own = case.settings.namespace
        secrets = {s: await read_secret(self._client, s, namespace=own) for s in lookups.secrets(case)}
        case = _knowing(case, secrets=secrets, **await self._faulty(lookups.source_folder(case)))
        if lookups.needs_retained(case):
            case = _knowing(case, retained=await asyncio.to_thread(self._options.retained, own, case.settings.name))
        if lookups.needs_last_warning(case):
            case = _knowing(case, warning=await self._last_warning(key))
        if lookups.needs_clearing(case):
            case = _knowing(case, cleared=await self._polling.is_cleared(case, key))
        return await self._polling.ask(case, key)

    async def _objects(self, sample_set: Object, key: Key) -> Observed:
        """What the set owns and what uses it."""
        begun = bool((sample_set.get("status") or {}).get("phase"))
        volume, taken = volume_of(self.volumes.cache, key)
        stateful_set = await self._named(STATEFULSETS, Key(key.namespace, names.runtime(key.name))) if begun else None
        secret = self.owned[SECRETS].cache.get(Key(key.namespace, names.runtime_keys(key.name)))
        jobs = self.paddle_jobs.cache.by_index("set", str(key))
        done = self.sample_jobs.cache.by_index("set", str(key))
        return Observed(
            volume=volume,
            taken=taken,
            same_handle=same_handle(self.volumes.cache, volume),
            claim=await self._named(PERSISTENTVOLUMECLAIMS, key),
            service=await self._named(SERVICES, Key(key.namespace, names.service(key.name))) if begun else None,
            stateful_set=stateful_set,
            secret=secret,
            cache_servers=cache_servers(self.pods.cache, key, stateful_set, sample_set["metadata"]["uid"]),
            jobs=tuple(sample_job_view(job) for job in done if is_done_to(job, sample_set)),
            readers=training(jobs),
            reads=tuple(report for job in jobs for report in epochs_of(job)),
            fresh_access=fresh_access() if begun and secret is None else {},
        )

    async def _named(self, resource: Resource, key: Key) -> Object | None:
        """From the cache; what does not carry our label, as other controllers leave it, is looked up by name."""
        found = self.owned[resource].cache.get(key)
        return found if found is not None else await self._client.find(resource, key.name, key.namespace)

    def _labelled(self, label: str) -> dict[str, str]:
        nodes = [node["metadata"] for node in self.nodes.cache.list()]
        return {node["name"]: node["labels"][label] for node in nodes if label in (node.get("labels") or {})}

    async def _has_juicefs(self) -> bool:
        try:
            await self._client.get(CSIDRIVERS, names.JUICEFS_DRIVER)
        except NotFound:
            return False
        return True

    async def _faulty(self, folder: str) -> dict[str, str]:
        """What is wrong with a folder that is to be imported: this machine does not have it, or it is a file."""
        if not folder:
            return {}
        if not await asyncio.to_thread(self._options.exists, folder):
            return {"missing_source": folder}
        return {"file_source": folder} if await asyncio.to_thread(self._options.is_file, folder) else {}

    async def _last_warning(self, key: Key) -> tuple[str, str] | None:
        pod = names.runtime_pod(key.name, 0)
        selector = f"involvedObject.name={pod},involvedObject.kind=Pod,type=Warning"
        try:
            warnings = (await self._client.list(EVENTS, key.namespace, field_selector=selector)).items
        except ApiError:
            return None  # a nicety: the condition says what is awaited all the same
        newest = max(warnings, key=lambda event: str(event.get("lastTimestamp") or ""), default=None)
        return (str(newest.get("reason")), without_ids(str(newest.get("message")))) if newest else None

    async def _observe_deleted(self, case: SampleSetCase, key: Key) -> Observed:
        """What still uses a set that is being deleted, and whether its caches are empty."""
        pods = [pod for pod in (await self._client.list(PODS, key.namespace)).items if uses_claim(pod, key.name)]
        using, ended = (
            [f"Pod {pod['metadata']['name']}" for pod in pods if is_finished(pod) is over] for over in (False, True)
        )
        readers = (*case.observed.readers, *sorted(using))
        cleared = not readers and await self._polling.is_cleared(case, key)
        return replace(case.observed, readers=readers, holders=tuple(sorted(ended)), cleared=cleared)


def _knowing(case: SampleSetCase, **found: object) -> SampleSetCase:
    """The case with more observed."""
    return replace(case, observed=replace(case.observed, **found))  # type: ignore[arg-type]
