"""What the steps of a run print, side by side and while they print it."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.resource import PODS
from paddlecloud.ui import log_panes
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import RUN
from paddlecloud.ui.log_panes import LogPanes


class RunLogsView(NamedTuple):
    logs: LogPanes


async def load(asked: Asked) -> RunLogsView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    run = found(await asked.reader.get(WORKFLOWS, namespace, name))
    pods = await asked.reader.by_index(PODS, RUN, f"{namespace}/{name}")
    return RunLogsView(await log_panes.of(asked, "pipelines", run, pods))


PAGE = DashboardPage("pipeline_logs", "/pipelines/{namespace}/{name}/logs", load)
