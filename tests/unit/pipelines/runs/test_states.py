"""The words for a run's state: those that end the wait of kfp's clients, and those that must not."""

from __future__ import annotations

import pytest

from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import states

ENDS_THE_WAIT = ("succeeded", "failed", "skipped", "error")


@pytest.mark.parametrize(
    ("phase", "spec", "v1", "v2"),
    [
        ("", {}, "Pending", "PENDING"),
        ("Pending", {}, "Pending", "PENDING"),
        ("Running", {}, "Running", "RUNNING"),
        ("Running", {"suspend": True}, "Running", "PAUSED"),
        ("Running", {"shutdown": "Stop"}, "Terminating", "CANCELING"),
        ("Succeeded", {}, "Succeeded", "SUCCEEDED"),
        ("Failed", {}, "Failed", "FAILED"),
        ("Failed", {"shutdown": "Terminate"}, "Failed", "FAILED"),
        ("Error", {}, "Error", "FAILED"),
    ],
)
def test_a_phase_has_a_word_in_each_version(phase: str, spec: dict[str, object], v1: str, v2: str) -> None:
    workflow = {"metadata": {}, "spec": spec, "status": {"phase": phase}}
    assert states.of_workflow(workflow) == (v1, v2)
    assert states.is_over(workflow) == (v1.lower() in ENDS_THE_WAIT) == (v2.lower() in ENDS_THE_WAIT)


def test_lists_of_metadata_read_argos_label() -> None:
    assert states.phase_of({"metadata": {"labels": {names.PHASE: "Failed"}}}) == "Failed"


@pytest.mark.parametrize(("second", "first_failure"), [("Succeeded", "b"), ("Failed", "a(0)")])
def test_an_attempt_that_failed_is_no_cause_where_a_later_one_succeeded(second: str, first_failure: str) -> None:
    nodes = {
        "r": {"name": "w.a", "type": "Retry", "phase": second, "children": ["1", "2"]},
        "1": _pod("a(0)", "Failed", 1),
        "2": _pod("a(1)", second, 2),
        "b": _pod("b", "Failed", 3),
    }
    workflow = {"metadata": {"name": "w"}, "status": {"phase": "Failed", "nodes": nodes}}
    assert states.failure(workflow) == f"{first_failure}: exit code 1"


def _pod(name: str, phase: str, second: int) -> dict[str, object]:
    times = {"startedAt": f"2026-01-01T00:00:0{second}Z", "finishedAt": f"2026-01-01T00:00:0{second}Z"}
    return {"name": f"w.{name}", "displayName": name, "type": "Pod", "phase": phase, "message": "exit code 1", **times}


@pytest.mark.parametrize(
    ("failure", "account"),
    [
        ('claims is forbidden: User "system:serviceaccount:team:default" cannot create resource "claims"', "default"),
        ('claims is forbidden: User "ann" cannot create resource "claims"', ""),
        ("main: Error (exit code 1)", ""),
    ],
)
def test_a_step_whose_account_lacks_a_right_is_known(failure: str, account: str) -> None:
    assert states.account_without_right(failure) == account
