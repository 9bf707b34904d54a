"""What is refused in a CronWorkflow, by field."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.names import CRON_WORKFLOWS
from paddlecloud.local.workflow.validation.admission import judge

RUN: dict[str, Any] = {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "busybox"}}]}


def fields(name: str = "cron", **spec: Any) -> list[str]:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"workflowSpec": RUN, **spec}}
    try:
        judge(KindInfo(CRON_WORKFLOWS, "cronworkflow"), body, None, WriteOptions(manager="kubectl"))
    except errors.Invalid as refused:
        return [cause["field"] for cause in (refused.details or {})["causes"]]
    return []


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "@hourly", "@every 30s", "0 12 * * mon-fri"])
def test_schedules_that_argo_takes(schedule: str) -> None:
    assert fields(schedule=schedule) == fields(schedules=[schedule]) == []


@pytest.mark.parametrize("schedule", ["*/0 * * * *", "61 * * * *", "* * *", "@every", "", 5, "* * * * 7"])
def test_schedules_that_are_refused_by_their_field(schedule: Any) -> None:
    assert fields(schedules=["@hourly", schedule]) == ["spec.schedules[1]"]


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.schedules", {}),
        ("spec.schedules", {"schedule": "@hourly", "schedules": ["@daily"]}),
        ("spec.schedules", {"schedules": ["@hourly"] * 101}),
        ("spec.timezone", {"schedule": "@hourly", "timezone": "Mars/Olympus"}),
        ("spec.concurrencyPolicy", {"schedule": "@hourly", "concurrencyPolicy": "Never"}),
        ("spec.startingDeadlineSeconds", {"schedule": "@hourly", "startingDeadlineSeconds": -1}),
        ("spec.successfulJobsHistoryLimit", {"schedule": "@hourly", "successfulJobsHistoryLimit": "3"}),
        ("spec.suspend", {"schedule": "@hourly", "suspend": "no"}),
        ("spec.stopStrategy.expression", {"schedule": "@hourly", "stopStrategy": {"expression": "a =="}}),
        ("spec.scheduel", {"schedule": "@hourly", "scheduel": "x"}),
        ("spec.workflowSpec", {"schedule": "@hourly", "workflowSpec": None}),
        ("spec.workflowSpec.entrypoint", {"schedule": "@hourly", "workflowSpec": {**RUN, "entrypoint": "x"}}),
        ("metadata.name", {"schedule": "@hourly", "name": "n" * 53}),
    ],
)
def test_other_fields(field: str, spec: dict[str, Any]) -> None:
    assert fields(**spec) == [field]


def test_a_workflow_template_may_come_later() -> None:
    assert fields(schedule="@hourly", workflowSpec={"workflowTemplateRef": {"name": "later"}}) == []
