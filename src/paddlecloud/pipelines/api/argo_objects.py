"""Workflows and CronWorkflows by the ids of the API: the id is a label or, on an object without it, the uid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api import paging
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.filters import Row
from paddlecloud.pipelines.api.replies import RequestRefused


class Kind(NamedTuple):
    resource: Resource
    label: str
    """The label that has the id."""
    what: str
    """What messages call it."""


RUN = Kind(names.WORKFLOWS, names.RUN_ID, "run")
RECURRING_RUN = Kind(names.CRON_WORKFLOWS, names.ID, "recurring run")


class NamePage(NamedTuple):
    names: list[str]
    """Of the objects: each is read on its own, so that a page of large ones is never in memory as a whole."""
    total: int
    next_token: str


def own_id(kind: Kind, obj: Object) -> str:
    meta = obj["metadata"]
    return str((meta.get("labels") or {}).get(kind.label) or meta["uid"])


async def find(caller: Caller, kind: Kind, shown_id: str) -> Object:
    """Raises `RequestRefused` with 404 for one that is not there."""
    at = caller.read_id(shown_id, kind.what)
    if found := await caller.first(kind.resource, at.namespace, f"{kind.label}={at.own}"):
        return found
    for obj in await caller.metadata(kind.resource, at.namespace, f"!{kind.label}"):
        if obj["metadata"]["uid"] == at.own:
            return await caller.client.get(kind.resource, obj["metadata"]["name"], at.namespace)
    raise RequestRefused(404, f"{kind.what} {shown_id!r} not found in namespace {at.namespace}")


async def page(
    rows: Sequence[Row], name_by_id: Mapping[str, str], query: paging.Query, fields: Sequence[str]
) -> NamePage:
    found = await asyncio.to_thread(paging.page, rows, query, fields)
    return NamePage([name_by_id[row["id"]] for row in found.rows], found.total, found.next_token)


async def each(caller: Caller, kind: Kind, namespace: str, found: Sequence[str]) -> AsyncIterator[Object]:
    """One after the other; what was deleted meanwhile is left out."""
    for name in found:
        try:
            yield await caller.client.get(kind.resource, name, namespace)
        except NotFound:
            continue


def in_experiment(experiment_id: str) -> str:
    """The selector of an experiment's objects; of all if there is none."""
    return f"{names.EXPERIMENT_ID}={experiment_id}" if experiment_id else ""
