"""All runs of pipelines: how far each is, how long it took, and why it failed or waits."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.resource import PODS
from paddlecloud.ui import verdicts
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.feed import RUN
from paddlecloud.ui.listing import Order
from paddlecloud.ui.object_lists import ObjectList, object_list
from paddlecloud.ui.run_rows import RunRow, row_of

ORDERS: dict[str, Order[RunRow]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "status": lambda row: (row.phase, row.name),
    "steps": lambda row: (row.done or 0.0, row.name),
    "took": lambda row: (row.seconds or 0.0, row.name),
    "age": lambda row: (row.created, row.name),
}
ENDED = ("Succeeded", "Skipped", "Omitted")


class RunsView(NamedTuple):
    objects: ObjectList[RunRow]
    why: dict[tuple[str, str], str]
    """Of the runs that are shown: why one failed, or what it waits for."""


async def load(asked: Asked) -> RunsView:
    rows = [row for _, row in await asked.reader.rows(WORKFLOWS, row_of)]
    objects = object_list("pipelines", rows, asked.query, ORDERS, default="-age")
    return RunsView(objects, {(row.namespace, row.name): await _why(asked, row) for row in objects.listed.rows})


async def _why(asked: Asked, row: RunRow) -> str:
    if row.phase in ENDED or row.message:
        return row.message
    run = await asked.reader.get(WORKFLOWS, row.namespace, row.name)
    if run is None:
        return ""
    pods = await asked.reader.by_index(PODS, RUN, f"{row.namespace}/{row.name}")
    found = verdicts.quick(run, pods, (), now=asked.now, language=asked.language).verdict
    return "" if found.reason in ("", "Running") else found.text


PAGE = DashboardPage("pipelines", "/pipelines", load, key="p")
