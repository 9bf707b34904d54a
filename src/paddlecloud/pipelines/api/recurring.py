"""Recurring runs: CronWorkflows of Argo, with the rights of the caller."""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import argo_objects, paging, runs
from paddlecloud.pipelines.api.argo_objects import RECURRING_RUN, NamePage
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.replies import RequestRefused
from paddlecloud.pipelines.runs import recurrence
from paddlecloud.pipelines.runs.schedule import Trigger
from paddlecloud.pipelines.runs.submission import RunRequest

FIELDS = ("created_at", "name", "id", "description", "state")
MAX_CONCURRENCY = 10
"""KFP's own limit."""
_AT_ONCE = 20
"""CronWorkflows of one page that is read: whether one is enabled is in its spec, which may be large."""


async def create(
    caller: Caller,
    source: runs.RunSource,
    request: RunRequest,
    *,
    trigger: Trigger,
    enabled: bool,
    max_concurrency: str,
) -> Object:
    if max_concurrency and (not max_concurrency.isdigit() or not 1 <= int(max_concurrency[:3]) <= MAX_CONCURRENCY):
        raise RequestRefused(
            400, f"max_concurrency is {max_concurrency[:20]!r}; it must be from 1 to {MAX_CONCURRENCY}"
        )
    own = caller.new_id()
    wanted = await source.completed(caller, request._replace(recurring_id=own))
    workflow = await runs.made_of(source.package, wanted, caller.suffix())
    made = recurrence.cron_workflow(
        workflow, own, request.name, trigger, enabled=enabled, at_once=int(max_concurrency or 1)
    )
    return await caller.client.create(names.CRON_WORKFLOWS, made)


async def find(caller: Caller, shown_id: str) -> Object:
    return await argo_objects.find(caller, RECURRING_RUN, shown_id)


async def listed(caller: Caller, namespace: str, query: paging.Query, *, experiment_id: str = "") -> NamePage:
    selector, rows, name_by_id = argo_objects.in_experiment(experiment_id), {}, {}
    async for objects in caller.pages(names.CRON_WORKFLOWS, namespace, selector, size=_AT_ONCE):
        for obj in objects:
            row = _row(obj)
            rows[row["id"]], name_by_id[row["id"]] = row, obj["metadata"]["name"]
    return await argo_objects.page(list(rows.values()), name_by_id, query, FIELDS)


def _row(cron: Object) -> dict[str, Any]:
    meta = cron["metadata"]
    annotations = meta.get("annotations") or {}
    return {
        "id": argo_objects.own_id(RECURRING_RUN, cron),
        "name": annotations.get(names.DISPLAY_NAME, meta["name"]),
        "description": annotations.get(names.DESCRIPTION, ""),
        "created_at": parse_rfc3339(meta["creationTimestamp"]),
        "state": "DISABLED" if cron["spec"].get("suspend") else "ENABLED",
    }


async def enable(caller: Caller, shown_id: str, enabled: bool) -> None:
    meta = (await find(caller, shown_id))["metadata"]
    change = {"spec": {"suspend": not enabled}}
    await caller.client.patch(names.CRON_WORKFLOWS, meta["name"], change, namespace=meta["namespace"])


async def delete(caller: Caller, shown_id: str) -> None:
    """Its runs stay, as KFP keeps them."""
    meta = (await find(caller, shown_id))["metadata"]
    await caller.client.delete(
        names.CRON_WORKFLOWS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], propagation="Orphan"
    )
