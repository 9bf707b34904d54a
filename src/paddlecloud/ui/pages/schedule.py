"""One schedule of a pipeline: when it begins runs, and the runs that it began."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.kube.argo import CRON_WORKFLOWS, WORKFLOWS
from paddlecloud.ui import run_rows
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import SCHEDULE
from paddlecloud.ui.run_rows import RunRow, ScheduleRow
from paddlecloud.ui.subject import Subject, subject

MOST_RUNS = 50


class ScheduleView(NamedTuple):
    subject: Subject
    row: ScheduleRow
    spec: Any
    runs: list[RunRow]
    """Newest first."""

    @property
    def phase(self) -> str:
        return self.row.phase


async def load(asked: Asked) -> ScheduleView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    cron = found(await asked.reader.get(CRON_WORKFLOWS, namespace, name))
    runs = await asked.reader.by_index(WORKFLOWS, SCHEDULE, f"{namespace}/{name}")
    rows = sorted(map(run_rows.row_of, runs), key=lambda row: (row.created, row.name), reverse=True)
    commands = (["get", f"cronworkflow/{name}", "-o", "yaml"], ["pipeline", "schedule"], ["pipeline", "ls"])
    return ScheduleView(
        subject=await subject(asked, "schedules", cron, (), commands),
        row=run_rows.schedule_row(cron),
        spec=cron.get("spec") or {},
        runs=rows[:MOST_RUNS],
    )


PAGE = DashboardPage("schedule", "/schedules/{namespace}/{name}", load)
