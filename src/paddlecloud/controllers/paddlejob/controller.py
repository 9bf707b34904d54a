"""The PaddleJob controller's hands: it gathers what the caches hold, lets `decide` judge, and carries the plan out.

All memory it has of its own is a convenience (when a status was last written, why a pass failed): losing it in a crash
costs nothing but a repeated sentence.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from paddlecloud.controllers import engines
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.paddlejob import data, gang, gangnews, names, ports, refusal
from paddlecloud.controllers.paddlejob.case import Options
from paddlecloud.controllers.paddlejob.channel import Place
from paddlecloud.controllers.paddlejob.decide import decide
from paddlecloud.controllers.paddlejob.listening import Ear
from paddlecloud.controllers.paddlejob.logsilence import newest_line
from paddlecloud.controllers.paddlejob.observe import Observed, PodView, view
from paddlecloud.controllers.paddlejob.status import LATER, drifted, essence, hold_back
from paddlecloud.kube.cache import by_label, by_owner
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.plan import Outcome, Plan, PlanFailed, carry_out
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    NODES,
    PADDLEJOBS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SAMPLESETS,
    SERVICES,
    Key,
    Object,
    Resource,
    controller_of,
    key_of,
    resource_of,
)

GANGS = {engine.resource: engine for engine in gang.ENGINES}
OPTIONAL = (gang.VOLCANO.resource, SAMPLESETS, NODES)
"""Kinds that not every API server has, or not everybody may read: what is expected of one that says nothing."""

log = logging.getLogger(__name__)

OWNED = (PODS, CONFIGMAPS, SERVICES)
COMPONENT = "paddlejob-controller"


@dataclass(slots=True)
class _Memory:
    """What is remembered of one job between passes."""

    uid: str
    written: float = 0.0
    drifts: int = 0
    trouble: str = ""
    refusal: refusal.Refusal | None = None
    gang_asked: float = 0.0
    gang_told: str = ""
    gone: dict[str, Object] = field(default_factory=dict)
    """Pods that were deleted since the last decision, by name."""
    rests_until: float = 0.0
    heard: float | None = None


async def served_kinds(client: Client) -> list[Resource]:
    """Which of the optional kinds this API server has; what `served` should be on a cluster."""
    return await engines.served(client, own=PADDLEJOBS, optional={**GANGS, **dict.fromkeys(OPTIONAL)})


class PaddleJobController(Operator):
    """`run` works until cancelled. `served` names the optional kinds the API server has; others are not watched.

    With `reports` pods are told where to report their progress, and are listened to there.
    """

    def __init__(
        self,
        client: Client,
        *,
        options: Options | None = None,
        namespace: str | None = None,
        clock: Clock | None = None,
        workers: int = 8,
        hooks: Hooks | None = None,
        served: Collection[Resource] = OPTIONAL,
        reports: Place | None = None,
    ) -> None:
        super().__init__(
            client, "paddlejob", component=COMPONENT, namespace=namespace, clock=clock, workers=workers, hooks=hooks
        )
        gangs = [resource for resource in GANGS if resource in served]
        self.options = replace(options or Options(), gangs=tuple(GANGS[resource] for resource in gangs))
        self._memory: dict[Key, _Memory] = {}
        self._ports = ports.Held()
        self._jobs = self.informer(PADDLEJOBS, indexers={"data": _data_of, "ports": ports.holders})
        self._owned = {
            resource: self.informer(
                resource,
                label_selector=None if resource in GANGS else names.JOB,
                indexers={"owner": by_owner, "job": by_label(names.JOB)},
            )
            for resource in (*OWNED, *gangs)
        }
        self._claims = self.informer(PERSISTENTVOLUMECLAIMS)
        self._sets = self.informer(SAMPLESETS) if SAMPLESETS in served else None
        self._nodes = (
            self.informer(NODES, everywhere=True, transform=_only_labels, indexers={"labels": data.labels_of})
            if NODES in served
            else None
        )
        self._reports = reports
        self._ear = Ear(client, clock=self._clock, job_of=self._jobs.cache.get, wake=self._has_news)
        self._watch()

    def _watch(self) -> None:
        self.controller.watch(self._jobs, expectations=self._expectations)
        for resource, informer in self._owned.items():
            self.controller.watch_owned(informer, owner_kind=PADDLEJOBS, expectations=self._expectations)
            if resource in GANGS:  # also those that users made, which nobody owns
                self.controller.watch(informer)
        self._owned[PODS].on_change(self._note_the_gone)
        self.controller.watch(self._claims, map=self._readers_of)
        if self._sets is not None:
            self.controller.watch(self._sets, map=self._readers_of)
        if self._nodes is not None:
            self.controller.watch(self._nodes, map=lambda node: ())  # wakes nobody, but work waits until it is known

    def _note_the_gone(self, old: Object | None, new: Object | None) -> None:
        """What was last known of a pod that vanished: its node, and whether it was about to be evicted."""
        if new is not None or old is None or (owner := controller_of(old)) is None:
            return
        memory = self._memory.get(Key(old["metadata"]["namespace"], owner["name"]))
        if memory is not None and memory.uid == owner["uid"]:
            memory.gone[old["metadata"]["name"]] = old

    def _readers_of(self, source: Object) -> Iterable[Key]:
        return [key_of(job) for job in self._jobs.cache.by_index("data", str(key_of(source)))]

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            if self._reports is not None:
                url = await stack.enter_async_context(self._ear.open(self._reports))
                self.options = replace(self.options, report_url=url)
            await super().run()

    def _has_news(self, key: Key) -> None:
        """A report came in: look at the job when its status may be written again."""
        memory = self._memory.get(key)
        written = memory.written if memory is not None else 0.0
        self.controller.queue.add_after(key, written + LATER - self._clock.now())

    # One pass

    async def reconcile(self, key: Key) -> float | None:
        job = self._jobs.cache.get(key)
        if job is None:
            self._expectations.forget(key)
            if (gone := self._memory.pop(key, None)) is not None:
                self._ear.forget(gone.uid)
                self._ports.forget(gone.uid)
            return None
        if (wait := self._expectations.pending(key)) is not None:
            return wait  # our own writes are still on their way back; they bring the next pass
        memory = self._remember(key, job["metadata"]["uid"])
        now = self._clock.now()
        if (rest := memory.rests_until - self._clock.monotonic()) > 0:
            return rest
        observed = self.observe(job)
        memory.rests_until = self._clock.monotonic() + _rest(len(observed.pods))
        observed = await self._listen(job, observed, memory, now)
        observed = await self._ask_about_gang(key, observed, memory)
        plan = decide(job, observed, now, self.options)
        for pod in observed.gone:
            memory.gone.pop(pod.name, None)
        self._pace(job, plan, memory, now)
        self._ports.note(job, plan.status)
        if self.options.report_url and any(made["kind"] == PODS.kind for made in plan.create):
            await self._equip(job)
        try:
            outcome = await carry_out(
                plan, self._client, owner=job, recorder=self._recorder, expectations=self._expectations
            )
            await self._adopt(plan, outcome)
        except PlanFailed as failed:
            generation = job["metadata"].get("generation") or 0
            memory.refusal = refusal.after(failed, memory.refusal, generation=generation, now=now)
            await self._complain(job, memory, failed)
            raise
        if memory.refusal is None or any(made["kind"] == PODS.kind for made in plan.create):
            memory.trouble, memory.refusal = "", None
        return plan.after

    async def _adopt(self, plan: Plan, outcome: Outcome) -> None:
        """Mark what the original operator made for this job under the same names: unmarked, we would not watch it."""
        wanted = {(obj["kind"], obj["metadata"]["name"]): obj["metadata"] for obj in plan.create}
        for found in outcome.present:
            meta = found["metadata"]
            if names.JOB in (meta.get("labels") or {}):
                continue  # ours, and the cache was late
            marks = wanted[found["kind"], meta["name"]]
            change = {"metadata": {key: marks[key] for key in ("labels", "annotations") if key in marks}}
            await self._client.patch(resource_of(found), meta["name"], change, namespace=meta["namespace"])

    async def _equip(self, job: Object) -> None:
        """Pods report with a token from a Secret. Should it be refused, they train all the same, and silently."""
        try:
            await self._ear.equip(job)
        except ApiError as error:
            text = f"pods cannot report their progress: {error.message}"
            await self._recorder.record(job, "ReportingOff", text, type="Warning")

    async def _listen(self, job: Object, observed: Observed, memory: _Memory, now: float) -> Observed:
        """Ask for the last line of a running job that may be silent for so long only, and has been."""
        limit = _block(job, "hangDetection").get("logSilenceSeconds")
        if not isinstance(limit, int) or (job.get("status") or {}).get("phase") != "Running":
            memory.heard = None
            return observed
        if memory.heard is None:
            memory.heard = now  # it began to run, or we did
        elif now - memory.heard >= limit:
            namespace = job["metadata"]["namespace"]
            newest = await newest_line(self._client, namespace, observed.pods, since=limit)
            memory.heard = min(now, newest) if newest is not None else memory.heard
        return replace(observed, heard=memory.heard)

    async def _ask_about_gang(self, key: Key, observed: Observed, memory: _Memory) -> Observed:
        """Find out what a scheduler has against a group that it leaves waiting without a word."""
        if not any(gangnews.is_silent(group) for group in observed.pod_groups.values()):
            return observed
        now = self._clock.monotonic()
        memory.gang_asked = memory.gang_asked or now  # most are let in at once, and nothing needs to be asked
        if now - memory.gang_asked >= gangnews.ASK_EVERY:
            memory.gang_asked = now
            memory.gang_told = await gangnews.told(self._client, key)
        return replace(observed, gang_told=memory.gang_told)

    def _remember(self, key: Key, uid: str) -> _Memory:
        known = self._memory.get(key)
        if known is None or known.uid != uid:
            if known is not None:
                self._ear.forget(known.uid)
                self._ports.forget(known.uid)
            known = self._memory[key] = _Memory(uid)
        return known

    def _pace(self, job: Object, plan: Plan, memory: _Memory, now: float) -> None:
        """Hold a status back that says nothing urgent, and note when it goes out."""
        if plan.status is None:
            return
        old = job.get("status") or {}
        workers = int((plan.status.get("worker") or {}).get("ready", "0/0").partition("/")[2] or 0)
        wait = hold_back(old, plan.status, written=memory.written, drifts=memory.drifts, workers=workers, now=now)
        if wait > 0 and not plan.status_first:
            plan.status = None
            plan.after = wait if plan.after is None else min(plan.after, wait)
            return
        if essence(old) != essence(plan.status):
            memory.drifts = 0
        elif drifted(old, plan.status):
            memory.drifts += 1
        memory.written = now

    async def _complain(self, job: Object, memory: _Memory, failed: PlanFailed) -> None:
        """A refusal is said on the job itself: at once as an event, and by the next pass in its status."""
        text = str(failed)
        if text != memory.trouble:
            memory.trouble = text
            await self._recorder.record(job, "FailedCreate", text, type="Warning")

    # What the caches hold

    def observe(self, job: Object) -> Observed:
        uid, key = job["metadata"]["uid"], key_of(job)
        pods = [view(pod) for pod in self._owned[PODS].cache.by_index("owner", uid)]
        gone = [view(pod) for pod in self._remember(key, uid).gone.values()]
        named = {resource: informer.cache.get(key) for resource, informer in self._owned.items() if resource != PODS}
        ours = {resource: obj for resource, obj in named.items() if obj is not None and _owner_uid(obj) == uid}
        leftovers, blockers = self._in_the_way(key, uid, named)
        ref = _sample_set_of(job)
        memory = self._remember(key, uid)
        refused = memory.refusal
        if refused is not None and refused.generation != job["metadata"].get("generation"):
            refused = None  # another spec may be welcome
        return Observed(
            pods=tuple(sorted((pod for pod in pods if pod is not None), key=_by_place)),
            gone=tuple(pod for pod in gone if pod is not None),
            config=ours.get(CONFIGMAPS),
            service=ours.get(SERVICES),
            pod_groups={resource: obj for resource, obj in named.items() if resource in GANGS and obj is not None},
            claim=self._claims.cache.get(ref.claim) if ref else None,
            sample_set=self._sets.cache.get(ref.key) if ref and self._sets else None,
            cache_nodes=self._cache_nodes(job, ref) if ref else {},
            leftovers=leftovers,
            blockers=blockers,
            ports_in_use=self._ports.by_others(uid, self._jobs.cache.by_index("ports", ports.HELD)),
            told=self._ear.told(job) if self.options.report_url else None,
            trouble=memory.trouble,
            retry_at=refused.retry_at if refused is not None else None,
        )

    def _in_the_way(self, key: Key, uid: str, named: dict[Resource, Object | None]) -> tuple[int, tuple[str, ...]]:
        """What holds the names we need: leftovers of an earlier job will go by themselves, others will not."""
        pods = self._owned[PODS].cache.by_index("job", key.name)
        others = [pod for pod in pods if pod["metadata"]["namespace"] == key.namespace]
        others += [obj for resource, obj in named.items() if obj is not None and resource not in GANGS]
        foreign = [obj for obj in others if _owner_uid(obj) != uid]
        mortal = [obj for obj in foreign if (controller_of(obj) or {}).get("kind") == PADDLEJOBS.kind]
        blockers = tuple(f"{obj['kind']} {obj['metadata']['name']}" for obj in foreign if obj not in mortal)
        return len(mortal), blockers

    def _cache_nodes(self, job: Object, ref: _SampleSet) -> dict[int, tuple[str, str]]:
        if self._nodes is None:
            return {}
        sample_set = self._sets.cache.get(ref.key) if self._sets else None
        known = self._nodes.cache
        replicas = _block(job, "worker").get("replicas")
        count = replicas if isinstance(replicas, int) else 1
        labels = data.partition_labels(ref.key.name, sample_set, self._claims.cache.get(ref.claim), count)
        return {index: label for index, label in labels.items() if known.by_index("labels", "=".join(label))}


def _rest(pods: int) -> float:
    """Seconds before a job is looked at again: passes over thousands of pods cost something."""
    return min(1.0, pods * 1e-4) if pods > 200 else 0.0


def _by_place(pod: PodView) -> tuple[str, int]:
    return pod.role, pod.index


def _owner_uid(obj: Object) -> str:
    return str((controller_of(obj) or {}).get("uid", ""))


class _SampleSet(NamedTuple):
    """What a job's `sampleSetRef` points at: the set, and the claim of its name in the job's own namespace."""

    key: Key
    claim: Key


def _block(job: Object, name: str) -> Object:
    """A mapping in the spec; empty when it is not there or is nonsense, which `decide` will name."""
    spec = job.get("spec")
    block = spec.get(name) if isinstance(spec, dict) else None
    return block if isinstance(block, dict) else {}


def _sample_set_of(job: Object) -> _SampleSet | None:
    ref = _block(job, "sampleSetRef")
    name = ref.get("name")
    if not name:
        return None
    own = job["metadata"].get("namespace", "")
    return _SampleSet(Key(str(ref.get("namespace") or own), str(name)), Key(own, str(name)))


def _data_of(job: Object) -> Iterable[str]:
    """Index of jobs by the data they read."""
    ref = _sample_set_of(job)
    return {str(ref.key), str(ref.claim)} if ref else ()


def _only_labels(node: Object) -> Object:
    """Of nodes nothing but labels is needed, and there may be thousands."""
    meta = node["metadata"]
    kept = {name: meta[name] for name in ("name", "uid", "resourceVersion", "labels") if name in meta}
    node["metadata"] = kept
    node.pop("spec", None)
    node.pop("status", None)
    return node
