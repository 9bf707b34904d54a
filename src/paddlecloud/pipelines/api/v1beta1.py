"""v1beta1, the API of kfp 1: what its requests mean, what its answers look like, and the calls that it alone has.

The module is a `handlers.Vocabulary`. Objects name each other by `resource_references`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.api import library, run_facts
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.handlers import RunAsked
from paddlecloud.pipelines.api.records import Record
from paddlecloud.pipelines.api.replies import RequestRefused, object_of, text_in
from paddlecloud.pipelines.api.routing import Request, Table
from paddlecloud.pipelines.api.wire import kept, page_query, shown_list

RECURRING_PATH, RECURRING_LIST = "/jobs", "jobs"
ACTION = "/"
NOTHING_TO_RUN = "pipeline_spec must have a workflow_manifest or a pipeline_id"

# Requests


def name_in_body(body: Object) -> str:
    return text_in(body, "name")


def namespace_in_body(body: Object) -> str:
    return _referred(body, "NAMESPACE")


def experiment_in_body(body: Object) -> str:
    return _referred(body, "EXPERIMENT")


def enabled_in_body(body: Object) -> bool:
    return body.get("enabled") is not False


def run_in_body(body: Object) -> RunAsked:
    spec = object_of(body.get("pipeline_spec") or {}, "pipeline_spec")
    return RunAsked(
        name=text_in(body, "name"),
        manifest=text_in(spec, "workflow_manifest", "pipeline_manifest"),
        pipeline_id=text_in(spec, "pipeline_id"),
        version_id=_referred(body, "PIPELINE_VERSION"),
        parameters=_parameters(spec),
    )


def _parameters(spec: Object) -> dict[str, Any]:
    found = spec.get("parameters") or []
    if not isinstance(found, list):
        raise RequestRefused(400, "pipeline_spec.parameters must be a list")
    values = {}
    for at, each in enumerate(found):
        name = text_in(object_of(each, f"pipeline_spec.parameters[{at}]"), "name")
        values[name] = text_in(each, "value")
    typed = object_of(spec.get("runtime_config") or {}, "pipeline_spec.runtime_config").get("parameters")
    return {**values, **object_of(typed or {}, "pipeline_spec.runtime_config.parameters")}


def namespace_in_query(query: Mapping[str, str]) -> str:
    return _referred_key(query, "NAMESPACE")


def experiment_in_query(query: Mapping[str, str]) -> str:
    return _referred_key(query, "EXPERIMENT")


def upload_in_query(query: Mapping[str, str]) -> tuple[str, str]:
    return query.get("name", ""), query.get("namespace") or query.get("resource_references.key.id") or ""


def _referred(body: Object, kind: str) -> str:
    references = body.get("resource_references") or []
    if not isinstance(references, list):
        raise RequestRefused(400, "resource_references must be a list")
    for at, each in enumerate(references):
        key = object_of(
            object_of(each, f"resource_references[{at}]").get("key") or {}, f"resource_references[{at}].key"
        )
        if key.get("type") == kind:
            return text_in(key, "id")
    return ""


def _referred_key(query: Mapping[str, str], kind: str) -> str:
    """Of a list: what the query refers to, if it is of this kind."""
    for prefix in ("resource_reference_key", "resource_key"):
        if query.get(f"{prefix}.type") == kind:
            return query.get(f"{prefix}.id", "")
    return ""


# Answers


def experiment(caller: Caller, record: Record) -> Object:
    return kept(
        **_head(caller, record),
        resource_references=[_reference("NAMESPACE", record.namespace)],
        storage_state=_storage_state(record.archived),
    )


def run(caller: Caller, workflow: Object) -> Object:
    found = run_facts.of_run(caller, workflow)
    return kept(
        id=found.id,
        name=found.name,
        description=found.description,
        storage_state=_storage_state(found.archived),
        pipeline_spec=kept(pipeline_id=found.origin.pipeline_id, parameters=found.arguments),
        resource_references=_references(found.origin),
        service_account=found.service_account,
        created_at=found.created_at,
        scheduled_at=found.created_at,
        finished_at=found.finished_at,
        status=found.state.v1,
        error=found.failure,
    )


def run_detail(caller: Caller, workflow: Object) -> Object:
    manifest = msgspec.json.encode(workflow).decode()
    shown = run(caller, workflow)
    shown["pipeline_spec"] = {**shown.get("pipeline_spec", {}), "workflow_manifest": manifest}
    return {"run": shown, "pipeline_runtime": {"workflow_manifest": manifest}}


run_created = run_detail


async def pipeline(caller: Caller, record: Record, version: Record | None = None) -> Object:
    """With its default version, which is looked up where it is not known."""
    chosen = version or await library.default_version(caller, record)
    return kept(
        **_head(caller, record),
        default_version=_version(caller, chosen) if chosen else None,
        resource_references=[_reference("NAMESPACE", record.namespace)],
    )


async def pipeline_version(caller: Caller, record: Record) -> Object:
    return _version(caller, record)


def recurring_run(caller: Caller, cron: Object) -> Object:
    found = run_facts.of_recurring_run(caller, cron)
    return kept(
        id=found.id,
        name=found.name,
        description=found.description,
        pipeline_spec=kept(
            pipeline_id=found.origin.pipeline_id,
            workflow_manifest=msgspec.json.encode({"spec": cron["spec"].get("workflowSpec") or {}}).decode(),
            parameters=found.arguments,
        ),
        resource_references=_references(found.origin._replace(version_id="", recurring_id="")),
        max_concurrency=found.max_concurrency,
        trigger=found.trigger,
        created_at=found.created_at,
        updated_at=found.created_at,
        status="Enabled" if found.enabled else "Disabled",
        enabled=found.enabled,
        mode="ENABLED" if found.enabled else "DISABLED",
        no_catchup=True,
    )


def _head(caller: Caller, record: Record) -> Object:
    return {
        "id": caller.shown_id(record.namespace, record.id),
        "name": record.name,
        "description": record.description,
        "created_at": record.created_at,
    }


def _version(caller: Caller, record: Record) -> Object:
    owner = _reference("PIPELINE", caller.shown_id(record.namespace, record.parent_id))
    return kept(**_head(caller, record), resource_references=[owner])


def _references(origin: run_facts.Origin) -> list[Object]:
    found = (
        ("EXPERIMENT", origin.experiment_id, "OWNER"),
        ("PIPELINE_VERSION", origin.version_id, "CREATOR"),
        ("JOB", origin.recurring_id, "CREATOR"),
        ("NAMESPACE", origin.namespace, "OWNER"),
    )
    return [_reference(*each) for each in found if each[1]]


def _reference(kind: str, own: str, relationship: str = "OWNER") -> Object:
    return {"key": {"type": kind, "id": own}, "relationship": relationship}


def _storage_state(archived: bool) -> str:
    return f"STORAGESTATE_{'ARCHIVED' if archived else 'AVAILABLE'}"


# Calls of this version alone


async def create_pipeline(caller: Caller, request: Request) -> Object:
    raise RequestRefused(501, "pipelines are not fetched from a URL; upload the file (Client.upload_pipeline)")


async def delete_pipeline(caller: Caller, request: Request) -> Object:
    await library.delete(caller, "pipeline", request.path["id"])
    return {}


async def get_template(caller: Caller, request: Request) -> Object:
    found = await library.find(caller, "pipeline", request.path["id"])
    version = await library.default_version(caller, found)
    return {"template": await library.content_of(caller, version) if version else ""}


async def set_default_version(caller: Caller, request: Request) -> Object:
    await library.set_default_version(caller, request.path["id"], request.path["version"])
    return {}


async def get_version(caller: Caller, request: Request) -> Object:
    return _version(caller, await library.find(caller, "version", request.path["id"]))


async def get_version_template(caller: Caller, request: Request) -> Object:
    return {"template": await library.content_of(caller, await library.find(caller, "version", request.path["id"]))}


async def list_versions(caller: Caller, request: Request) -> Object:
    at = caller.read_id(request.query.get("resource_key.id", ""), "pipeline")
    page = await library.listed(caller, "version", at.namespace, page_query(request), parent=at.own)
    return shown_list("versions", [_version(caller, each) for each in page.records], page)


async def delete_version(caller: Caller, request: Request) -> Object:
    await library.delete(caller, "version", request.path["id"])
    return {}


TABLE: Table = (
    ("POST", "/pipelines", create_pipeline),
    ("DELETE", "/pipelines/{id}", delete_pipeline),
    ("GET", "/pipelines/{id}/templates", get_template),
    ("POST", "/pipelines/{id}/default_version/{version}", set_default_version),
    ("GET", "/pipeline_versions", list_versions),
    ("GET", "/pipeline_versions/{id}", get_version),
    ("GET", "/pipeline_versions/{id}/templates", get_version_template),
    ("DELETE", "/pipeline_versions/{id}", delete_version),
)
