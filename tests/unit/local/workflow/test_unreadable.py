"""Odd values end a workflow with the reason; the log shows where, so that a bug of ours is not taken for one."""

from __future__ import annotations

import logging

import pytest

from paddlecloud.local.workflow.decision.metrics import WorkflowPlan
from paddlecloud.local.workflow.unreadable import UnreadableLog
from unit.local.workflow.simulation import Simulation, workflow

SPEC = "entrypoint: a\nactiveDeadlineSeconds: {}\ntemplates: [{{name: a, container: {{image: busybox}}}}]"


def why_unreadable(odd: str) -> Exception:
    run = Simulation(workflow(SPEC.format("60")))
    run.step()
    run.workflow["spec"]["activeDeadlineSeconds"] = odd
    plan = run.decided()
    assert isinstance(plan, WorkflowPlan)
    assert plan.unreadable is not None
    return plan.unreadable


def test_each_line_that_cannot_read_a_workflow_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reports = UnreadableLog()
    with caplog.at_level(logging.WARNING):
        reports.report("workflow ns/a", why_unreadable("soon"))
        reports.report("workflow ns/b", why_unreadable("later"))
    (record,) = caplog.messages
    assert "workflow ns/a cannot be read (ValueError: " in record
    assert "decide.py:" in record
    assert "stopping.py:" in record


def test_the_text_of_a_tenant_is_one_short_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        UnreadableLog().report("workflow ns/a", why_unreadable("\n" * 100_000))
    (record,) = caplog.messages
    assert (len(record) < 2000, "\n" in record) == (True, False)


def test_a_failed_assertion_does_not_end_a_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> float:
        raise AssertionError

    monkeypatch.setattr("paddlecloud.local.workflow.decision.stopping.deadline_of", broken)
    with pytest.raises(AssertionError):
        Simulation(workflow(SPEC.format("60"))).decided()
