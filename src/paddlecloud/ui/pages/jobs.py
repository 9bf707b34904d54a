"""All PaddleJobs: filter, sort, search, and why each of them is as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.kube.resource import PADDLEJOBS, PODS, Key
from paddlecloud.ui import verdicts
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.feed import JOB
from paddlecloud.ui.job_rows import JobRow, row_of
from paddlecloud.ui.listing import Order
from paddlecloud.ui.object_lists import ObjectList, object_list

ORDERS: dict[str, Order[JobRow]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "status": lambda row: (row.phase, row.name),
    "queue": lambda row: (row.queue, row.name),
    "progress": lambda row: (row.done or 0.0, row.name),
    "restarts": lambda row: (row.restarts, row.name),
    "age": lambda row: (row.created, row.name),
}


class JobsView(NamedTuple):
    objects: ObjectList[JobRow]
    why: Mapping[Key, str]
    """Of the jobs that are shown."""


async def load(asked: Asked) -> JobsView:
    rows = [row for _, row in await asked.reader.rows(PADDLEJOBS, row_of)]
    found = object_list("jobs", rows, asked.query, ORDERS, default="-age")
    return JobsView(found, {Key(row.namespace, row.name): await _why(asked, row) for row in found.listed.rows})


async def _why(asked: Asked, row: JobRow) -> str:
    """Of one that runs as it should, nothing: the eye finds the others."""
    if row.ending == "succeeded" or row.phase == "Running":
        return ""
    job = await asked.reader.get(PADDLEJOBS, row.namespace, row.name)
    if job is None:
        return row.message
    pods = await asked.reader.by_index(PODS, JOB, f"{row.namespace}/{row.name}")
    return verdicts.quick(job, pods, (), now=asked.now, language=asked.language).verdict.text


PAGE = DashboardPage("jobs", "/jobs", load, key="j")
