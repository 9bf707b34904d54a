"""What the scheduler keeps between rounds: assumptions, evictions, and which lanes are worth trying again."""

from __future__ import annotations

import copy

from paddlecloud.kube.resource import Object
from paddlecloud.local.scheduler.decision.decide import Round, decide
from paddlecloud.local.scheduler.state.snapshot import GroupKey
from paddlecloud.local.scheduler.state.state import State
from unit.local.scheduler.scheduler_things import group, node, pod, queue


def fed(*objects: Object) -> State:
    state = State()
    handlers = {"Node": state.on_node, "Pod": state.on_pod, "PodGroup": state.on_group, "Queue": state.on_queue}
    for obj in objects:
        handlers[obj["kind"]](None, obj)
    return state


def step(state: State) -> Round:
    """One round as the scheduler plays it, without its writes."""
    result = decide(state.snapshot(), state.due())
    for refused in result.refused:
        state.refused(refused.lane)
    for placed, where in result.placements:
        state.assume(placed, where)
    return result


def bound(obj: Object, where: str) -> Object:
    changed = copy.deepcopy(obj)
    changed["spec"]["nodeName"] = where
    return changed


def test_a_bound_pod_takes_its_room_before_the_cache_shows_it() -> None:
    first, second = pod("a", "3"), pod("b", "3")
    state = fed(node("n", "4"), first)
    assert len(step(state).placements) == 1
    state.on_pod(None, second)
    assert step(state).placements == []
    state.on_pod(first, bound(first, "n"))
    assert [p.key.name for p in state.snapshot().nodes["n"].pods] == ["a"]


def test_a_binding_that_failed_puts_the_pod_back() -> None:
    obj = pod("a", "3")
    state = fed(node("n", "4"), obj)
    step(state)
    state.give_up(obj["metadata"]["uid"])
    assert [p.key.name for p, _ in step(state).placements] == ["a"]


def test_a_pod_deleted_while_it_was_being_bound_takes_nothing() -> None:
    obj = pod("a", "3")
    state = fed(node("n", "4"), obj)
    step(state)
    state.on_pod(obj, None)
    state.give_up(obj["metadata"]["uid"])
    assert state.snapshot().nodes["n"].used == {}


def test_what_was_refused_is_tried_again_only_when_something_opened_up() -> None:
    there = pod("there", "4", on="n")
    state = fed(node("n", "4"), there, pod("a", "3"))
    assert len(step(state).refused) == 1
    assert state.due() == []
    changed = copy.deepcopy(there)
    changed["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    state.on_pod(there, changed)  # a detail of a running pod
    assert state.due() == []
    state.on_pod(changed, None)
    assert [p.key.name for p, _ in step(state).placements] == ["a"]


def test_a_pod_that_ends_opens_room() -> None:
    there = pod("there", "4", on="n")
    state = fed(node("n", "4"), there, pod("a", "3"))
    step(state)
    state.on_pod(there, {**there, "status": {"phase": "Succeeded"}})
    assert len(step(state).placements) == 1


def test_a_node_that_changes_opens_room_and_its_heartbeat_does_not() -> None:
    small = node("n", "1")
    state = fed(small, pod("a", "3"))
    step(state)
    beat = copy.deepcopy(small)
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:10Z"
    state.on_node(small, beat)
    assert state.due() == []
    state.on_node(beat, node("n", "4"))
    assert len(step(state).placements) == 1


def test_an_evicted_pod_is_leaving_before_the_cache_says_so() -> None:
    there = pod("there", "4", on="n")
    state = fed(node("n", "4"), there, pod("high", "3", priority=5))
    result = step(state)
    assert [e.pod.key.name for e in result.evictions] == ["there"]
    state.evicted(there["metadata"]["uid"])
    for preemptor, where in result.nominations:
        state.nominate(preemptor.uid, where)
    again = step(state)
    assert again.evictions == []
    assert [refused.why.code for refused in again.refused] == ["Preempting"]
    state.spared(there["metadata"]["uid"])
    assert not state.snapshot().nodes["n"].pods[0].leaving


def test_a_gang_is_complete_whichever_comes_first() -> None:
    members = [pod(f"g{number}", group="g") for number in range(2)]
    for objects in ([group("g", 2), *members], [*members, group("g", 2)]):
        assert len(step(fed(node("n"), *objects)).placements) == 2


def test_a_group_that_went_leaves_its_pods_waiting_for_it() -> None:
    made = group("g", 1)
    state = fed(node("n"), made, pod("g0", group="g"))
    state.on_group(made, None)
    assert [refused.why.code for refused in step(state).refused] == ["NoPodGroup"]


def test_nothing_is_kept_of_what_is_gone() -> None:
    made, member = group("g", 1), pod("g0", group="g")
    state = fed(node("n"), made, member)
    step(state)
    state.on_pod(member, None)
    state.on_group(made, None)
    assert GroupKey("default", "g") not in state.groups
    assert state.waiting == {}
    assert state.due() == []


def test_a_recreated_pod_of_the_same_name_is_another_pod() -> None:
    old, new = pod("a", "3", on="n"), pod("a", "3")
    state = fed(node("n", "4"), old)
    state.on_pod(old, new)
    assert [p.uid for p, _ in step(state).placements] == [new["metadata"]["uid"]]


def test_pods_of_another_scheduler_or_behind_gates_are_left_alone() -> None:
    others = [pod("a", schedulerName="mine"), pod("b", schedulingGates=[{"name": "wait"}])]
    assert fed(node("n"), *others).due() == []


def test_pods_on_a_node_that_is_not_known_yet_count_when_it_comes() -> None:
    state = fed(pod("there", "4", on="n"), pod("a", "1"))
    state.on_node(None, node("n", "4"))
    assert step(state).placements == []


def test_a_running_pod_that_changes_its_group_counts_for_the_new_one_and_its_queue() -> None:
    def in_group(name: str) -> Object:
        there = pod("there", "2", on="n", group=name)
        there["metadata"]["uid"] = "there"
        return there

    state = fed(node("n", "4"), queue("a"), queue("b"), group("one", 1, queue="a"), group("two", 1, queue="b"))
    first, second = in_group("one"), in_group("two")
    state.on_pod(None, first)
    state.on_pod(first, second)
    placed = {key.name: gang.placed for key, gang in state.snapshot().gangs.items()}
    assert placed == {"one": 0, "two": 1}
    assert not any(state.allocated("a").values())
    assert state.allocated("b")["cpu"] == state.snapshot().nodes["n"].used["cpu"]
    state.on_pod(second, None)
    assert not any(state.allocated("b").values())
