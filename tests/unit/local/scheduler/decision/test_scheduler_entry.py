"""Groups that wait to be let in: what is said of them is what the running scheduler decides, and what is advised works.

Advice is carried out here on the objects themselves, not by the code that gave it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cli.render.scheduling import Cluster, entry, lines_of
from paddlecloud.kube.quantity import amounts
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.gang_admission import LET_IN, explain_entry, obstacles
from paddlecloud.local.scheduler.explanation.explain import Explanation, machine_readable
from paddlecloud.local.scheduler.state.snapshot import gang_view
from paddlecloud.local.scheduler.state.state import State
from unit.local.scheduler.scheduler_things import group, node, pod, queue, snapshot
from unit.local.scheduler.scheduler_worlds import SchedulerInput, worlds

CASES = settings(max_examples=int(os.environ.get("PDC_EXAMPLES", "50")), deadline=None)


@st.composite
def applicants(draw: st.DrawFn) -> Object:
    least = {"cpu": str(draw(st.integers(0, 20)))}
    if draw(st.booleans()):
        least["nvidia.com/gpu"] = str(draw(st.integers(1, 5)))
    name = draw(st.sampled_from(["", "q0", "q1", "nowhere"]))
    return group("new", draw(st.integers(1, 4)), minResources=least, priority=draw(st.integers(0, 3)), queue=name)


def rank(applicant: Object) -> int:
    return int(applicant["spec"]["priority"])


def ask(world: SchedulerInput, applicant: Object) -> Explanation:
    view = snapshot(world.nodes, world.pods, **world.kinds)
    return explain_entry(view, gang_view(applicant, priority=rank(applicant)))


def let_in(world: SchedulerInput, applicant: Object) -> str:
    """What the scheduler says that keeps its own books; nothing: it lets the group in."""
    state = State()
    for take, objects in ((state.on_queue, world.queues), (state.on_node, world.nodes), (state.on_pod, world.pods)):
        for obj in objects:
            take(None, obj)
    gang = gang_view(applicant, priority=rank(applicant))
    found = obstacles(gang, state.queues(), free=state.free_for(rank(applicant)), have=state.capacity())
    return "; ".join(found.values())


def end(world: SchedulerInput, applicant: Object, data: Any) -> None:
    gone = {entry["pod"].removeprefix("default/") for entry in data["pods"]}
    world.pods = [obj for obj in world.pods if obj["metadata"]["name"] not in gone]


def priority(world: SchedulerInput, applicant: Object, data: Any) -> None:
    applicant["spec"]["priority"] = data["atLeast"]


def least(world: SchedulerInput, applicant: Object, data: Any) -> None:
    applicant["spec"]["minResources"] |= data["atMost"]


def uncordon(world: SchedulerInput, applicant: Object, data: Any) -> None:
    next(n for n in world.nodes if n["metadata"]["name"] == data["node"])["spec"].pop("unschedulable")


def make_queue(world: SchedulerInput, applicant: Object, data: Any) -> None:
    world.queues = [q for q in world.queues if q["metadata"]["name"] != data["name"]] + [queue(data["name"])]


def capability(world: SchedulerInput, applicant: Object, data: Any) -> None:
    next(q for q in world.queues if q["metadata"]["name"] == data["queue"])["spec"]["capability"] |= data["atLeast"]


def add_node(world: SchedulerInput, applicant: Object, data: Any) -> None:
    made = node("extra")
    made["status"]["allocatable"] = data["capacity"]
    world.nodes.append(made)


DO: dict[str, Callable[[SchedulerInput, Object, Any], None]] = {
    "end": end,
    "priority": priority,
    "least": least,
    "uncordon": uncordon,
    "queue": make_queue,
    "capability": capability,
    "node": add_node,
}


@CASES
@given(worlds(gangs=False), applicants())
def test_what_is_said_is_what_is_decided(world: SchedulerInput, applicant: Object) -> None:
    verdict = ask(world, applicant)
    decided = let_in(world, applicant)
    assert (verdict.code == LET_IN) == (decided == "")
    if decided:
        assert verdict.message == decided


@CASES
@given(worlds(gangs=False), applicants())
def test_every_change_it_offers_lets_the_group_in(world: SchedulerInput, applicant: Object) -> None:
    for remedy in ask(world, applicant).remedies:
        changed, asking = copy.deepcopy((world, applicant))
        DO[remedy.kind](changed, asking, remedy.data)
        assert let_in(changed, asking) == "", remedy


@CASES
@given(worlds(gangs=False), applicants())
def test_what_is_called_free_is_free_and_every_node_is_reported(world: SchedulerInput, applicant: Object) -> None:
    verdict = ask(world, applicant)
    if verdict.code == LET_IN:
        return
    assert {offer.node for offer in verdict.offers} == {n["metadata"]["name"] for n in world.nodes}
    for offer in verdict.offers:
        taken = sum(
            amounts(obj["spec"]["containers"][0]["resources"]["requests"])["cpu"]
            for obj in world.running
            if obj["spec"]["nodeName"] == offer.node
        )
        assert offer.free["cpu"] == max(0, offer.allocatable["cpu"] - taken)


def test_a_group_that_lacks_room_sees_what_is_free_where_and_who_has_the_rest() -> None:
    world = SchedulerInput([node("a", "4"), node("b", "4", unschedulable=True)], [pod("there", "3", on="a")])
    verdict = ask(world, group("g", 2, minResources={"cpu": "4"}, priority=0))
    assert verdict.message == "cpu: needs 4 in all, 1 free of 4"
    assert [(offer.node, offer.rule) for offer in verdict.offers] == [("a", ""), ("b", "cordon")]
    assert [remedy.kind for remedy in verdict.remedies] == ["uncordon", "end", "priority", "least", "node"]
    body = machine_readable(verdict)
    assert body["needs"] == {"all": {"cpu": "4"}, "pods": 0, "minMember": 2, "placed": 0}
    assert body["heldBy"][0]["pod"] == "default/there"


@pytest.mark.parametrize(
    ("queues", "lines"),
    [
        (
            [queue("q", capability={"cpu": "2"})],
            [
                "needs           2 pods at once, cpu 3 in all; none is made before its queue lets it in",
                "free            a: cpu 4 of 4",
                "let in if       queue q might use cpu 3",
                "                it asked for at most cpu 2 in all",
            ],
        ),
        (
            [],
            [
                "needs           2 pods at once, cpu 3 in all; none is made before its queue lets it in",
                "free            a: cpu 4 of 4",
                "let in if       the queue q existed and were open",
            ],
        ),
        ([queue("q")], ["its queue lets it in now; its pods are made next"]),
    ],
    ids=["too small", "missing", "open"],
)
def test_a_group_that_its_queue_holds_in_words(queues: list[Object], lines: list[str]) -> None:
    asking = group("g", 2, queue="q", minResources={"cpu": "3"})
    found = entry(Cluster([node("a", "4")], [], [asking], queues, [], {}), asking)
    assert lines_of(found, "en") == lines
    assert len(lines_of(found, "zh")) == len(lines)
