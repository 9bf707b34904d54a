"""Runs, schedules and steps as rows: what lists filter by, and where the time of a step went."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.argo_nodes import is_packed
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import record
from paddlecloud.ui import run_rows, step_rows
from paddlecloud.ui.action_table import ACTIONS, offered
from paddlecloud.ui.feed import slim_workflow
from paddlecloud.ui.step_rows import Bar

AT = "2026-01-01T00:00:{:02}Z"
NODE = {
    "name": "w.train", "displayName": "train", "type": "Pod", "phase": "Succeeded",
    "startedAt": AT.format(0), "finishedAt": AT.format(10), "memoizationStatus": {"key": "k", "hit": False},
}  # fmt: skip


def run(phase: str = "Running", **spec: Any) -> dict[str, Any]:
    given = [{"name": "epochs", "value": "3"}, {"name": names.STARTER_PARAMETER, "value": "import sys"}]
    stored = {"arguments": {"parameters": [{"name": "epochs", "value": "1"}, {"name": "lr", "value": "0.1"}]}}
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "w", "namespace": "team", "annotations": {names.RUN_NAME: "a try"}},
        "spec": {"arguments": {"parameters": given}, "templates": [{"name": "main"}], **spec},
        "status": {
            "phase": phase, "progress": "1/2", "startedAt": AT.format(0), "nodes": {"n": NODE},
            "storedWorkflowTemplateSpec": {**stored, "templates": []}, "storedTemplates": {"x": {}},
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("phase", "spec", "shown"),
    [
        ("Running", {}, "Running"),
        ("Running", {"suspend": True}, "Suspended"),
        ("Running", {"shutdown": "Stop", "suspend": True}, "Terminating"),
        ("Failed", {"shutdown": "Stop"}, "Failed"),
        ("", {}, "Pending"),
    ],
)
def test_a_run_that_is_stopped_or_suspended_says_so(phase: str, spec: dict[str, Any], shown: str) -> None:
    assert run_rows.row_of(run(phase, **spec)).phase == shown


def test_the_row_of_a_run_is_found_by_its_name_parameters_and_reason() -> None:
    failed = run("Failed")
    failed["status"]["message"] = "Out of memory"
    row = run_rows.row_of(failed)
    assert row.parameters == (("epochs", "3"), ("lr", "0.1")), "those of its template come after its own"
    assert all(text in row.text for text in ("a try", "epochs=3", "out of memory", "failed"))
    assert row.done is None
    assert run_rows.row_of(run()).done == 0.5


def test_what_the_watch_keeps_of_a_run_shows_the_same() -> None:
    kept = slim_workflow(run("Succeeded"))
    assert is_packed(kept)
    assert "templates" not in kept["spec"]
    assert run_rows.row_of(kept) == run_rows.row_of(run("Succeeded"))
    assert [step.name for step in record.steps(kept)] == ["train"]
    assert not is_packed(slim_workflow(run("Running"))), "of one that runs a page is open"


@pytest.mark.parametrize(
    ("phase", "spec", "expected"),
    [
        ("Running", {}, {"suspend", "stop", "resubmit", "delete"}),
        ("Running", {"suspend": True}, {"resume", "stop", "resubmit", "delete"}),
        ("Running", {"shutdown": "Stop"}, {"suspend", "resubmit", "delete"}),
        ("Failed", {}, {"retry-failed", "resubmit", "delete"}),
        ("Succeeded", {}, {"resubmit", "delete"}),
    ],
)
def test_buttons_are_those_that_make_sense(phase: str, spec: dict[str, Any], expected: set[str]) -> None:
    assert {action.name for action in offered("pipelines", run(phase, **spec))} == expected


def test_a_resubmission_names_only_values_that_differ_and_never_becomes_a_flag() -> None:
    action = next(one for one in ACTIONS["pipelines"][1] if one.name == "resubmit")
    values = action.values(run(), {"p.epochs": "--force", "p.lr": "0.1", "p.other": "1"})
    assert [*action.words(run(), values)] == ["pipeline", "resubmit", "w", "-d", "--parameter=epochs=--force"]


def _pod(begun: int, ended: int | None) -> dict[str, Any]:
    state = {"terminated": {"startedAt": AT.format(begun), "finishedAt": AT.format(ended)}} if ended else {}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": AT.format(1)}
    return {
        "metadata": {"name": "w-n", "creationTimestamp": AT.format(0), "annotations": {names.NODE_ID: "n"}},
        "status": {"conditions": [scheduled], "containerStatuses": [{"name": "main", "state": state}]},
    }


def test_the_time_of_a_step_is_queued_pulling_and_running() -> None:
    found = step_rows.rows(record.steps(run(), [_pod(3, 10)]), {"n": NODE}, 0.0)
    assert found[0].bars == [Bar("queued", 0.0, 100.0), Bar("pulling", 100.0, 200.0), Bar("running", 300.0, 700.0)]
    assert found[0].log == "train"
    assert step_rows.counts(found) == (0, 1)


def test_of_a_step_whose_pod_is_gone_all_of_its_time_is_shown_as_one() -> None:
    assert step_rows.rows(record.steps(run()), {"n": NODE}, 0.0)[0].bars == [Bar("running", 0.0, 1000.0)]


def test_a_schedule_says_when_it_runs() -> None:
    cron = {"metadata": {"name": "nightly", "namespace": "team"}, "spec": {"schedules": ["0 9 * * *"], "suspend": True}}
    row = run_rows.schedule_row(cron)
    assert (row.phase, row.when, row.active) == ("Suspended", "0 9 * * *", 0)
    assert run_rows.schedule_row({**cron, "spec": {"schedule": "@hourly"}}).when == "@hourly"
