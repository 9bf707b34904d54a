"""The status of PodGroups and Queues, in Volcano's phases and words."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from paddlecloud.kube.quantity import amounts
from paddlecloud.local.scheduler.controller import group_status_writer
from paddlecloud.local.scheduler.controller.group_status import phase_of, queue_status, shortage_of, status_of
from paddlecloud.local.scheduler.state.snapshot import COSCHEDULING, Gang, GroupKey

KEY = GroupKey("default", "g")


def gang(placed: int = 0, least: int = 2, **fields: Any) -> Gang:
    return Gang(KEY, min_member=least, placed=placed, **fields)


@pytest.mark.parametrize(
    ("placed", "phases", "waiting", "now", "shortage", "expected"),
    [
        (0, {}, 0, "", {}, "Inqueue"),  # nothing prevents it: its pods may be made
        (0, {}, 0, "", {"cpu": "too little"}, "Pending"),
        (0, {}, 0, "Inqueue", {"cpu": "too little"}, "Inqueue"),  # once let in, it stays in
        (0, {"a": "Pending", "b": "Pending"}, 2, "", {}, "Inqueue"),
        (2, {"a": "Running", "b": "Pending"}, 0, "Inqueue", {}, "Running"),
        (1, {"a": "Running", "b": "Pending"}, 1, "Running", {}, "Unknown"),
        (0, {"a": "Succeeded", "b": "Succeeded"}, 0, "Running", {}, "Completed"),
        (0, {"a": "Succeeded", "b": "Failed"}, 0, "Running", {}, "Completed"),
        (0, {"a": "Succeeded"}, 0, "Running", {}, "Inqueue"),  # less than its least number ever ran
    ],
)
def test_phases(
    placed: int, phases: dict[str, str], waiting: int, now: str, shortage: dict[str, str], expected: str
) -> None:
    assert phase_of(gang(placed), Counter(phases.values()), waiting=waiting, now=now, shortage=shortage) == expected


def status(one: Gang, phases: dict[str, str], **fields: Any) -> Any:
    given = {"old": {}, "waiting": 0, "why": "", "code": "", "shortage": {}, "now": 0.0, **fields}
    return status_of(one, Counter(phases.values()), **given)


def test_counts_and_the_condition_of_a_running_gang() -> None:
    found = status(gang(2), {"a": "Running", "b": "Running", "c": "Failed"})
    assert (found["running"], found["failed"]) == (2, 1)
    assert "succeeded" not in found
    assert [(c["type"], c["status"]) for c in found["conditions"]] == [("Scheduled", "True")]


@pytest.mark.parametrize(
    ("code", "reason"), [("Unschedulable", "NotEnoughResources"), ("GangIncomplete", "NotEnoughPods")]
)
def test_a_refusal_becomes_a_condition_with_its_numbers(code: str, reason: str) -> None:
    text = "gang g needs 2 pods at once, 1 fit"
    found = status(gang(), {"a": "Pending"}, waiting=1, why=text, code=code)["conditions"][0]
    assert (found["type"], found["status"], found["reason"]) == ("Unschedulable", "True", reason)
    assert found["message"] == text


def test_a_status_that_did_not_change_is_equal_at_any_time() -> None:
    first = status(gang(2), {"a": "Running", "b": "Running"}, now=10.0)
    assert status(gang(2), {"a": "Running", "b": "Running"}, old=first, now=99.0) == first


def test_the_coscheduling_kind_has_its_own_words() -> None:
    other = Gang(GroupKey("default", "g", COSCHEDULING), min_member=2, placed=0)
    assert status(other, {"a": "Pending"}, waiting=1) == {"phase": "Scheduling"}


def test_what_least_resources_lack_has_numbers() -> None:
    one = gang(min_resources=amounts({"cpu": "8", "memory": "1Gi"}))
    free, have = amounts({"cpu": "3", "memory": "4Gi"}), amounts({"cpu": "4", "memory": "4Gi"})
    assert shortage_of(one, free, have) == {"cpu": "cpu: needs 8 in all, 3 free of 4"}


def test_queues_count_their_groups_and_what_they_use() -> None:
    found = queue_status(["Running", "Running", "Pending"], amounts({"cpu": "3", "pods": "0"}), old={})
    assert (found["state"], found["running"], found["pending"], found["allocated"]) == ("Open", 2, 1, {"cpu": "3"})


RUNNING = {"phase": "Running", "running": 2}
WAITING = {"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "status": "True", "message": "1 fit"}]}
REWORDED = {"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "status": "True", "message": "2 fit"}]}


@pytest.mark.parametrize(
    ("status", "old", "started", "expected"),
    [
        (
            {"phase": "Inqueue"},
            {},
            False,
            group_status_writer.SOON,
        ),  # at once while few do: a controller waits to make pods
        ({"phase": "Inqueue"}, {}, True, group_status_writer.SETTLE),
        (RUNNING, {"phase": "Inqueue"}, True, group_status_writer.SETTLE),
        (RUNNING, {"phase": "Running", "running": 1}, True, group_status_writer.SETTLE),
        ({"phase": "Completed"}, RUNNING, True, 0.0),
        (WAITING, {"phase": "Inqueue"}, True, group_status_writer.SETTLE),
        (
            WAITING,
            {**WAITING, "conditions": [{**WAITING["conditions"][0], "message": "2 fit"}]},
            True,
            group_status_writer.REFRESH,
        ),
    ],
)
def test_what_is_urgent_to_write(status: Any, old: Any, started: bool, expected: float) -> None:
    assert group_status_writer._patience(status, old, started=started) == expected
