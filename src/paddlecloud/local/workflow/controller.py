"""The workflow controller of a platform: its caches, and what it observes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from paddlecloud.api.argo_nodes import BadPacking, is_packed, unpacked
from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.errors import ApiError, BadRequest, Forbidden, Invalid
from paddlecloud.kube.expectations import ref_of
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.plan import Delete, Plan, PlanFailed, PlanResult
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODDISRUPTIONBUDGETS,
    PODS,
    Key,
    Object,
    key_of,
)
from paddlecloud.local.apiserver.auth.identities import WORKFLOW_CONTROLLER
from paddlecloud.local.apiserver.objects.admission import Validator
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.workflow.artifacts.collector import Collector, Sweeper
from paddlecloud.local.workflow.artifacts.reading import handler as reading_handler
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.cron.controller import CronWorkflowReconciler
from paddlecloud.local.workflow.decision.decide import decide
from paddlecloud.local.workflow.decision.metrics import WorkflowPlan
from paddlecloud.local.workflow.lock_table import INDEX, LockTable, index, may_wake_others
from paddlecloud.local.workflow.metric_series import MetricSeries
from paddlecloud.local.workflow.names import CLUSTER_TEMPLATES, CONFIG_MAP_TYPE, NODE_ID, TEMPLATES, WORKFLOWS
from paddlecloud.local.workflow.nodes import is_ended, readable
from paddlecloud.local.workflow.observed import Observed, same_in_one_pass
from paddlecloud.local.workflow.pods.image_commands import Programs
from paddlecloud.local.workflow.unreadable import UNREADABLE, UnreadableLog
from paddlecloud.local.workflow.validation.admission import judge
from paddlecloud.local.workflow.validation.referred import named_templates
from paddlecloud.local.workloads.reconciler import OWNER, WorkloadReconciler

PAUSE = 1.0
"""Seconds between two passes over a workflow with thousands of nodes."""


class _Reconciler(WorkloadReconciler[Observed]):
    collector: Collector
    locks: LockTable
    exists: Callable[[Object], bool]
    series: MetricSeries
    unreadable: UnreadableLog

    async def observe(self, obj: Object) -> Observed:
        """Outputs of pods that are over are moved to the repository, in a thread. That may be repeated."""
        return await asyncio.to_thread(collected, obj, await super().observe(obj), self.collector, self.exists)

    async def decided(self, obj: Object, observed: Observed) -> Plan:
        """In a thread: a workflow has up to a megabyte, and its author chooses what it costs."""
        moment, locks = self.locks.observed(obj)
        plan = await asyncio.to_thread(self.decide, obj, replace(observed, locks=locks), self.clock.now())
        if isinstance(plan, WorkflowPlan) and plan.unreadable is not None:
            self.unreadable.report(f"workflow {key_of(obj)}", plan.unreadable)
        return plan if self.locks.admit(obj, moment, plan) else Plan(after=0.0)

    async def act(self, obj: Object, observed: Observed, plan: Plan) -> float | None:
        """Pods and claims come first: one that the API server refuses for good ends its node in the same pass.

        Artifacts are deleted before the status says so.
        """
        if is_ended(obj):
            await asyncio.to_thread(self._delete_artifacts, obj)
        first = [each for each in plan.create if each["kind"] in (PODS.kind, PERSISTENTVOLUMECLAIMS.kind)]
        plan.create = [each for each in plan.create if each["kind"] not in (PODS.kind, PERSISTENTVOLUMECLAIMS.kind)]
        failed: PlanFailed | None = None
        try:
            if first:
                await self.carry_out(obj, Plan(create=first))
        except PlanFailed as why:
            if refused := refusals(why.outcome.refused):
                plan = await self.decided(obj, replace(observed, refused=refused))
                if plan.patch:  # else another workflow took a lock meanwhile, and the next pass decides
                    plan.delete += left_over(why.outcome.created, plan)
            else:
                failed = why
        after = await super().act(obj, observed, plan)
        if failed is not None:
            raise failed
        return after

    async def carry_out(self, obj: Object, plan: Plan) -> PlanResult:
        """Caches of steps are read from the store. No watch shows that one was created: waiting for that would cost the
        workflow half a minute."""
        meta = obj["metadata"]
        try:
            done = await super().carry_out(obj, plan)
        except PlanFailed as why:
            if isinstance(plan, WorkflowPlan) and not any(what.startswith("patch ") for what, _ in why.errors):
                self.series.record(meta["namespace"], meta["uid"], plan.samples)
            raise
        else:
            if isinstance(plan, WorkflowPlan):
                self.series.record(meta["namespace"], meta["uid"], plan.samples)
            return done
        finally:
            for made in plan.create:
                if made["kind"] == CONFIGMAPS.kind:
                    self.expectations.drop(key_of(obj), ref_of(made))

    def _delete_artifacts(self, workflow: Object) -> None:
        try:
            self.collector.delete_artifacts(workflow)
        except UNREADABLE as why:
            self.unreadable.report(f"artifacts of workflow {key_of(workflow)}", why)

    def rest(self, observed: Observed) -> float:
        """Of a large workflow one pass a second: each writes its whole status."""
        return PAUSE if observed.is_large else 0.0


def refusals(refused: Iterable[tuple[Object, ApiError]]) -> dict[str, str]:
    """Answers of the API server that another attempt would get as well: of pods by the ids of their nodes, of claims by
    their names. A quota may have room later, as in Argo's `IsTransientErr`."""
    return {
        (obj["metadata"].get("annotations") or {}).get(NODE_ID) or obj["metadata"]["name"]: error.message
        for obj, error in refused
        if isinstance(error, (BadRequest, Forbidden, Invalid)) and "exceeded quota" not in error.message
    }


