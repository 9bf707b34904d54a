"""Queues: limits, shares, turns, borrowing and giving back."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.scheduler.decision.queues import divide
from unit.local.scheduler.scheduler_things import codes, evicted, group, node, placed, play, pod, queue, reasons


@pytest.mark.parametrize(
    ("whole", "claims", "expected"),
    [
        (12, [("a", 1, 99, 0), ("b", 2, 99, 0)], {"a": 4, "b": 8}),
        (12, [("a", 1, 2, 0), ("b", 2, 99, 0)], {"a": 2, "b": 10}),
        (12, [("a", 1, 2, 0), ("b", 2, 3, 0)], {"a": 2, "b": 3}),
        (12, [("a", 1, 99, 0), ("b", 1, 5, 0), ("c", 2, 1, 0)], {"a": 6, "b": 5, "c": 1}),
        (12, [("a", 1, 0, 6), ("b", 1, 99, 0)], {"a": 6, "b": 6}),  # what is guaranteed counts as wanted
        (0, [("a", 1, 5, 0)], {"a": 0}),
        (12, [], {}),
    ],
)
def test_shares_by_weight(whole: int, claims: list[Any], expected: dict[str, int]) -> None:
    assert divide(whole, claims) == expected


def test_a_queue_uses_no_more_than_it_may() -> None:
    waiting = [pod(f"p{number}", "2", queue="q") for number in range(3)]
    result = play([node("n", "8")], waiting, queues=[queue("q", capability={"cpu": "4"})])
    assert set(placed(result)) == {"p0", "p1"}
    assert reasons(result) == {"p2": "queue q may use 4 cpu: 4 in use, 2 wanted"}
    assert codes(result) == {"p2": "QueueFull"}


def test_pods_that_run_count_for_their_queue() -> None:
    pods = [pod("t", "3", on="n", queue="q"), pod("p", "2", queue="q")]
    assert codes(play([node("n", "8")], pods, queues=[queue("q", capability={"cpu": "4"})])) == {"p": "QueueFull"}


def test_a_gang_needs_room_in_its_queue_for_all() -> None:
    members = [pod(f"g{number}", "2", group="g") for number in range(3)]
    groups = [group("g", 3, queue="q")]
    result = play([node("n", "8")], members, groups=groups, queues=[queue("q", capability={"cpu": "5"})])
    assert placed(result) == {}
    assert reasons(result)["g0"] == "gang g needs 3 pods at once: queue q may use 5 cpu: 0 in use, 6 wanted"


@pytest.mark.parametrize(
    ("queues", "expected"),
    [([], "NoQueue"), ([queue("q")], ""), ([{**queue("q"), "status": {"state": "Closed"}}], "QueueClosed")],
)
def test_a_queue_must_exist_and_be_open(queues: list[Any], expected: str) -> None:
    assert codes(play([node("n")], [pod("p", queue="q")], queues=queues)).get("p", "") == expected


def test_the_default_queue_need_not_exist() -> None:
    assert placed(play([node("n")], [pod("p")], queues=[queue("q")])) == {"p": "n"}


def test_queues_share_by_weight() -> None:
    waiting = [pod(f"{name}{number}", "1", queue=name) for name in ("a", "b") for number in range(6)]
    result = play([node("n", "6")], waiting, queues=[queue("a", weight=1), queue("b", weight=2)])
    names = [name[0] for name in placed(result)]
    assert (names.count("a"), names.count("b")) == (2, 4)


def test_an_important_queue_is_served_first() -> None:
    waiting = [pod(f"{name}{number}", "1", queue=name) for name in ("a", "b") for number in range(3)]
    result = play([node("n", "3")], waiting, queues=[queue("a"), queue("b", priority=5)])
    assert set(placed(result)) == {"b0", "b1", "b2"}


def test_a_strict_queue_lets_nobody_pass() -> None:
    waiting = [pod("big", "9", queue="q"), pod("small", "1", queue="q")]
    assert placed(play([node("n", "4")], waiting, queues=[queue("q")])) == {"small": "n"}
    assert placed(play([node("n", "4")], waiting, queues=[queue("q", dequeueStrategy="fifo")])) == {}


COHORT = [
    queue("cohort", capability={"cpu": "8"}, deserved={"cpu": "8"}),
    queue("a", parent="cohort", deserved={"cpu": "4"}, capability={"cpu": "8"}),
    queue("b", parent="cohort", deserved={"cpu": "4"}, capability={"cpu": "6"}),
]


def test_a_queue_borrows_what_its_cohort_does_not_use() -> None:
    waiting = [pod(f"a{number}", "1", queue="a") for number in range(9)]
    result = play([node("n", "16")], waiting, queues=COHORT)
    assert len(placed(result)) == 8  # the cohort's limit, not the node's
    assert "queue a may use 8 cpu" in reasons(result)["a8"]
    waiting = [pod(f"b{number}", "1", queue="b") for number in range(9)]
    assert len(placed(play([node("n", "16")], waiting, queues=COHORT))) == 6


def test_what_was_borrowed_is_given_back_to_who_deserves_it() -> None:
    running = [pod(f"a{number}", "1", on="n", queue="a", priority=9) for number in range(8)]
    result = play([node("n", "16")], [*running, pod("b0", "2", queue="b")], queues=COHORT)
    assert list(evicted(result).values()) == ["Reclaimed", "Reclaimed"]


def test_nobody_takes_back_beyond_his_own_share() -> None:
    running = [pod(f"a{number}", "1", on="n", queue="a") for number in range(8)]
    assert evicted(play([node("n", "16")], [*running, pod("b0", "5", queue="b")], queues=COHORT)) == {}


def test_a_queue_within_its_share_gives_nothing_back() -> None:
    running = [pod(f"{name}{n}", "1", on="n", queue=name) for name in ("a", "b") for n in range(4)]
    assert evicted(play([node("n", "16")], [*running, pod("b9", "1", queue="b")], queues=COHORT)) == {}


def test_a_queue_that_is_not_reclaimable_gives_nothing_back() -> None:
    stubborn = [COHORT[0], queue("a", parent="cohort", deserved={"cpu": "4"}, reclaimable=False), COHORT[2]]
    running = [pod(f"a{number}", "1", on="n", queue="a") for number in range(8)]
    assert evicted(play([node("n", "16")], [*running, pod("b0", "2", queue="b")], queues=stubborn)) == {}


def test_priority_decides_within_a_queue_and_not_across() -> None:
    limits = [queue("a", capability={"cpu": "4"}), queue("b", capability={"cpu": "8"})]
    running = [pod("a0", "4", on="n", queue="a", priority=1), pod("b0", "4", on="n", queue="b", priority=0)]
    result = play([node("n", "8")], [*running, pod("high", "4", queue="a", priority=5)], queues=limits)
    assert evicted(result) == {"a0": "Preempted"}


def test_what_is_guaranteed_to_one_queue_is_not_lent_to_another() -> None:
    cohort = [
        queue("cohort", capability={"cpu": "8"}),
        queue("a", parent="cohort"),
        queue("b", parent="cohort", guarantee={"resource": {"cpu": "3"}}),
    ]
    waiting = [pod(f"a{number}", "1", queue="a") for number in range(8)]
    assert len(placed(play([node("n", "16")], waiting, queues=cohort))) == 5


def test_a_circle_of_parents_harms_nobody() -> None:
    circle = [queue("a", parent="b"), queue("b", parent="a")]
    assert placed(play([node("n")], [pod("p", queue="a")], queues=circle)) == {"p": "n"}


def test_nobody_takes_back_what_was_given_in_the_same_round() -> None:
    """A borrower served before the lender must not be bound and driven out by one decision."""
    cohort = [
        queue("cohort", capability={"cpu": "4"}, deserved={"cpu": "4"}),
        queue("a", parent="cohort", deserved={"cpu": "0"}, priority=5),
        queue("b", parent="cohort", deserved={"cpu": "4"}),
    ]
    waiting = [pod("a0", "4", queue="a"), pod("b0", "4", queue="b")]
    result = play([node("n", "8")], waiting, queues=cohort)
    assert placed(result) == {"a0": "n"}
    assert evicted(result) == {}
