"""The pages, in the order of the navigation: a module for each, with its template and its table of words."""

from __future__ import annotations

from paddlecloud.ui.asked import DashboardPage
from paddlecloud.ui.pages import (
    compare,
    job,
    job_curves,
    job_logs,
    job_yaml,
    jobs,
    model,
    models,
    modelversion,
    node,
    nodes,
    overview,
    pipeline_logs,
    pipeline_run,
    pipelines,
    queues,
    sampleset,
    samplesets,
    schedule,
    schedules,
    service,
    services,
)

PAGES: tuple[DashboardPage, ...] = (
    overview.PAGE,
    jobs.PAGE,
    job.PAGE,
    job_logs.PAGE,
    job_curves.PAGE,
    job_yaml.PAGE,
    pipelines.PAGE,
    pipeline_run.PAGE,
    pipeline_logs.PAGE,
    schedules.PAGE,
    schedule.PAGE,
    services.PAGE,
    service.PAGE,
    models.PAGE,
    model.PAGE,
    modelversion.PAGE,
    samplesets.PAGE,
    sampleset.PAGE,
    queues.PAGE,
    nodes.PAGE,
    node.PAGE,
    compare.PAGE,
)
