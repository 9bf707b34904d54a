"""What holds in every cluster: nobody over capacity, gangs whole, only the less important leave, no room unused."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube.quantity import total
from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.attempt import choose, refusals_of
from paddlecloud.local.scheduler.decision.decide import Round, decide
from paddlecloud.local.scheduler.decision.draft import Draft
from paddlecloud.local.scheduler.decision.scores import POLICIES, Policy
from paddlecloud.local.scheduler.decision.session import Session
from paddlecloud.local.scheduler.state.snapshot import Pod, Snapshot, pod_view
from paddlecloud.local.scheduler.state.state import State
from paddlecloud.local.scheduler.state.units import units_of
from unit.local.scheduler.scheduler_things import snapshot
from unit.local.scheduler.scheduler_worlds import SchedulerInput, worlds

CASES = settings(max_examples=int(os.environ.get("PDC_EXAMPLES", "50")), deadline=None)
policies = st.sampled_from([POLICIES["spread"], POLICIES["pack"], replace(POLICIES["spread"], sample=1, start=3)])


def view(world: SchedulerInput) -> Snapshot:
    return snapshot(world.nodes, world.pods, **world.kinds)


def play(world: SchedulerInput, policy: Policy = POLICIES["spread"]) -> Round:
    taken = view(world)
    return decide(taken, units_of([pod_view(obj) for obj in world.waiting], taken.gangs), policy=policy)


def after(world: SchedulerInput, result: Round) -> Snapshot:
    """The cluster once everything decided is done."""
    draft = Draft(view(world), POLICIES["spread"])
    for eviction in result.evictions:
        draft.take_away(eviction.pod, eviction.node)
    for pod, node in [*result.placements, *result.nominations]:
        draft.place(pod, node)
    return replace(draft.snapshot, nodes=dict(draft.nodes), guarded=True)


@CASES
@given(worlds(), policies)
def test_no_node_is_ever_over_its_capacity(world: SchedulerInput, policy: Policy) -> None:
    for node in after(world, play(world, policy)).nodes.values():
        for resource, amount in total(pod.requests for pod in node.pods).items():
            assert amount <= node.allocatable.get(resource, 0) or not amount


@CASES
@given(worlds(), policies)
def test_bindings_alone_fit_beside_what_is_still_there(world: SchedulerInput, policy: Policy) -> None:
    """Victims leave in their own time: what is bound now must fit without their leaving."""
    result = play(world, policy)
    draft = Draft(view(world), policy)
    for pod, node in result.placements:
        draft.place(pod, node)
    for node in draft.nodes.values():
        assert all(amount <= node.allocatable.get(name, 0) or not amount for name, amount in node.used.items())


@CASES
@given(worlds(), policies)
def test_a_gang_is_placed_from_its_least_number_on_or_not_at_all(world: SchedulerInput, policy: Policy) -> None:
    result = play(world, policy)
    for gang in view(world).gangs.values():
        placed = sum(1 for pod, _ in result.placements if pod.group == gang.key)
        assert placed == 0 or placed + gang.placed >= gang.min_member


@CASES
@given(worlds(), policies)
def test_every_waiting_pod_is_placed_or_gets_a_reason(world: SchedulerInput, policy: Policy) -> None:
    result = play(world, policy)
    placed = [pod.uid for pod, _ in result.placements]
    reported = [pod.uid for refused in result.refused for unit in refused.units for pod in unit.pods]
    assert sorted(placed + reported) == sorted(obj["metadata"]["uid"] for obj in world.waiting)
    assert all(refused.why.message and refused.why.code for refused in result.refused)


@CASES
@given(worlds(), policies)
def test_no_rule_is_broken_by_a_placement(world: SchedulerInput, policy: Policy) -> None:
    """Each pod, taken out again alone, is welcome where it was put; but company may have been found later."""
    result = play(world, policy)
    draft = Draft(view(world), policy)
    for pod, node in result.placements:
        session = Session(replace(draft.snapshot, nodes=dict(draft.nodes), guarded=True), [], policy)
        assert node not in refusals_of(session, pod)
        draft.place(pod, node)


@CASES
@given(worlds())
def test_queues_stay_within_their_limits(world: SchedulerInput) -> None:
    result = play(world)
    taken = view(world)
    for queue in taken.queues.values():
        before = taken.allocated.get(queue.name, {})
        new = total(pod.requests for pod, _ in result.placements if taken.queue_of(pod) == queue.name)
        for resource, limit in queue.capability.items():
            assert not new.get(resource) or before.get(resource, 0) + new[resource] <= limit


@CASES
@given(worlds(queues=False))
def test_only_less_important_pods_are_made_to_leave(world: SchedulerInput) -> None:
    result = play(world)
    ranks = {unit.key: unit.priority for refused in result.refused for unit in refused.units}
    for eviction in result.evictions:
        assert eviction.pod.priority < ranks[eviction.preemptor]
        assert not eviction.pod.leaving


@CASES
@given(worlds(queues=False, gangs=False, pod_affinity=False))
def test_no_victim_could_have_stayed(world: SchedulerInput) -> None:
    result = play(world)
    if len({eviction.preemptor for eviction in result.evictions}) != 1:
        return  # with several, one's victim may be another's room
    end = after(world, result)
    for eviction in result.evictions:
        node = end.nodes[eviction.node].with_pod(eviction.pod)
        assert any(node.free(name) < 0 for name in eviction.pod.requests)


@CASES
@given(worlds(priorities=0, queues=False))
def test_who_is_refused_really_finds_no_node(world: SchedulerInput) -> None:
    """On the cluster as it is after the round, no node takes a single pod that was refused for want of one."""
    result = play(world)
    end = after(world, result)
    for refused in result.refused:
        if refused.why.code != "Unschedulable":
            continue
        for unit in refused.units:
            if unit.gang is None and not _seeks_company(unit.pods[0]):
                assert choose(Session(end, [], POLICIES["spread"]), unit.pods[0]) is None


def _seeks_company(pod: Pod) -> bool:
    """It may have come after the pod was refused; the next round will see it."""
    return pod.shape.pod_affinity is not None and bool(pod.shape.pod_affinity.near)


@CASES
@given(worlds(), st.randoms(use_true_random=False))
def test_what_the_state_keeps_equals_what_is_there(world: SchedulerInput, random: object) -> None:
    """Fed in any order, with repeats, the incremental state gives the snapshot that the objects themselves give."""
    state = State()
    news: list[tuple[str, Object]] = [("node", obj) for obj in world.nodes]
    news += [("pod", obj) for obj in world.pods] * 2
    news += [("group", obj) for obj in world.groups]
    news += [("queue", obj) for obj in world.queues]
    random.shuffle(news)  # type: ignore[attr-defined]
    handlers = {"node": state.on_node, "pod": state.on_pod, "group": state.on_group, "queue": state.on_queue}
    for kind, obj in news:
        handlers[kind](None, obj)
    kept, fresh = state.snapshot(), view(world)
    assert set(kept.nodes) == set(fresh.nodes)
    for name, node in fresh.nodes.items():
        other = kept.nodes[name]
        assert {pod.uid for pod in other.pods} == {pod.uid for pod in node.pods}
        assert {k: v for k, v in other.used.items() if v} == {k: v for k, v in node.used.items() if v}
    assert kept.gangs == fresh.gangs
    waiting = {pod.uid for lane in state.due() for unit in lane.units for pod in unit.pods}
    assert waiting == {obj["metadata"]["uid"] for obj in world.waiting}
    for group in state.groups.values():
        assert group.counts == Counter(group.phases.values())
    leaving = list(world.pods)
    random.shuffle(leaving)  # type: ignore[attr-defined]
    for obj in leaving:
        state.on_pod(obj, None)
    empty = state.snapshot()
    assert not any(node.pods or any(node.used.values()) for node in empty.nodes.values())
    assert not any(gang.placed or gang.placed_tasks for gang in empty.gangs.values())
    assert not any(any(used.values()) for used in empty.allocated.values())
    assert state.due() == []
