"""Runs: workflows that are created, found, listed, stopped, retried, archived and deleted with the caller's rights.

Every Workflow of a namespace is a run, also one that kubectl, Argo's own client or a CronWorkflow created.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import argo_objects, library, paging
from paddlecloud.pipelines.api.argo_objects import RUN, NamePage, own_id
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.runs import actions, starting, states, submission
from paddlecloud.pipelines.runs.package import Package, PackageError
from paddlecloud.pipelines.runs.submission import RunRequest

FIELDS = ("created_at", "name", "id", "description", "state", "storage_state", "scheduled_at")


class RunSource(NamedTuple):
    """What a run is made of: the package, and the pipeline and version that it was taken from, if any."""

    package: Package
    pipeline_id: str = ""
    version_id: str = ""

    async def completed(self, caller: Caller, request: RunRequest) -> RunRequest:
        """With where it was taken from, and with the account of its steps where the request names none."""
        named = request._replace(pipeline_id=self.pipeline_id, version_id=self.version_id)
        return await starting.with_account(caller.client, self.package, named)


def display_name(workflow: Object) -> str:
    meta = workflow["metadata"]
    return str((meta.get("annotations") or {}).get(names.RUN_NAME) or meta["name"])


def is_archived(workflow: Object) -> bool:
    return (workflow["metadata"].get("labels") or {}).get(names.STORAGE_STATE) == "ARCHIVED"


async def create(caller: Caller, source: RunSource, request: RunRequest) -> Object:
    """`request` names the namespace and, by its own id, the experiment."""
    wanted = await source.completed(caller, request._replace(run_id=caller.new_id()))
    workflow = await made_of(source.package, wanted, caller.suffix())
    return await caller.client.create(names.WORKFLOWS, workflow)


async def made_of(package: Package, request: RunRequest, suffix: str) -> Object:
    try:
        return await asyncio.to_thread(submission.workflow_of, package, request, suffix=suffix)
    except PackageError as error:
        raise RequestRefused(400, str(error)) from error


async def find(caller: Caller, shown_id: str) -> Object:
    return await argo_objects.find(caller, RUN, shown_id)


async def listed(caller: Caller, namespace: str, query: paging.Query, *, experiment_id: str = "") -> NamePage:
    found = await caller.metadata(names.WORKFLOWS, namespace, argo_objects.in_experiment(experiment_id))
    name_by_id = {own_id(RUN, obj): obj["metadata"]["name"] for obj in found}
    return await argo_objects.page([_row(obj) for obj in found], name_by_id, query, FIELDS)


def _row(workflow: Object) -> dict[str, Any]:
    meta = workflow["metadata"]
    created = parse_rfc3339(meta["creationTimestamp"])
    return {
        "id": own_id(RUN, workflow),
        "name": display_name(workflow),
        "description": (meta.get("annotations") or {}).get(names.DESCRIPTION, ""),
        "created_at": created,
        "scheduled_at": created,
        "state": states.of_workflow(workflow).v2,
        "storage_state": "ARCHIVED" if is_archived(workflow) else "AVAILABLE",
    }


async def terminate(caller: Caller, shown_id: str) -> None:
    """A run that has ended stays as it is, as in KFP."""
    workflow = await find(caller, shown_id)
    if not states.is_over(workflow):
        await actions.stop(caller.client, workflow)


async def archive(caller: Caller, shown_id: str, archived: bool) -> None:
    labels = {names.STORAGE_STATE: "ARCHIVED" if archived else None}
    await _patch(caller, await find(caller, shown_id), {"metadata": {"labels": labels}})


async def delete(caller: Caller, shown_id: str) -> None:
    meta = (await find(caller, shown_id))["metadata"]
    await caller.client.delete(
        names.WORKFLOWS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], propagation="Background"
    )


async def retry_failed(caller: Caller, shown_id: str) -> None:
    try:
        await actions.retry(caller.client, await find(caller, shown_id))
    except actions.NotPossible as error:
        raise RequestRefused(400, str(error)) from error


async def _patch(caller: Caller, workflow: Object, change: Object) -> None:
    meta = workflow["metadata"]
    await caller.client.patch(names.WORKFLOWS, meta["name"], change, namespace=meta["namespace"])


async def source_of_pipeline(caller: Caller, pipeline_id: str, version_id: str) -> RunSource:
    """By a version's id, or by that of a pipeline, whose default version it is then."""
    if version_id:
        version = await library.find(caller, "version", version_id)
    else:
        pipeline = await library.find(caller, "pipeline", pipeline_id)
        chosen = await library.default_version(caller, pipeline)
        if chosen is None:
            raise RequestRefused(400, f"pipeline {pipeline_id!r} has no version; upload one")
        version = chosen
    package = await library.parsed(await library.content_of(caller, version))
    return RunSource(package, version.parent_id, version.id)
