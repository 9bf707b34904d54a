"""What answers of both versions say of a run and of a recurring run, before either names the fields. Pure."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import argo_objects, runs
from paddlecloud.pipelines.api.argo_objects import RECURRING_RUN, RUN
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.wire import shown_trigger
from paddlecloud.pipelines.runs import states


class Origin(NamedTuple):
    """Ids as clients see them, with the namespace where it is not the default one; empty for what there is not."""

    namespace: str
    experiment_id: str
    pipeline_id: str
    version_id: str
    recurring_id: str


class RunFacts(NamedTuple):
    id: str
    name: str
    description: str
    archived: bool
    origin: Origin
    arguments: list[Object]
    service_account: str
    created_at: str
    updated_at: str
    """When it entered its present state."""
    finished_at: str
    state: states.State
    failure: str


class RecurringFacts(NamedTuple):
    id: str
    name: str
    description: str
    origin: Origin
    arguments: list[Object]
    max_concurrency: str
    trigger: Object
    created_at: str
    enabled: bool


def of_run(caller: Caller, workflow: Object) -> RunFacts:
    meta, status, spec = workflow["metadata"], workflow.get("status") or {}, workflow.get("spec") or {}
    created, finished = meta["creationTimestamp"], status.get("finishedAt") or ""
    return RunFacts(
        id=caller.shown_id(meta["namespace"], argo_objects.own_id(RUN, workflow)),
        name=runs.display_name(workflow),
        description=_description(meta),
        archived=runs.is_archived(workflow),
        origin=_origin(caller, meta),
        arguments=_arguments(spec),
        service_account=spec.get("serviceAccountName", ""),
        created_at=created,
        updated_at=finished or status.get("startedAt") or created,
        finished_at=finished,
        state=states.of_workflow(workflow),
        failure=states.failure(workflow),
    )


def of_recurring_run(caller: Caller, cron: Object) -> RecurringFacts:
    meta, spec = cron["metadata"], cron["spec"]
    annotations = meta.get("annotations") or {}
    return RecurringFacts(
        id=caller.shown_id(meta["namespace"], argo_objects.own_id(RECURRING_RUN, cron)),
        name=annotations.get(names.DISPLAY_NAME, meta["name"]),
        description=_description(meta),
        origin=_origin(caller, meta),
        arguments=_arguments(spec.get("workflowSpec") or {}),
        max_concurrency=annotations.get(names.MAX_CONCURRENCY, "1"),
        trigger=shown_trigger(spec),
        created_at=meta["creationTimestamp"],
        enabled=not spec.get("suspend"),
    )


def _origin(caller: Caller, meta: Object) -> Origin:
    labels, namespace = meta.get("labels") or {}, meta["namespace"]
    keys = (names.EXPERIMENT_ID, names.PIPELINE_ID, names.VERSION_ID, names.RECURRING_ID)
    return Origin(namespace, *(caller.shown_id(namespace, labels.get(key, "")) for key in keys))


def _description(meta: Object) -> str:
    return str((meta.get("annotations") or {}).get(names.DESCRIPTION, ""))


def _arguments(spec: Object) -> list[Object]:
    found = (spec.get("arguments") or {}).get("parameters") or ()
    return [{"name": each["name"], "value": each.get("value", "")} for each in found]
