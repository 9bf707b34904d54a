"""v2beta1, the API of kfp 2: what its requests mean, what its answers look like, and the calls that it alone has.

The module is a `handlers.Vocabulary`. Objects name each other by fields such as `experiment_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import library, run_facts, tasks
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.handlers import RunAsked
from paddlecloud.pipelines.api.records import Record
from paddlecloud.pipelines.api.replies import RequestRefused, object_of, text_in
from paddlecloud.pipelines.api.routing import Request, Table
from paddlecloud.pipelines.api.wire import kept, page_query, shown_list

RECURRING_PATH, RECURRING_LIST = "/recurringruns", "recurringRuns"
ACTION = ":"
NOTHING_TO_RUN = "pipeline_spec or pipeline_version_reference is missing: what should run?"

# Requests


def name_in_body(body: Object) -> str:
    return text_in(body, "display_name")


def namespace_in_body(body: Object) -> str:
    return text_in(body, "namespace")


def experiment_in_body(body: Object) -> str:
    return text_in(body, "experiment_id")


def enabled_in_body(body: Object) -> bool:
    return body.get("mode") != "DISABLE"


def run_in_body(body: Object) -> RunAsked:
    spec = body.get("pipeline_spec")
    reference = object_of(body.get("pipeline_version_reference") or {}, "pipeline_version_reference")
    config = object_of(body.get("runtime_config") or {}, "runtime_config")
    if text_in(config, "pipeline_root"):
        raise RequestRefused(
            400,
            "runtime_config.pipeline_root is not carried out: artifacts go to the artifact repository of Argo. "
            "Leave it out",
        )
    return RunAsked(
        name=text_in(body, "display_name"),
        document=object_of(spec, "pipeline_spec") if spec else None,
        pipeline_id=text_in(reference, "pipeline_id"),
        version_id=text_in(reference, "pipeline_version_id"),
        parameters=object_of(config.get("parameters") or {}, "runtime_config.parameters"),
    )


def namespace_in_query(query: Mapping[str, str]) -> str:
    return query.get("namespace", "")


def experiment_in_query(query: Mapping[str, str]) -> str:
    return query.get("experiment_id", "")


def upload_in_query(query: Mapping[str, str]) -> tuple[str, str]:
    return query.get("display_name") or query.get("name", ""), query.get("namespace", "")


# Answers


def experiment(caller: Caller, record: Record) -> Object:
    return kept(
        experiment_id=caller.shown_id(record.namespace, record.id),
        display_name=record.name,
        description=record.description,
        created_at=record.created_at,
        namespace=record.namespace,
        storage_state=_storage_state(record.archived),
    )


def run(caller: Caller, workflow: Object) -> Object:
    """As lists have it, without the steps: a page of them would have megabytes."""
    found = run_facts.of_run(caller, workflow)
    return kept(
        experiment_id=found.origin.experiment_id,
        run_id=found.id,
        display_name=found.name,
        description=found.description,
        storage_state=_storage_state(found.archived),
        pipeline_version_reference=_version_reference(found.origin),
        runtime_config=kept(parameters=_parameters(workflow, found.arguments)),
        service_account=found.service_account,
        created_at=found.created_at,
        scheduled_at=found.created_at,
        finished_at=found.finished_at,
        state=found.state.v2,
        error={"code": 13, "message": found.failure} if found.failure else None,
        recurring_run_id=found.origin.recurring_id,
        state_history=[{"update_time": found.updated_at, "state": found.state.v2}],
    )


run_created = run


def run_detail(caller: Caller, workflow: Object) -> Object:
    shown = run(caller, workflow)
    return {**shown, "run_details": {"task_details": tasks.details(workflow, shown["run_id"])}}


async def pipeline(caller: Caller, record: Record, version: Record | None = None) -> Object:
    return kept(
        pipeline_id=caller.shown_id(record.namespace, record.id), **_names_and_time(record), namespace=record.namespace
    )


async def pipeline_version(caller: Caller, record: Record) -> Object:
    found = await library.parsed(await library.content_of(caller, record))
    spec = {"pipeline_spec": found.spec, "platform_spec": found.platforms} if found.platforms else found.spec
    return {**_version_head(caller, record), "pipeline_spec": spec}


def recurring_run(caller: Caller, cron: Object) -> Object:
    found = run_facts.of_recurring_run(caller, cron)
    return kept(
        recurring_run_id=found.id,
        display_name=found.name,
        description=found.description,
        pipeline_version_reference=_version_reference(found.origin),
        runtime_config=kept(parameters=_parameters(cron, found.arguments)),
        max_concurrency=found.max_concurrency,
        trigger=found.trigger,
        mode="ENABLE" if found.enabled else "DISABLE",
        status="ENABLED" if found.enabled else "DISABLED",
        created_at=found.created_at,
        updated_at=found.created_at,
        no_catchup=True,
        namespace=found.origin.namespace,
        experiment_id=found.origin.experiment_id,
    )


def _parameters(obj: Object, arguments: list[Object]) -> Object:
    """With their types where the annotation has them."""
    written = (obj["metadata"].get("annotations") or {}).get(names.PARAMETERS)
    try:
        found: Any = msgspec.json.decode(written) if written else None
    except (msgspec.DecodeError, RecursionError):
        found = None  # somebody else wrote the annotation; the workflow has the values
    return found if isinstance(found, dict) else {each["name"]: each["value"] for each in arguments}


def _version_reference(origin: run_facts.Origin) -> Object:
    return kept(pipeline_id=origin.pipeline_id, pipeline_version_id=origin.version_id)


def _version_head(caller: Caller, record: Record) -> Object:
    return kept(
        pipeline_id=caller.shown_id(record.namespace, record.parent_id),
        pipeline_version_id=caller.shown_id(record.namespace, record.id),
        **_names_and_time(record),
    )


def _names_and_time(record: Record) -> Object:
    return {
        "display_name": record.name,
        "name": record.name,
        "description": record.description,
        "created_at": record.created_at,
    }


def _storage_state(archived: bool) -> str:
    return "ARCHIVED" if archived else "AVAILABLE"


# Calls of this version alone


async def create_pipeline(caller: Caller, request: Request) -> Object:
    """Without a version: one is uploaded next."""
    body = request.body
    namespace = caller.namespace_named(namespace_in_body(body))
    name, description = text_in(body, "display_name", "name"), text_in(body, "description")
    return await pipeline(caller, await library.create(caller, "pipeline", name, namespace, description=description))


async def get_pipeline_by_name(caller: Caller, request: Request) -> Object:
    namespace = caller.namespace_named(namespace_in_query(request.query))
    return await pipeline(caller, await library.named(caller, "pipeline", request.path["name"], namespace))


async def delete_pipeline(caller: Caller, request: Request) -> Object:
    """Refused while it has versions, as KFP does, unless `cascade` is given."""
    found = await library.find(caller, "pipeline", request.path["id"])
    if request.query.get("cascade", "").lower() != "true" and await library.versions(caller, found):
        raise RequestRefused(
            400, f"pipeline {found.name[:100]!r} has versions; delete these first, or ask with cascade=true"
        )
    await library.delete(caller, "pipeline", request.path["id"])
    return {}


async def get_version(caller: Caller, request: Request) -> Object:
    return await pipeline_version(caller, await _version_of(caller, request))


async def list_versions(caller: Caller, request: Request) -> Object:
    at = caller.read_id(request.path["id"], "pipeline")
    page = await library.listed(caller, "version", at.namespace, page_query(request), parent=at.own)
    return shown_list("pipeline_versions", [_version_head(caller, each) for each in page.records], page)


async def delete_version(caller: Caller, request: Request) -> Object:
    await _version_of(caller, request)
    await library.delete(caller, "version", request.path["version"])
    return {}


async def _version_of(caller: Caller, request: Request) -> Record:
    found = await library.find(caller, "version", request.path["version"])
    if caller.shown_id(found.namespace, found.parent_id) != request.path["id"]:
        raise RequestRefused(404, f"version {request.path['version'][:100]!r} belongs to another pipeline")
    return found


TABLE: Table = (
    ("POST", "/pipelines", create_pipeline),
    ("GET", "/pipelines/names/{name}", get_pipeline_by_name),
    ("DELETE", "/pipelines/{id}", delete_pipeline),
    ("GET", "/pipelines/{id}/versions", list_versions),
    ("GET", "/pipelines/{id}/versions/{version}", get_version),
    ("DELETE", "/pipelines/{id}/versions/{version}", delete_version),
)
