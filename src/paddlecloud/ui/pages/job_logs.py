"""What the ranks of a job print, side by side and while they print it."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object
from paddlecloud.ui import log_panes
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import JOB
from paddlecloud.ui.log_panes import LogPanes


class JobLogsView(NamedTuple):
    logs: LogPanes

    @property
    def meta(self) -> Object:
        meta: Object = self.logs.obj["metadata"]
        return meta


async def load(asked: Asked) -> JobLogsView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    job = found(await asked.reader.get(PADDLEJOBS, namespace, name))
    pods = await asked.reader.by_index(PODS, JOB, f"{namespace}/{name}")
    return JobLogsView(await log_panes.of(asked, "jobs", job, pods))


PAGE = DashboardPage("job_logs", "/jobs/{namespace}/{name}/logs", load)