def left_over(created: Iterable[Object], plan: Plan) -> list[Delete]:
    """Pods of the first decision that are not in the second one: of steps after one that could not begin."""
    wanted = {(each["kind"], each["metadata"]["name"]) for each in plan.create}
    return [
        Delete(PODS, each["metadata"]["name"], each["metadata"]["namespace"], uid=each["metadata"]["uid"])
        for each in created
        if each["kind"] == PODS.kind and (each["kind"], each["metadata"]["name"]) not in wanted
    ]


def collected(workflow: Object, observed: Observed, collector: Collector, exists: Callable[[Object], bool]) -> Observed:
    """With the reports of pods that are over, and without pods of the cache that are gone."""
    try:
        whole = unpacked(workflow)
        nodes = readable((whole.get("status") or {}).get("nodes"))
        pods = {node: pod for node, pod in observed.pods.items() if node in nodes or exists(pod)}
        return replace(observed, pods=pods, reports=collector.collect(whole, pods))
    except BadPacking:
        return observed  # `decide` ends the workflow with the reason
    except UNREADABLE as why:  # odd values of a status, or of a pod that a user made in the workflow's name
        return replace(observed, unreadable=why)


class Workflows:
    """`run` works until cancelled."""

    def __init__(self, control_plane: ControlPlane, repository: Repository, programs: Programs) -> None:
        client = control_plane.client(WORKFLOW_CONTROLLER, user_agent="workflow-controller")
        self.manager = manager = Manager(client, clock=control_plane.clock)
        self._templates = manager.informer(TEMPLATES)
        self._cluster_templates = manager.informer(CLUSTER_TEMPLATES)
        self._config_maps = manager.informer(CONFIGMAPS, label_selector=PARAMETERS)
        reconciler = _Reconciler(
            manager,
            WORKFLOWS,
            name="workflow-controller",
            observe=self._observe,
            decide=decide,
            clock=control_plane.clock,
        )
        self._pods = reconciler.owns(PODS, adopting=False)
        self._claims = reconciler.owns(PERSISTENTVOLUMECLAIMS, adopting=False)
        self._budgets = reconciler.owns(PODDISRUPTIONBUDGETS, adopting=False)
        reconciler.series = series = MetricSeries(control_plane.clock)
        control_plane.metrics.registry.sources.append(series.metrics)
        manager.informer(NAMESPACES).on_change(
            _when_deleted(lambda obj: series.forget_namespace(obj["metadata"]["name"]))
        )
        manager.informer(WORKFLOWS).on_change(_when_deleted(self._workflow_deleted))
        self._series = series
        reconciler.exists = self._exists
        reconciler.unreadable = unreadable = UnreadableLog()
        reconciler.collector = Collector(repository)
        sweeper = Sweeper(repository, manager)
        manager.add_service("artifact-sweeper", sweeper.run)
        reading = reading_handler(control_plane.verbs, repository)
        control_plane.extensions.handlers[(WORKFLOWS.group, WORKFLOWS.plural, "artifacts")] = reading
        workflows = manager.informer(WORKFLOWS, indexers={INDEX: index})
        reconciler.locks = table = LockTable(workflows.cache, self._stored_value)
        reconciler.controller.watch(
            workflows,
            map=lambda obj: [key_of(each) for each in table.waiting(obj["metadata"]["namespace"])],
            when=may_wake_others,
        )
        CronWorkflowReconciler(manager, control_plane.clock)
        self._store = control_plane.store
        self._repository = repository
        self._programs = programs
        control_plane.admission.validators.append(
            Validator(functools.partial(judge, specs=self._stored_spec, report=unreadable.report), self._named_bytes)
        )

    def _workflow_deleted(self, workflow: Object) -> None:
        self._series.forget_workflow(workflow["metadata"]["uid"])

    async def run(self) -> None:
        await self.manager.run()

    def _stored_spec(self, namespace: str, name: str, clusterwide: bool) -> Mapping[str, Any] | None:
        """As it is stored at this moment: a template that was created just before counts."""
        record = self._store.latest(_template_address(namespace, name, clusterwide))
        return None if record is None else record.object.get("spec") or {}

    def _named_bytes(self, info: KindInfo, namespace: str, obj: Object) -> int:
        """A workflow is judged with the templates that it names."""
        if (info.resource.group, info.kind) != (WORKFLOWS.group, WORKFLOWS.kind):
            return 0
        places = (_template_address(namespace, *each) for each in named_templates(obj))
        return sum(len(record.value) for place in places if (record := self._store.latest(place)) is not None)

    def _stored_value(self, namespace: str, name: str, key: str) -> str | None:
        """Of a ConfigMap: the limit of a semaphore, which needs no label."""
        record = self._store.get(ObjectAddress("/configmaps", namespace, name))
        value = None if record is None else (record.object.get("data") or {}).get(key)
        return value if isinstance(value, str) else None

    def _exists(self, pod: Object) -> bool:
        """Whether a pod of the cache is stored still. `argo retry` deletes a pod and then takes its node out of the
        status; the cache of pods may be behind, and the new attempt would be judged by the pod of the old one."""
        meta = pod["metadata"]
        record = self._store.get(ObjectAddress("/pods", meta["namespace"], meta["name"]))
        return record is not None and record.meta.uid == meta["uid"]

    def _observe(self, workflow: Object) -> Observed:
        namespace = workflow["metadata"]["namespace"]
        pods = self._pods.cache.by_index(OWNER, owned_by(workflow))
        by_node = {(pod["metadata"].get("annotations") or {}).get(NODE_ID, ""): pod for pod in pods}

        @functools.cache
        def specs(name: str, clusterwide: bool) -> Mapping[str, Any] | None:
            key = Key("" if clusterwide else namespace, name)
            found = (self._cluster_templates if clusterwide else self._templates).cache.get(key)
            return None if found is None else found.get("spec") or {}

        @functools.cache
        def config_map(name: str) -> Object | None:
            return self._config_maps.cache.get(Key(namespace, name))

        def value(name: str, key: str) -> str | None:
            found = config_map(name)
            return None if found is None else (found.get("data") or {}).get(key)

        return Observed(
            by_node,
            claims=self._claims.cache.by_index(OWNER, owned_by(workflow)),
            budgets=self._budgets.cache.by_index(OWNER, owned_by(workflow)),
            specs=specs,
            config_map=value,
            cache=same_in_one_pass(lambda name: self._store.get(ObjectAddress("/configmaps", namespace, name))),
            is_stored=functools.cache(functools.partial(self._repository.is_stored, namespace)),
            programs=self._programs,
            is_large=is_packed(workflow),
        )


def _template_address(namespace: str, name: str, clusterwide: bool) -> ObjectAddress:
    resource = CLUSTER_TEMPLATES if clusterwide else TEMPLATES
    return ObjectAddress(f"{resource.group}/{resource.plural}", "" if clusterwide else namespace, name)


def _when_deleted(act: Callable[[Object], None]) -> Callable[[Object | None, Object | None], None]:
    return lambda old, new: act(old) if new is None and old is not None else None


PARAMETERS = f"{CONFIG_MAP_TYPE}=Parameter"
"""Argo reads parameters from ConfigMaps with this label alone."""
