"""Explanations: in every generated case they agree with the decision, and what they advise works.

Advice is carried out here on the objects themselves, not by the code that gave it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from paddlecloud.kube.quantity import amounts, parse
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.explanation.explain import Explanation, explain, machine_readable
from paddlecloud.local.scheduler.explanation.remedies import KINDS, Remedy
from paddlecloud.local.scheduler.state.snapshot import pod_view
from unit.local.scheduler.scheduler_things import group, node, play, pod, queue, snapshot
from unit.local.scheduler.scheduler_worlds import SchedulerInput, worlds

CASES = settings(max_examples=int(os.environ.get("PDC_EXAMPLES", "50")), deadline=None)


def ask(world: SchedulerInput, about: Object) -> Explanation:
    view = snapshot(world.nodes, world.pods, **world.kinds)
    found = explain(view, [pod_view(obj) for obj in world.waiting], about["metadata"]["uid"])
    assert found is not None
    return found


def group_of(obj: Object) -> str:
    return str(obj["metadata"]["annotations"].get("scheduling.k8s.io/group-name") or "")


def unit_of(world: SchedulerInput, about: Object) -> list[Object]:
    name = group_of(about)
    return [about] if not name else [obj for obj in world.waiting if group_of(obj) == name]


# What remedies mean, in objects


def end(world: SchedulerInput, about: Object, data: Any) -> None:
    gone = {entry["pod"].removeprefix("default/") for entry in data["pods"]}
    world.pods = [obj for obj in world.pods if not obj["spec"].get("nodeName") or obj["metadata"]["name"] not in gone]


def priority(world: SchedulerInput, about: Object, data: Any) -> None:
    for obj in unit_of(world, about):
        obj["spec"]["priority"] = data["atLeast"]


def request(world: SchedulerInput, about: Object, data: Any) -> None:
    for obj in unit_of(world, about):
        requests = obj["spec"]["containers"][0]["resources"]["requests"]
        for name, amount in data["atMost"].items():
            if name in requests and parse(requests[name]) > parse(amount):
                requests[name] = amount


def uncordon(world: SchedulerInput, about: Object, data: Any) -> None:
    next(n for n in world.nodes if n["metadata"]["name"] == data["node"])["spec"].pop("unschedulable")


def tolerate(world: SchedulerInput, about: Object, data: Any) -> None:
    toleration = {"key": data["key"], "effect": data["effect"]}
    toleration |= {"value": data["value"]} if data["value"] else {"operator": "Exists"}
    for obj in unit_of(world, about):
        obj["spec"].setdefault("tolerations", []).append(toleration)


def label(world: SchedulerInput, about: Object, data: Any) -> None:
    next(n for n in world.nodes if n["metadata"]["name"] == data["node"])["metadata"]["labels"].update(data["labels"])


def min_member(world: SchedulerInput, about: Object, data: Any) -> None:
    next(g for g in world.groups if g["metadata"]["name"] == group_of(about))["spec"] |= data


def pods(world: SchedulerInput, about: Object, data: Any) -> None:
    for number in range(data["more"]):
        twin = copy.deepcopy(unit_of(world, about)[-1])
        twin["metadata"] |= {"name": f"twin-{number}", "uid": f"twin-{number}", "creationTimestamp": "2027"}
        world.pods.append(twin)


def make_group(world: SchedulerInput, about: Object, data: Any) -> None:
    world.groups.append(group(data["name"], data["minMember"]))


def make_queue(world: SchedulerInput, about: Object, data: Any) -> None:
    world.queues = [q for q in world.queues if q["metadata"]["name"] != data["name"]] + [queue(data["name"])]


def capability(world: SchedulerInput, about: Object, data: Any) -> None:
    found = next(q for q in world.queues if q["metadata"]["name"] == data["queue"])
    found["spec"].setdefault("capability", {}).update(data["atLeast"])


def add_node(world: SchedulerInput, about: Object, data: Any) -> None:
    for number in range(data["count"]):
        made = node(f"extra-{number}", labels=data["labels"])
        made["status"]["allocatable"] = data["capacity"]
        world.nodes.append(made)


DO: dict[str, Callable[[SchedulerInput, Object, Any], None]] = {
    "end": end,
    "priority": priority,
    "request": request,
    "uncordon": uncordon,
    "tolerate": tolerate,
    "label": label,
    "min-member": min_member,
    "pods": pods,
    "group": make_group,
    "queue": make_queue,
    "capability": capability,
    "node": add_node,
}


def test_every_kind_of_remedy_is_carried_out_here() -> None:
    assert set(DO) == set(KINDS)


def starts(world: SchedulerInput, about: Object) -> bool:
    """Whether the next round places it, or drives others out for it."""
    result = play(world.nodes, world.pods, **world.kinds)
    names = {obj["metadata"]["name"] for obj in unit_of(world, about)}
    return any(pod.key.name in names for pod, _ in [*result.placements, *result.nominations])


def carry_out(world: SchedulerInput, about: Object, remedy: Remedy) -> SchedulerInput:
    changed = copy.deepcopy(world)
    target = next(obj for obj in changed.pods if obj["metadata"]["uid"] == about["metadata"]["uid"])
    DO[remedy.kind](changed, target, remedy.data)
    return changed


def now_done(world: SchedulerInput) -> SchedulerInput:
    """The cluster after its next round, in which explanations are given."""
    result = play(world.nodes, world.pods, **world.kinds)
    settled = copy.deepcopy(world)
    where = {pod.uid: name for pod, name in result.placements}
    promised = {pod.uid: name for pod, name in result.nominations}
    leaving = {eviction.pod.uid for eviction in result.evictions}
    for obj in settled.pods:
        uid = obj["metadata"]["uid"]
        if uid in where:
            obj["spec"]["nodeName"] = where[uid]
        if uid in promised:
            obj["status"]["nominatedNodeName"] = promised[uid]
        if uid in leaving:
            obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return settled


@CASES
@given(worlds())
def test_the_explanation_agrees_with_the_decision(world: SchedulerInput) -> None:
    result = play(world.nodes, world.pods, **world.kinds)
    placed = {pod.uid: name for pod, name in result.placements}
    refused = {p.uid: r.why for r in result.refused for unit in r.units for p in unit.pods}
    for obj in world.waiting:
        uid = obj["metadata"]["uid"]
        verdict = ask(world, obj)
        if uid in placed:
            assert (verdict.code, verdict.node) == ("Placed", placed[uid])
        else:
            assert (verdict.code, verdict.message) == (refused[uid].code, refused[uid].message)


@CASES
@given(worlds())
def test_every_remedy_works(world: SchedulerInput) -> None:
    for obj in world.waiting:
        verdict = ask(world, obj)
        if verdict.placed or verdict.code == "Preempting":
            continue
        settled = now_done(world)
        for remedy in verdict.remedies:
            changed = carry_out(settled, obj, remedy)
            about = next(o for o in changed.pods if o["metadata"]["uid"] == obj["metadata"]["uid"])
            assert starts(changed, about), f"{remedy} does not help {obj['metadata']['name']}: {verdict.message}"


@CASES
@given(worlds(queues=False, pod_affinity=False))
def test_a_refused_pod_always_has_a_remedy(world: SchedulerInput) -> None:
    for obj in world.waiting:
        verdict = ask(world, obj)
        assert verdict.placed or verdict.code in ("Preempting", "GangIncomplete") or verdict.remedies


def need(obj: Object) -> dict[str, int]:
    return {"pods": parse(1), **amounts(obj["spec"]["containers"][0]["resources"]["requests"])}


@CASES
@given(worlds())
def test_what_is_said_to_be_free_is_free(world: SchedulerInput) -> None:
    settled = now_done(world)
    for obj in world.waiting:
        verdict = ask(world, obj)
        for offer in verdict.offers:
            real = next(n for n in settled.nodes if n["metadata"]["name"] == offer.node)
            have = amounts(real["status"]["allocatable"])
            for name, free in offer.free.items():
                used = sum(need(p).get(name, 0) for p in settled.running if p["spec"]["nodeName"] == offer.node)
                assert free == max(0, have.get(name, 0) - used)


@CASES
@given(worlds())
def test_blockers_are_there_and_hold_what_is_said(world: SchedulerInput) -> None:
    settled = {obj["metadata"]["uid"]: obj for obj in now_done(world).pods}
    for obj in world.waiting:
        for blocker in ask(world, obj).blockers:
            real = settled[blocker.pod.uid]
            if real["spec"].get("nodeName"):
                assert real["spec"]["nodeName"] == blocker.node
            assert all(pod_view(real).requests[name] == amount for name, amount in blocker.holds.items())


# A few by hand


def the(world: SchedulerInput, name: str) -> Object:
    return next(obj for obj in world.pods if obj["metadata"]["name"] == name)


def kinds(verdict: Explanation) -> dict[str, Any]:
    return {remedy.kind: remedy.data for remedy in verdict.remedies}


def test_a_full_node_names_who_fills_it_and_what_would_do() -> None:
    world = SchedulerInput([node("n", "4")], [pod("there", "3", on="n"), pod("p", "2")])
    verdict = ask(world, the(world, "p"))
    assert [(str(b.pod.key), b.node) for b in verdict.blockers] == [("default/there", "n")]
    assert kinds(verdict) == {
        "end": {"pods": [{"pod": "default/there", "node": "n"}]},
        "priority": {"atLeast": 1},
        "request": {"atMost": {"cpu": "1"}},
        "node": {"count": 1, "capacity": {"cpu": "2", "pods": "1"}, "labels": {}},
    }


def test_no_remedy_ends_a_pod_of_the_same_owner() -> None:
    """A job that is scaled beyond its node: to end a sibling would only move the shortage."""
    world = SchedulerInput([node("n", "4")], [pod("job-0", "3", on="n"), pod("job-1", "2")])
    for obj in world.pods:
        obj["metadata"]["ownerReferences"] = [{"kind": "PaddleJob", "name": "job", "uid": "u", "controller": True}]
    verdict = ask(world, the(world, "job-1"))
    assert set(kinds(verdict)) == {"request", "node"}
    assert [str(b.pod.key) for b in verdict.blockers] == ["default/job-0"], "that it holds the room is true"
    world.pods.append(pod("stranger", "1", on="n"))
    assert "end" not in kinds(ask(world, the(world, "job-1"))), "nobody else holds enough"
    world = SchedulerInput([node("n", "8")], [*world.pods, pod("large", "4", on="n")])
    assert kinds(ask(world, the(world, "job-1")))["end"] == {"pods": [{"pod": "default/large", "node": "n"}]}


@pytest.mark.parametrize(
    ("fields", "spec", "expected"),
    [
        ({"unschedulable": True}, {}, {"uncordon": {"node": "n"}}),
        (
            {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
            {},
            {"tolerate": {"key": "a", "value": "b", "effect": "NoSchedule"}},
        ),
        ({}, {"nodeSelector": {"disk": "ssd"}}, {"label": {"node": "n", "labels": {"disk": "ssd"}}}),
    ],
)
def test_a_closed_node_can_be_opened(fields: Any, spec: Any, expected: Any) -> None:
    world = SchedulerInput([node("n", **fields)], [pod("p", **spec)])
    found = kinds(ask(world, the(world, "p")))
    assert {name: found[name] for name in expected} == expected


def test_a_gang_too_big_may_be_smaller() -> None:
    world = SchedulerInput([node("n", "4")], [pod(f"g{n}", "2", group="g") for n in range(3)], [group("g", 3)])
    found = kinds(ask(world, the(world, "g1")))
    assert found["min-member"] == {"minMember": 2}
    assert found["request"] == {"atMost": {"cpu": "1333m"}}
    assert found["node"]["capacity"] == {"cpu": "6", "pods": "3"}


def test_a_full_queue_may_be_widened() -> None:
    world = SchedulerInput(
        [node("n", "8")],
        [pod("t", "3", on="n", queue="q"), pod("p", "2", queue="q")],
        queues=[queue("q", capability={"cpu": "4"})],
    )
    found = kinds(ask(world, the(world, "p")))
    assert found["capability"] == {"queue": "q", "atLeast": {"cpu": "5"}}
    assert found["end"] == {"pods": [{"pod": "default/t", "node": "n"}]}


def test_the_verdict_for_programs_has_the_same_numbers() -> None:
    world = SchedulerInput([node("n", "4")], [pod("there", "3", on="n"), pod("p", "2")])
    body = machine_readable(ask(world, the(world, "p")))
    assert body["needs"] == {"each": {"cpu": "2"}, "pods": 1}
    assert body["nodes"][0]["free"] == {"cpu": "1", "pods": "99"}
    assert body["heldBy"] == [{"pod": "default/there", "node": "n", "holds": {"cpu": "3"}, "priority": 0}]
    assert {entry["change"] for entry in body["wouldStartIf"]} == {"end", "priority", "request", "node"}


def test_what_can_be_placed_is_said_to_be_placed() -> None:
    world = SchedulerInput([node("n", "4")], [pod("p", "2")])
    assert ask(world, the(world, "p")).node == "n"
