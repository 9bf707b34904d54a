"""All PaddleJobs: filter, sort, search, and why each of them is as it is."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from paddlecloud.kube.resource import PADDLEJOBS, PODS
from paddlecloud.ui import verdicts
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.feed import JOB
from paddlecloud.ui.job_rows import JobRow, row_of
from paddlecloud.ui.listing import Listed, Order, listed, words_of

ORDERS: dict[str, Order[JobRow]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "status": lambda row: (row.phase, row.name),
    "queue": lambda row: (row.queue, row.name),
    "progress": lambda row: (row.done or 0.0, row.name),
    "restarts": lambda row: (row.restarts, row.name),
    "age": lambda row: (row.created, row.name),
}


class Shown(NamedTuple):
    row: JobRow
    why: str


class JobsView(NamedTuple):
    listed: Listed[JobRow]
    shown: list[Shown]
    phases: list[tuple[str, int]]
    """Every phase that jobs have, and of how many."""
    namespaces: list[str]
    query: Any


async def load(asked: Asked) -> JobsView:
    rows = [row for _, row in await asked.reader.rows(PADDLEJOBS, row_of)]
    namespaces = sorted({row.namespace for row in rows})
    if asked.namespace:
        rows = [row for row in rows if row.namespace == asked.namespace]
    if words := words_of(asked.query):
        rows = [row for row in rows if all(word in row.text for word in words)]
    phases = sorted(Counter(row.phase for row in rows).items())
    if phase := asked.query.get("status"):
        rows = [row for row in rows if row.phase == phase]
    found = listed(rows, asked.query, ORDERS, default="-age", section="jobs")
    shown = [Shown(row, await _why(asked, row)) for row in found.rows]
    return JobsView(found, shown, phases, namespaces, asked.query)


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
