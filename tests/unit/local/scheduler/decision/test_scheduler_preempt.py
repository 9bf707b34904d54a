"""Making room: who must go, who never does, and that nobody goes without need."""

from __future__ import annotations

from typing import Any

import pytest

from unit.local.scheduler.scheduler_things import codes, evicted, group, node, placed, play, pod, reasons

BUDGET = {
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0},
}


def test_less_important_pods_make_room() -> None:
    result = play([node("n", "4")], [pod("low", "4", on="n", priority=1), pod("high", "3", priority=2)])
    assert evicted(result) == {"low": "Preempted"}
    assert [(p.key.name, where) for p, where in result.nominations] == [("high", "n")]
    assert placed(result) == {}  # it is bound when the room is there
    assert codes(result) == {"high": "Preempting"}
    assert reasons(result)["high"].endswith("Room is being made: default/low must go")


@pytest.mark.parametrize("priority", [1, 2])
def test_equally_or_more_important_pods_stay(priority: int) -> None:
    result = play([node("n", "4")], [pod("there", "4", on="n", priority=priority), pod("p", "3", priority=1)])
    assert evicted(result) == {}
    assert codes(result) == {"p": "Unschedulable"}


def test_only_as_many_leave_as_must() -> None:
    there = [pod(f"t{number}", "1", on="n", priority=1) for number in range(4)]
    assert len(evicted(play([node("n", "4")], [*there, pod("high", "2", priority=5)]))) == 2


def test_the_least_important_leave() -> None:
    there = [pod("a", "2", on="n", priority=3), pod("b", "2", on="n", priority=1)]
    assert evicted(play([node("n", "4")], [*there, pod("high", "2", priority=5)])) == {"b": "Preempted"}


def test_the_node_is_chosen_where_it_costs_least() -> None:
    nodes = [node("a", "4"), node("b", "4"), node("c", "4")]
    there = [
        pod("a1", "4", on="a", priority=3),
        pod("b1", "2", on="b", priority=1),
        pod("b2", "2", on="b", priority=1),
        pod("c1", "4", on="c", priority=1),
    ]
    assert evicted(play(nodes, [*there, pod("high", "4", priority=5)])) == {"c1": "Preempted"}


def test_pods_covered_by_a_used_up_budget_leave_last() -> None:
    nodes = [node("a", "4"), node("b", "4")]
    there = [
        pod("web", "4", on="a", priority=1, labels={"app": "web"}),
        pod("other", "4", on="b", priority=2),
    ]
    waiting = pod("high", "4", priority=5)
    assert evicted(play(nodes, [*there, waiting])) == {"web": "Preempted"}
    assert evicted(play(nodes, [*there, waiting], budgets=[BUDGET])) == {"other": "Preempted"}


def test_a_pod_may_decline_to_preempt() -> None:
    waiting = pod("high", "3", priority=9, preemptionPolicy="Never")
    assert evicted(play([node("n", "4")], [pod("low", "4", on="n"), waiting])) == {}


def test_nobody_leaves_a_node_that_would_not_take_the_pod_anyway() -> None:
    nodes = [node("n", "4", labels={"zone": "a"})]
    waiting = pod("high", "3", priority=9, nodeSelector={"zone": "b"})
    assert evicted(play(nodes, [pod("low", "4", on="n"), waiting])) == {}


def test_nobody_leaves_when_it_would_not_help() -> None:
    assert evicted(play([node("n", "4")], [pod("low", "4", on="n"), pod("high", "5", priority=9)])) == {}


def test_while_pods_are_leaving_for_it_a_pod_drives_out_no_more() -> None:
    there = [pod("going", "2", on="n", leaving=True), pod("low", "2", on="n")]
    waiting = pod("high", "2", priority=9, nominated="n")
    result = play([node("n", "4")], [*there, waiting])
    assert evicted(result) == {}
    assert codes(result) == {"high": "Preempting"}


def test_room_being_made_is_not_given_to_others() -> None:
    there = [pod("low", "4", on="n", priority=1)]
    waiting = [pod("high", "3", priority=9), pod("small", "1", priority=0)]
    assert placed(play([node("n", "5")], [*there, *waiting])) == {}
    leaving = [pod("low", "3", on="n", priority=1, leaving=True)]
    held = [pod("high", "4", priority=9, nominated="n"), pod("small", "1", priority=0)]
    assert placed(play([node("n", "5")], [*leaving, *held])) == {}


def test_a_gang_gets_room_for_all_or_drives_out_nobody() -> None:
    there = [pod("a", "4", on="x", priority=1), pod("b", "4", on="y", priority=9)]
    members = [pod(f"g{number}", "3", group="g", priority=5) for number in range(2)]
    nodes = [node("x", "4"), node("y", "4")]
    assert evicted(play(nodes, [*there, *members], groups=[group("g", 2)])) == {}
    there[1]["spec"]["priority"] = 1
    assert evicted(play(nodes, [*there, *members], groups=[group("g", 2)])) == {"a": "Preempted", "b": "Preempted"}


def test_a_gang_leaves_whole() -> None:
    victims = [pod(f"v{number}", "2", on=where, group="v") for number, where in enumerate(("x", "y"))]
    result = play([node("x", "2"), node("y", "2")], [*victims, pod("high", "2", priority=5)], groups=[group("v", 2)])
    assert evicted(result) == {"v0": "Preempted", "v1": "Preempted"}


def test_a_gang_that_can_spare_a_pod_loses_only_that() -> None:
    victims = [pod(f"v{number}", "2", on=where, group="v") for number, where in enumerate(("x", "y"))]
    result = play([node("x", "2"), node("y", "2")], [*victims, pod("high", "2", priority=5)], groups=[group("v", 1)])
    assert len(evicted(result)) == 1


def test_a_lone_pod_leaves_rather_than_a_gang() -> None:
    pods = [
        pod("v0", "2", on="x", group="v"),
        pod("v1", "2", on="y", group="v"),
        pod("lone", "2", on="z"),
        pod("high", "2", priority=5),
    ]
    nodes = [node(name, "2") for name in "xyz"]
    assert evicted(play(nodes, pods, groups=[group("v", 2)])) == {"lone": "Preempted"}


def test_a_gang_with_an_important_member_stays() -> None:
    victims = [pod("v0", "2", on="x", group="v"), pod("v1", "2", on="y", group="v", priority=9)]
    nodes = [node("x", "2"), node("y", "2")]
    assert evicted(play(nodes, [*victims, pod("high", "2", priority=5)], groups=[group("v", 2)])) == {}


def apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_a_pod_in_the_way_by_its_label_alone_leaves() -> None:
    pods = [pod("web", "1", on="n", labels={"app": "web"}), pod("other", "1", on="n")]
    result = play([node("n", "8")], [*pods, pod("high", "1", priority=5, **apart("web"))])
    assert evicted(result) == {"web": "Preempted"}


def test_a_pod_that_room_is_made_for_is_no_company_yet() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    near = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    pods = [
        pod("low", "4", on="n", priority=0),
        pod("high", "4", priority=9, labels={"app": "x"}),
        pod("friend", "0", priority=1, **near),
    ]
    result = play([node("n", "4")], pods)
    assert evicted(result) == {"low": "Preempted"}
    assert placed(result) == {}
