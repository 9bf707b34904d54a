"""The pages, in the order of the navigation: a module for each, with its template and its table of words."""

from __future__ import annotations

from paddlecloud.ui.asked import DashboardPage
from paddlecloud.ui.pages import (
    job,
    job_logs,
    job_yaml,
    jobs,
    model,
    models,
    modelversion,
    node,
    nodes,
    overview,
    queues,
    sampleset,
    samplesets,
    service,
    services,
)

PAGES: tuple[DashboardPage, ...] = (
    overview.PAGE,
    jobs.PAGE,
    job.PAGE,
    job_logs.PAGE,
    job_yaml.PAGE,
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
)
