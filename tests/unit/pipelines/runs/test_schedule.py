"""Triggers of recurring runs become schedules of CronWorkflows, and come back as they were."""

from __future__ import annotations

import pytest

from paddlecloud.pipelines.runs.recurrence import cron_workflow
from paddlecloud.pipelines.runs.schedule import ScheduleError, of_spec, read


@pytest.mark.parametrize(
    ("given", "schedule"),
    [
        ({"cron": "0 0 9 * * *"}, "0 9 * * *"),
        ({"cron": "0 0 9 ? * 1-5"}, "0 9 * * 1-5"),
        ({"cron": "30 2 * * *"}, "30 2 * * *"),
        ({"interval": "20"}, "@every 20s"),
        ({"interval": "3600"}, "@every 3600s"),
    ],
)
def test_a_trigger_becomes_a_schedule_and_is_read_from_it(given: dict[str, str], schedule: str) -> None:
    trigger = read(**given)
    assert trigger.schedule == schedule
    assert of_spec({"schedules": [schedule]}) == trigger


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "one of the two"),
        ({"cron": "0 * * * *", "interval": "5"}, "one of the two"),
        ({"cron": "*/10 * * * * *"}, "only 0 can be carried out. Give an interval"),
        ({"cron": "0 0 */0 * * *"}, "is no cron schedule"),
        ({"cron": "every day"}, "is no cron schedule"),
        ({"interval": "0"}, "from 1 to"),
        ({"interval": "1.5"}, "whole number"),
        ({"interval": "9" * 30}, "whole number"),
        ({"interval": "5", "end": "2027-01-01T00:00:00Z"}, "enable and disable"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ScheduleError, match=sentence):
        read(**given)


@pytest.mark.parametrize(("at_once", "policy"), [(1, "Forbid"), (2, "Allow")])
def test_a_recurring_run_carries_the_marks_of_its_runs(at_once: int, policy: str) -> None:
    workflow = {"metadata": {"name": "x-1", "namespace": "n", "labels": {"a": "b"}}, "spec": {"entrypoint": "main"}}
    made = cron_workflow(workflow, "id-1", "every day", read(interval="5"), enabled=False, at_once=at_once)
    assert made["spec"]["concurrencyPolicy"] == policy
    assert (made["spec"]["suspend"], made["spec"]["workflowSpec"]) == (True, {"entrypoint": "main"})
    assert made["spec"]["workflowMetadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["labels"] == {"a": "b", "pipelines.paddlecloud.org/id": "id-1"}
