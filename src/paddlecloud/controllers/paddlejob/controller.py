"""The PaddleJob controller: what it observes of a job, and what it does besides carrying the plan out.

All memory it has of its own is a convenience (when a status was last written, why a pass failed): losing it in a crash
costs nothing but a repeated event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from paddlecloud.api.names import ROLES
from paddlecloud.controllers import engines
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.caches import GANGS, Caches, block
from paddlecloud.controllers.paddlejob.decision import gang_formation, last_valid_spec, refusal
from paddlecloud.controllers.paddlejob.decision.case import JobOptions
from paddlecloud.controllers.paddlejob.decision.decide import decide
from paddlecloud.controllers.paddlejob.failure import mount_events
from paddlecloud.controllers.paddlejob.failure.logsilence import newest_line
from paddlecloud.controllers.paddlejob.gang import podgroup, scheduler_message
from paddlecloud.controllers.paddlejob.observe import Observed, view
from paddlecloud.controllers.paddlejob.pods import ignored, ports
from paddlecloud.controllers.paddlejob.reports.listener import ListenAddress
from paddlecloud.controllers.paddlejob.reports.receiver import ReportReceiver
from paddlecloud.controllers.paddlejob.status import LATER, SOON, drifted, essence, hold_back
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.plan import Plan, PlanFailed, PlannedEvent, PlanResult
from paddlecloud.kube.resource import (
    NODES,
    PADDLEJOBS,
    PODS,
    SAMPLESETS,
    Key,
    Object,
    Resource,
    controller_of,
    key_of,
    resource_of,
)

OPTIONAL = (podgroup.VOLCANO.resource, SAMPLESETS, NODES)
"""Kinds that not every API server has, or not everybody may read: what is expected of one that says nothing."""

COMPONENT = "paddlejob-controller"


@dataclass(slots=True)
class _Memory:
    """What is remembered of one job between passes."""

    written: float = 0.0
    drifts: int = 0
    refusal: refusal.Refusal | None = None
    gang_asked: float = 0.0
    gang_message: str = ""
    mounts_asked: float = 0.0
    mount_events: tuple[Object, ...] = ()
    gone: dict[str, Object] = field(default_factory=dict)
    """Pods that were deleted since the last decision, by name."""
    last_log_line: float | None = None


async def served_kinds(client: Client) -> list[Resource]:
    """Which of the optional kinds this API server has; what `served` should be on a cluster."""
    return await engines.served(client, own=PADDLEJOBS, optional={**GANGS, **dict.fromkeys(OPTIONAL)})


class PaddleJobController(Operator[Observed, Plan]):
    """`run` works until cancelled. `served` names the optional kinds the API server has; others are not watched.

    With `reports` pods get an address to report their progress to, and it is received there.
    """

    def __init__(
        self,
        client: Client,
        *,
        options: JobOptions,
        namespace: str | None = None,
        clock: Clock | None = None,
        workers: int = 8,
        hooks: Hooks | None = None,
        served: Collection[Resource] = OPTIONAL,
        reports: ListenAddress | None = None,
    ) -> None:
        super().__init__(
            client, "paddlejob", component=COMPONENT, namespace=namespace, clock=clock, workers=workers, hooks=hooks
        )
        gangs = [resource for resource in GANGS if resource in served]
        self.options = replace(options, gangs=tuple(GANGS[resource] for resource in gangs))
        self._memory: dict[str, _Memory] = {}  # by uid
        self._ports = ports.Held()
        self._caches = Caches(self.informer, served)
        self.primary = (self._caches.jobs,)
        self._reports = reports
        self._receiver = ReportReceiver(
            client, clock=self.clock, job_of=self._caches.jobs.cache.get, wake=self._requeue_for_report
        )
        self._watch()

    def _watch(self) -> None:
        caches = self._caches
        self.controller.watch(caches.jobs, expectations=self.expectations)
        for resource, informer in caches.owned.items():
            self.controller.watch_owned(informer, owner_kind=PADDLEJOBS, expectations=self.expectations)
            if resource in GANGS:  # also those that users made, which nobody owns
                self.controller.watch(informer)
        caches.owned[PODS].on_change(self._note_deleted_pod)
        self.controller.watch(caches.claims, map=caches.readers_of)
        if caches.sets is not None:
            self.controller.watch(caches.sets, map=caches.readers_of)
        if caches.nodes is not None:
            self.controller.watch(caches.nodes, map=lambda node: ())  # only waited for

    def _note_deleted_pod(self, old: Object | None, new: Object | None) -> None:
        """What was last known of a pod that vanished: its node, and whether it was about to be evicted."""
        if new is not None or old is None or (owner := controller_of(old)) is None:
            return
        job = self._caches.jobs.cache.get(Key(key_of(old).namespace, owner["name"]))  # not one of another namespace
        if job is not None and job["metadata"]["uid"] == owner["uid"] and owner["uid"] in self._memory:
            self._memory[owner["uid"]].gone[old["metadata"]["name"]] = old

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            if self._reports is not None:
                url = await stack.enter_async_context(self._receiver.open(self._reports))
                self.options = replace(self.options, report_url=url)
            await super().run()

    def _requeue_for_report(self, key: Key) -> None:
        """A report came in: look at the job when its status may be written again."""
        job = self._caches.jobs.cache.get(key)
        memory = self._memory.get(job["metadata"]["uid"]) if job is not None else None
        written = memory.written if memory is not None else 0.0
        first = job is not None and self._receiver.reports_first(job)
        self.controller.queue.add_after(key, written + (SOON if first else LATER) - self.clock.now())

    # One pass

    async def observe(self, job: Object) -> Observed:
        """What the caches hold, what only this controller remembers, and what has to be asked for."""
        memory = self._remember(job)
        valid = last_valid_spec.as_run(job)
        observed = self._known(valid, memory)
        observed = await self._read_logs(valid, observed, memory)
        observed = await self._ask_about_mounts(key_of(job), observed, memory)
        return await self._ask_about_gang(key_of(job), observed, memory)

    def decide(self, job: Object, observed: Observed, now: float) -> Plan:
        return decide(job, observed, now, self.options)

    async def decided(self, job: Object, observed: Observed) -> Plan:
        """In a thread where the decision is about thousands of pods: a spec of few bytes may ask for them."""
        if max(len(observed.pods), _wanted(last_valid_spec.as_run(job))) <= gang_formation.LARGE:
            return await super().decided(job, observed)
        plan = await asyncio.to_thread(self.decide, job, observed, self.clock.now())
        port = (plan.status or {}).get("port")
        chosen = port != (job.get("status") or {}).get("port")
        return Plan(after=0.0) if chosen and port in self._ports_of_others(job) else plan  # another job was faster

    async def act(self, job: Object, observed: Observed, plan: Plan) -> float | None:
        memory = self._remember(job)
        for pod in observed.gone:
            memory.gone.pop(pod.name, None)
        self._hold_status_back(job, plan, memory)
        self._ports.note(job, plan.status)
        makes_pods = any(made["kind"] == PODS.kind for made in plan.create)
        if self.options.report_url and makes_pods:
            await self._equip(job)
        outcome = await self.carry_out(job, plan)
        await self._adopt(plan, outcome)
        if text := ignored.sentence(plan.create, outcome.created):
            await self.recorder.record(job, ignored.REASON, text, type="Warning")
        if makes_pods:
            memory.refusal = None
        if mount_events.unexplained(observed.pods):
            plan.requeue_after(mount_events.ASK_EVERY)
        return plan.after

    def refused(self, job: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        """Between two attempts the gang holds nothing, and passes succeed: the same refusal is still not repeated."""
        memory, generation = self._remember(job), job["metadata"].get("generation") or 0
        last = memory.refusal
        memory.refusal = refusal.after(failed, last, generation=generation, now=self.clock.now())
        return [] if last is not None and last.text == str(failed) else super().refused(job, failed)

    def rest(self, observed: Observed) -> float:
        """Passes over thousands of pods cost something."""
        pods = len(observed.pods)
        return min(1.0, pods * 1e-4) if pods > 200 else 0.0

    def forget(self, key: Key, uid: str) -> None:
        self._memory.pop(uid, None)
        self._receiver.forget(uid)
        self._ports.forget(uid)

    async def _adopt(self, plan: Plan, outcome: PlanResult) -> None:
        """Mark what the original operator made for this job under the same names: unmarked, we would not watch it."""
        wanted = {(obj["kind"], obj["metadata"]["name"]): obj["metadata"] for obj in plan.create}
        for found in outcome.present:
            meta = found["metadata"]
            if names.JOB in (meta.get("labels") or {}):
                continue  # ours, and the cache was late
            marks = wanted[found["kind"], meta["name"]]
            change = {"metadata": {key: marks[key] for key in ("labels", "annotations") if key in marks}}
            await self.client.patch(resource_of(found), meta["name"], change, namespace=meta["namespace"])

    async def _equip(self, job: Object) -> None:
        """Pods report with a token from a Secret. Should it be refused, they train all the same, and silently."""
        try:
            await self._receiver.equip(job)
        except ApiError as error:
            text = f"pods cannot report their progress: {error.message}"
            await self.recorder.record(job, "ReportingOff", text, type="Warning")

    async def _read_logs(self, job: Object, observed: Observed, memory: _Memory) -> Observed:
        """Ask for the last line of a running job that may be silent for so long only, and has been."""
        now = self.clock.now()
        limit = block(job, "hangDetection").get("logSilenceSeconds")
        if not isinstance(limit, int) or (job.get("status") or {}).get("phase") != "Running":
            memory.last_log_line = None
            return observed
        if memory.last_log_line is None:
            memory.last_log_line = now  # it began to run, or we did
        elif now - memory.last_log_line >= limit:
            namespace = job["metadata"]["namespace"]
            newest = await newest_line(self.client, namespace, observed.pods, since=limit)
            memory.last_log_line = min(now, newest) if newest is not None else memory.last_log_line
        return replace(observed, last_log_line=memory.last_log_line)

    async def _ask_about_gang(self, key: Key, observed: Observed, memory: _Memory) -> Observed:
        """Find out what a scheduler has against a group that it leaves waiting without a word."""
        if not any(scheduler_message.is_silent(group) for group in observed.pod_groups.values()):
            return observed
        now = self.clock.monotonic()
        memory.gang_asked = memory.gang_asked or now  # most are let in at once, and nothing needs to be asked
        if now - memory.gang_asked >= scheduler_message.ASK_EVERY:
            memory.gang_asked = now
            memory.gang_message = await scheduler_message.read(self.client, key)
        return replace(observed, gang_message=memory.gang_message)

    async def _ask_about_mounts(self, key: Key, observed: Observed, memory: _Memory) -> Observed:
        """Find out whether pods that are long in creation lack a volume: Kubernetes reports that in Events alone."""
        waiting = mount_events.unexplained(observed.pods)
        now = self.clock.monotonic()
        if not waiting:
            memory.mounts_asked, memory.mount_events = 0.0, ()
            return observed
        memory.mounts_asked = memory.mounts_asked or now  # most are created at once, and nothing needs to be asked
        if now - memory.mounts_asked >= mount_events.ASK_EVERY:
            memory.mounts_asked = now
            memory.mount_events = await mount_events.read(self.client, key.namespace, waiting)
        return replace(observed, pods=mount_events.explained(observed.pods, memory.mount_events))

    def _ports_of_others(self, job: Object) -> frozenset[int]:
        return self._ports.by_others(job["metadata"]["uid"], self._caches.jobs.cache.by_index("ports", ports.HELD))

    def _remember(self, job: Object) -> _Memory:
        return self._memory.setdefault(job["metadata"]["uid"], _Memory())

    def _hold_status_back(self, job: Object, plan: Plan, memory: _Memory) -> None:
        """Hold a status back that says nothing urgent, and note when it goes out."""
        if plan.status is None:
            return
        now = self.clock.now()
        old = job.get("status") or {}
        workers = int((plan.status.get("worker") or {}).get("ready", "0/0").partition("/")[2] or 0)
        wait = hold_back(old, plan.status, written=memory.written, drifts=memory.drifts, workers=workers, now=now)
        if wait > 0 and not plan.status_first:
            plan.status = None
            plan.requeue_after(wait)
            return
        if essence(old) != essence(plan.status):
            memory.drifts = 0
        elif drifted(old, plan.status):
            memory.drifts += 1
        memory.written = now

    def _known(self, job: Object, memory: _Memory) -> Observed:
        gone = [view(pod) for pod in memory.gone.values()]
        refused = memory.refusal
        trouble = self.refusal_of(job) or (refused.text if refused is not None else "")
        if refused is not None and refused.generation != job["metadata"].get("generation"):
            refused = None  # another spec may be welcome
        return replace(
            self._caches.observe(job),
            gone=tuple(pod for pod in gone if pod is not None),
            ports_in_use=self._ports_of_others(job),
            reports=self._receiver.reports(job) if self.options.report_url else None,
            trouble=trouble,
            retry_at=refused.retry_at if refused is not None else None,
        )


def _wanted(job: Object) -> int:
    """The pods that a spec asks for, whether or not it is valid."""
    replicas = [block(job, role).get("replicas") for role in ROLES]
    return sum(number for number in replicas if isinstance(number, int))
