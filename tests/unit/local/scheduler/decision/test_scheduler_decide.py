"""Who goes where in one round: order, gangs, scores, and what is said to those who wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlecloud.local.scheduler.decision.scores import POLICIES
from unit.local.scheduler.scheduler_things import codes, group, node, placed, play, pod, reasons


def test_a_pod_goes_where_it_fits() -> None:
    result = play([node("small", "1"), node("big", "4")], [pod("p", "3")])
    assert placed(result) == {"p": "big"}


def test_placements_of_a_round_count_for_the_next_pods() -> None:
    result = play([node("n", "2")], [pod("a"), pod("b"), pod("c")])
    assert placed(result) == {"a": "n", "b": "n"}
    assert reasons(result) == {"c": "0/1 nodes are available: 1 Insufficient cpu. cpu: needs 1, 0 free of 2"}


def test_the_more_important_goes_first_then_the_older() -> None:
    waiting = [
        pod("young", created="2026-01-03"),
        pod("old", created="2026-01-02"),
        pod("important", priority=7, created="2026-01-04"),
    ]
    assert list(placed(play([node("n", "3")], waiting))) == ["important", "old", "young"]
    assert set(placed(play([node("n", "2")], waiting))) == {"important", "old"}


def test_a_group_whose_amounts_are_none_keeps_nobody_from_being_placed() -> None:
    """Its schema does not check them: one tenant's group is in the round of all."""
    odd = group("odd", minResources={"cpu": "9" * 400, "memory": "1e400", "pods": "some", "example.com/x": "1"})
    result = play([node("n")], [pod("p"), pod("member", group="odd")], groups=[odd])
    assert placed(result)["p"] == "n"


def test_reasons_are_counted_over_nodes() -> None:
    nodes = [node("a", "1"), node("b", "1"), node("c", ready=False), node("d", unschedulable=True)]
    text = reasons(play(nodes, [pod("p", "2")]))["p"]
    assert text.startswith(
        "0/4 nodes are available: 2 Insufficient cpu, 1 node(s) were not ready, 1 node(s) were unschedulable."
    )


def test_without_nodes_that_is_said() -> None:
    assert reasons(play([], [pod("p")])) == {"p": "0/0 nodes are available: no node has joined yet"}


@pytest.mark.parametrize(("policy", "expected"), [("spread", {"a", "b"}), ("pack", {"a"})])
def test_spread_takes_the_emptiest_node_and_pack_the_fullest(policy: str, expected: set[str]) -> None:
    result = play([node("a"), node("b")], [pod("p"), pod("q")], policy=POLICIES[policy])
    assert set(placed(result).values()) == expected


def test_preferred_affinity_outweighs_load() -> None:
    rule = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [rule]}}
    nodes = [node("empty"), node("ssd", labels={"disk": "ssd"})]
    there = pod("t", "3", on="ssd")
    assert placed(play(nodes, [there, pod("p", affinity=wish)])) == {"p": "ssd"}
    assert placed(play(nodes, [there, pod("p", "2", affinity=wish)])) == {"p": "empty"}  # a wish, no condition


def test_a_node_that_prefers_no_pods_comes_last() -> None:
    taint = {"key": "slow", "effect": "PreferNoSchedule"}
    nodes = [node("slow", "8", taints=[taint]), node("n", "1")]
    assert placed(play(nodes, [pod("p"), pod("q")])) == {"p": "n", "q": "slow"}
    assert placed(play(nodes, [pod("p", tolerations=[{"key": "slow", "operator": "Exists"}])])) == {"p": "slow"}


def test_pods_go_to_the_node_that_caches_their_data() -> None:
    claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}]}
    nodes = [node("a", "8"), node("b", labels={"paddlepaddle.org/juicefs-imagenet": "imagenet-runtime-0"})]
    assert placed(play(nodes, [pod("p", **claim), pod("q")])) == {"p": "b", "q": "a"}


# Gangs


def test_a_gang_is_placed_whole() -> None:
    members = [pod(f"g{number}", "2", group="g") for number in range(4)]
    assert len(placed(play([node("a"), node("b")], members, groups=[group("g", 4)]))) == 4


