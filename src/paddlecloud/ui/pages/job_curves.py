"""The curves of one job: what it reported of itself, and the scalars that it wrote with VisualDL."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import PADDLEJOBS, Object
from paddlecloud.sdk.outcome import ending
from paddlecloud.ui import job_curves
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.curves import Plot, plots
from paddlecloud.ui.job_curves import JobCurves


class JobCurvesView(NamedTuple):
    job: Object
    plots: list[Plot]
    curves: JobCurves
    can_read: bool
    """Whether it has ended: then a form reads what it wrote."""

    @property
    def meta(self) -> Object:
        meta: Object = self.job["metadata"]
        return meta

    @property
    def jobs(self) -> str:
        """For the form."""
        return f"{self.meta['namespace']}/{self.meta['name']}"


async def load(asked: Asked) -> JobCurvesView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    job = found(await asked.reader.get(PADDLEJOBS, namespace, name))
    curves = await job_curves.of(asked, job, follows=True)
    return JobCurvesView(job, plots(curves.sources(name)), curves, ending(job) is not None)


PAGE = DashboardPage("job_curves", "/jobs/{namespace}/{name}/curves", load)
