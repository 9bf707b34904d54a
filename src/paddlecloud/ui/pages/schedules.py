"""All schedules of pipelines: when each begins a run, and when it did so last."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.argo import CRON_WORKFLOWS
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.listing import Order
from paddlecloud.ui.object_lists import ObjectList, object_list
from paddlecloud.ui.run_rows import ScheduleRow, schedule_row

ORDERS: dict[str, Order[ScheduleRow]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "status": lambda row: (row.phase, row.name),
    "when": lambda row: (row.when, row.name),
    "last": lambda row: (row.last, row.name),
    "age": lambda row: (row.created, row.name),
}


class SchedulesView(NamedTuple):
    objects: ObjectList[ScheduleRow]


async def load(asked: Asked) -> SchedulesView:
    rows = [row for _, row in await asked.reader.rows(CRON_WORKFLOWS, schedule_row)]
    return SchedulesView(object_list("schedules", rows, asked.query, ORDERS, default="name"))


PAGE = DashboardPage("schedules", "/schedules", load)
