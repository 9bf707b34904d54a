"""Simulated lives, divided machines and lost nodes: the pure rules of them."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.local.nodes import lives
from paddlecloud.local.nodes.lives import Life, LifeError, life_of
from paddlecloud.local.nodes.marks import FAILED, NODE_KIND, SIMULATE, SIMULATED, VIRTUAL
from paddlecloud.local.nodes.node_loss import LEASE_SECONDS, UNREACHABLE, alive, judge, stays
from paddlecloud.local.nodes.objects import declared_capacity, new_node, share_of
from paddlecloud.local.nodes.simulated import Addresses
from unit.local.scheduler.scheduler_things import node, placed, play, pod


def living(text: str, **spec: Any) -> dict[str, Any]:
    return pod("p", annotations={SIMULATE: text}, **spec)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Life()),
        ("run=30s", Life(run=30.0)),
        ("run=200ms,exit=1", Life(run=0.2, exit=1)),
        (" delay=2s , run=1.5h ", Life(delay=2.0, run=5400.0)),
        ("run=5", Life(run=5.0)),
    ],
)
def test_lives(text: str, expected: Life) -> None:
    assert life_of(living(text)) == expected


@pytest.mark.parametrize("text", ["run", "run=soon", "exit=256", "exit=-1", "walk=3s", "run=3 weeks"])
def test_a_life_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(LifeError, match=SIMULATE):
        life_of(living(text))


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [("Never", 0, False), ("Never", 1, False), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Always", 0, True)],
)
def test_restarts_follow_the_policy(policy: str, code: int, expected: bool) -> None:
    assert lives.restarts(living("", restartPolicy=policy), Life(exit=code)) == expected


def test_the_statuses_of_a_life() -> None:
    one = living("run=5s,exit=3", restartPolicy="Never")
    one["status"] = lives.running(one, ip="10.128.0.1", now=100.0)
    assert (one["status"]["phase"], one["status"]["containerStatuses"][0]["ready"]) == ("Running", True)
    assert lives.since(one) == 100.0
    ended = lives.ended(one, life_of(one), now=105.0)
    state = ended["containerStatuses"][0]["state"]["terminated"]
    assert (ended["phase"], state["exitCode"], state["reason"]) == ("Failed", 3, "Error")
    assert state["startedAt"] != state["finishedAt"]


def test_pods_ask_to_be_simulated_and_no_other_is() -> None:
    made = new_node("s", SIMULATED, capacity={}, now=0.0)
    assert placed(play([node("real"), made], [living(""), pod("q")])) == {"p": "s", "q": "real"}
    assert placed(play([node("real")], [living("")])) == {}
    assert placed(play([made], [pod("q")])) == {}


def test_a_virtual_node_remembers_what_it_was_declared_to_have() -> None:
    made = new_node("v", VIRTUAL, capacity={"nvidia.com/gpu": "4", "cpu": "0.5"}, labels={"a": "b"}, now=0.0)
    assert declared_capacity(made) == {"nvidia.com/gpu": "4", "cpu": "500m"}
    assert made["metadata"]["labels"]["a"] == "b"
    made["metadata"]["annotations"] = {"paddlecloud.org/capacity": "nonsense"}
    assert declared_capacity(made) == {}


def test_a_machine_is_divided_without_loss_of_whole_things() -> None:
    whole = {"cpu": "2", "memory": "7Gi", "pods": "500", "nvidia.com/gpu": "3"}
    parts = [share_of(whole, 2, index) for index in range(2)]
    assert [part["nvidia.com/gpu"] for part in parts] == ["2", "1"]
    assert [part["cpu"] for part in parts] == ["1", "1"]
    assert [part["pods"] for part in parts] == ["250", "250"]
    assert share_of(whole, 4, 3)["nvidia.com/gpu"] == "0"
    assert share_of({"cpu": "1"}, 3, 0) == {"cpu": "333m"}
    assert share_of(whole, 1, 0) == whole


def marked(kind: str = "", *, failed: bool = False) -> dict[str, Any]:
    return node("n", labels={NODE_KIND: kind} if kind else {}, annotations={FAILED: "now"} if failed else {})


@pytest.mark.parametrize(
    ("one", "lease_renewed", "expected"),
    [
        (marked(), None, True),  # no Lease seen yet: it has just come
        (marked(), 100.0, True),
        (marked(), 100.0 - LEASE_SECONDS, False),
        (marked(SIMULATED), 0.0, True),
        (marked(SIMULATED, failed=True), 100.0, False),
        (marked(failed=True), 100.0, False),
    ],
)
def test_which_nodes_are_alive(one: dict[str, Any], lease_renewed: float | None, expected: bool) -> None:
    assert alive(one, lease_renewed, 100.0) == expected


TAINT = {"key": "k", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        ([], [TAINT], 0.0),
        ([], [{"key": "k", "effect": "NoSchedule"}], None),
        ([{"key": "k", "operator": "Exists"}], [TAINT], None),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 60}], [TAINT], 50.0),
        ([{"key": "k", "operator": "Exists", "tolerationSeconds": 5}], [TAINT], -5.0),
        ([{"key": "k", "operator": "Exists"}], [TAINT, {"key": "other", "effect": "NoExecute"}], 0.0),
    ],
)
def test_how_long_a_pod_may_stay(tolerations: list[Any], taints: list[Any], expected: float | None) -> None:
    assert stays(pod("p", tolerations=tolerations), taints, since=100.0, now=110.0) == expected


GONE = {"key": UNREACHABLE, "effect": "NoExecute"}
PATIENT = [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]


def test_a_silent_node_is_lost_its_pods_may_wait_and_it_may_come_back() -> None:
    pods = {"n": [pod("quick", on="n"), pod("patient", on="n", tolerations=PATIENT), pod("over", phase="Succeeded")]}
    silent, lease_renewed = node("n"), {"n": 100.0 - LEASE_SECONDS}
    first = judge([silent], pods, lease_renewed=lease_renewed, tainted={}, missing={}, now=100.0)
    assert (first.lost, first.remove) == (["n"], [])
    silent = node("n", taints=[GONE])
    second = judge([silent], pods, lease_renewed=lease_renewed, tainted=first.tainted, missing={}, now=101.0)
    assert (second.lost, [(r.key.name, r.force) for r in second.remove]) == ([], [("quick", False)])
    assert (second.tainted, second.again) == ({"n": 101.0}, 300.0)
    third = judge([silent], pods, lease_renewed=lease_renewed, tainted=second.tainted, missing={}, now=401.0)
    assert [r.key.name for r in third.remove] == ["quick", "patient"]
    back = judge([silent], {}, lease_renewed={"n": 401.0}, tainted=second.tainted, missing={}, now=402.0)
    assert (back.back, back.remove) == (["n"], [])


def test_pods_of_a_dead_node_and_of_one_that_is_no_more_are_removed_by_force() -> None:
    pods = {"n": [pod("a", tolerations=PATIENT), pod("b", phase="Failed")], "never": [pod("c")]}
    dead = node("n", annotations={FAILED: "now"}, taints=[GONE])
    node_loss = judge([dead], pods, lease_renewed={}, tainted={}, missing={"never": 0.0}, now=40.0)
    assert [(r.key.name, r.force, r.why) for r in node_loss.remove] == [
        ("a", True, f"node n has taint {UNREACHABLE}"),
        ("b", True, f"node n has taint {UNREACHABLE}"),
        ("c", True, "node never no longer exists"),
    ]


def test_pods_may_wait_for_a_node_that_is_about_to_come() -> None:
    pods = {"soon": [pod("a")]}
    first = judge([], pods, lease_renewed={}, tainted={}, missing={}, now=100.0)
    assert (first.remove, first.missing) == ([], {"soon": 100.0})
    assert judge([], pods, lease_renewed={}, tainted={}, missing=first.missing, now=139.0).remove == []
    assert judge([node("soon")], pods, lease_renewed={}, tainted={}, missing=first.missing, now=141.0).missing == {}
    assert [
        r.key.name for r in judge([], pods, lease_renewed={}, tainted={}, missing=first.missing, now=140.0).remove
    ] == ["a"]


def test_addresses_differ_and_come_back() -> None:
    addresses = Addresses()
    addresses.reserve("old", "10.128.0.1")
    assert addresses.of("a") != "10.128.0.1"
    assert addresses.of("a") == addresses.of("a")
    assert addresses.of("a") != addresses.of("b")
