"""Rules about neighbours, in both directions, required and preferred."""

from __future__ import annotations

from typing import Any

import pytest

from unit.local.scheduler.scheduler_things import group, node, placed, play, pod, reasons

ZONE, HOST = "zone", "kubernetes.io/hostname"


def term(labels: dict[str, str], key: str = HOST, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **fields}


def affinity(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def wish(kind: str, one: dict[str, Any], weight: int = 1) -> dict[str, Any]:
    entry = {"weight": weight, "podAffinityTerm": one}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [entry]}}}


def spread(skew: int = 1, key: str = ZONE, when: str = "DoNotSchedule") -> dict[str, Any]:
    rule = {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    return {"topologySpreadConstraints": [rule]}


X = {"app": "x"}
ZONES = [node("a1", labels={"zone": "a"}), node("a2", labels={"zone": "a"}), node("b1", "16", labels={"zone": "b"})]


def test_a_pod_goes_where_its_company_is() -> None:
    there = pod("t", on="a1", labels=X)
    assert placed(play(ZONES, [there, pod("p", **affinity("podAffinity", term(X)))])) == {"p": "a1"}
    near = placed(play(ZONES, [there, pod("p", "4", **affinity("podAffinity", term(X, ZONE)))]))
    assert near == {"p": "a2"}  # the same zone will do


def test_without_its_company_a_pod_waits() -> None:
    text = reasons(play(ZONES, [pod("p", **affinity("podAffinity", term(X)))]))["p"]
    assert "3 node(s) didn't match pod affinity rules" in text


def test_a_refusal_by_thousands_of_values_gives_their_number() -> None:
    many = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{n}" for n in range(5_000)]}]}
    rule = {"topologyKey": HOST, "labelSelector": many}
    result = play([node("a")], [pod("p", **affinity("podAffinity", rule))])
    assert "app in (5000 values)" in reasons(result)["p"]
    assert len(reasons(result)["p"]) < 1_000


def test_the_first_of_a_group_that_seeks_its_own_kind_may_start_it() -> None:
    waiting = [pod(f"p{n}", labels=X, **affinity("podAffinity", term(X, ZONE))) for n in range(2)]
    where = placed(play(ZONES, waiting))
    assert {name[0] for name in where.values()} in ({"a"}, {"b"})
    assert len(where) == 2


def test_company_in_another_namespace_does_not_count_unless_named() -> None:
    there = pod("t", on="a1", labels=X, namespace="other")
    for fields, expected in (
        ({}, {}),
        ({"namespaces": ["other"]}, {"p": "a1"}),
        ({"namespaceSelector": {}}, {"p": "a1"}),
    ):
        waiting = pod("p", **affinity("podAffinity", term(X, **fields)))
        assert placed(play(ZONES, [there, waiting])) == expected


def test_pods_that_avoid_each_other_go_to_different_nodes() -> None:
    waiting = [pod(f"p{n}", labels=X, **affinity("podAntiAffinity", term(X))) for n in range(4)]
    result = play(ZONES, waiting)
    assert len(set(placed(result).values())) == 3
    assert len(reasons(result)) == 1


def test_a_pod_there_may_refuse_a_newcomer() -> None:
    there = pod("t", on="b1", labels={"app": "shy"}, **affinity("podAntiAffinity", term(X, ZONE)))
    result = play(ZONES, [there, pod("p", "3", labels=X), pod("q", "3", labels={"app": "y"})])
    assert placed(result)["p"] in ("a1", "a2")
    assert placed(result)["q"] == "b1"
    full = [pod(f"f{n}", "4", on=name) for n, name in enumerate(("a1", "a2"))]
    text = reasons(play(ZONES, [there, *full, pod("p", labels=X)]))["p"]
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in text


def test_others_of_the_lane_are_tried_when_only_the_first_ones_label_is_refused() -> None:
    there = pod("t", on="n", **affinity("podAntiAffinity", term(X)))
    waiting = [pod("p", labels=X), pod("q", labels={"app": "y"})]
    assert placed(play([node("n")], [there, *waiting])) == {"q": "n"}


def test_a_gang_that_must_stay_apart_needs_as_many_nodes() -> None:
    def members(count: int) -> list[dict[str, Any]]:
        rule = affinity("podAntiAffinity", term(X))
        return [pod(f"g{n}", labels=X, group="g", **rule) for n in range(count)]

    assert len(placed(play(ZONES, members(3), groups=[group("g", 3)]))) == 3
    assert placed(play(ZONES, members(4), groups=[group("g", 4)])) == {}


def test_wishes_about_company() -> None:
    there = pod("t", on="a1", labels=X)
    assert placed(play(ZONES, [there, pod("p", **wish("podAffinity", term(X)))])) == {"p": "a1"}
    assert placed(play(ZONES, [there, pod("p", "4", **wish("podAffinity", term(X)))])) != {}  # no condition
    two = [node("m", "16"), node("n", "4")]
    there = pod("t", on="m", labels=X)
    assert placed(play(two, [there, pod("p", **wish("podAntiAffinity", term(X)))])) == {"p": "n"}


@pytest.mark.parametrize("skew", [1, 2])
def test_hard_spreading_keeps_domains_level(skew: int) -> None:
    waiting = [pod(f"p{n}", "1", labels=X, **spread(skew)) for n in range(4)]
    zones = [where[0] for where in placed(play(ZONES, waiting)).values()]
    assert len(zones) == 4
    assert abs(zones.count("a") - zones.count("b")) <= skew


def test_hard_spreading_refuses_what_would_tip_the_balance() -> None:
    there = [pod(f"t{n}", on="b1", labels=X) for n in range(2)]
    full = [pod(f"f{n}", "4", on=name) for n, name in enumerate(("a1", "a2"))]
    text = reasons(play(ZONES, [*there, *full, pod("p", labels=X, **spread())]))["p"]
    assert "1 node(s) didn't match pod topology spread constraints" in text
    soft = spread(when="ScheduleAnyway")
    assert placed(play(ZONES, [*there, *full, pod("p", labels=X, **soft)])) == {"p": "b1"}


def test_a_node_without_the_label_is_out_for_hard_spreading() -> None:
    assert "has no label zone" in reasons(play([node("n")], [pod("p", labels=X, **spread())]))["p"]