def test_a_gang_that_does_not_fit_takes_nothing_and_leaves_the_room_to_others() -> None:
    members = [pod(f"g{number}", "2", group="g") for number in range(3)]
    result = play([node("n", "4")], [*members, pod("single", "3")], groups=[group("g", 3)])
    assert placed(result) == {"single": "n"}
    assert reasons(result)["g0"] == (
        "gang g needs 3 pods at once, 2 fit: 0/1 nodes are available: 1 Insufficient cpu. cpu: needs 2, 0 free of 4"
    )
    assert set(reasons(result)) == {"g0", "g1", "g2"}


def test_a_gang_waits_for_all_its_pods_to_exist() -> None:
    result = play([node("n")], [pod("g0", group="g")], groups=[group("g", 2)])
    assert reasons(result) == {"g0": "gang g needs 2 pods at once, 1 exist"}
    assert codes(result) == {"g0": "GangIncomplete"}


def test_pods_of_a_group_that_does_not_exist_wait() -> None:
    assert reasons(play([node("n")], [pod("g0", group="g")])) == {"g0": "waiting for PodGroup g: it does not exist yet"}


def test_members_already_placed_count() -> None:
    pods = [pod("g0", "3", group="g", on="n"), pod("g1", "1", group="g")]
    assert placed(play([node("n")], pods, groups=[group("g", 2)])) == {"g1": "n"}


def test_beyond_its_least_number_a_gang_takes_what_it_gets_and_the_rest_gets_a_reason() -> None:
    members = [pod(f"g{number}", "2", group="g") for number in range(3)]
    result = play([node("n", "4")], members, groups=[group("g", 2)])
    assert len(placed(result)) == 2
    assert list(reasons(result).values()) == ["0/1 nodes are available: 1 Insufficient cpu. cpu: needs 2, 0 free of 4"]


def test_members_of_different_sizes_are_all_tried() -> None:
    members = [pod("ps", "6", group="g"), pod("w0", "1", group="g"), pod("w1", "1", group="g")]
    text = reasons(play([node("n", "4")], members, groups=[group("g", 3)]))["w0"]
    assert "needs 3 pods at once, 2 fit" in text
    assert "cpu: needs 6" in text


@pytest.mark.parametrize(("least", "expected"), [({"ps": 1, "worker": 1}, 2), ({"ps": 1, "worker": 2}, 0)])
def test_a_gang_may_ask_for_a_number_of_each_task(least: dict[str, int], expected: int) -> None:
    members = [pod("ps", group="g", task="ps"), *(pod(f"w{n}", "2", group="g", task="worker") for n in range(2))]
    result = play([node("n", "3")], members, groups=[group("g", 2, minTaskMember=least)])
    assert len(placed(result)) == expected


def test_the_coscheduling_label_makes_a_gang_too() -> None:
    other = {**group("g", 2), "apiVersion": "scheduling.x-k8s.io/v1alpha1"}
    members = [pod(f"g{number}", "3", labels={"scheduling.x-k8s.io/pod-group": "g"}) for number in range(2)]
    assert placed(play([node("n")], members, groups=[other])) == {}
    assert len(placed(play([node("n"), node("m")], members, groups=[other]))) == 2


def test_gangs_take_turns_by_age() -> None:
    def gang(name: str, created: str) -> dict[str, Any]:
        made = group(name, 2)
        made["metadata"]["creationTimestamp"] = created
        return made

    pods = [pod(f"{name}{number}", "2", group=name) for name in ("late", "early") for number in range(2)]
    result = play([node("n", "4")], pods, groups=[gang("late", "2026-01-02"), gang("early", "2026-01-01")])
    assert set(placed(result)) == {"early0", "early1"}


def test_sampling_still_finds_the_only_node_that_fits() -> None:
    nodes = [*(node(f"n{number}", "1") for number in range(50)), node("big", "4")]
    for start in (0, 7, 50, 51):
        policy = replace(POLICIES["spread"], sample=3, start=start)
        assert placed(play(nodes, [pod("p", "3")], policy=policy)) == {"p": "big"}
