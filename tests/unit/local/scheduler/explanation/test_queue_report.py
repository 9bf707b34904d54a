"""What pages show of queues: who stands where, why it waits, and how much is in use; as the round itself decides."""

from __future__ import annotations

from hypothesis import given

from paddlecloud.local.scheduler.explanation.queue_report import QueueReport, queue_reports
from paddlecloud.local.scheduler.state.snapshot import pod_view
from unit.local.scheduler.explanation.test_scheduler_explain import CASES
from unit.local.scheduler.scheduler_things import node, play, pod, queue, reasons, snapshot
from unit.local.scheduler.scheduler_worlds import SchedulerInput, worlds


def report(world: SchedulerInput) -> dict[str, QueueReport]:
    view = snapshot(world.nodes, world.pods, **world.kinds)
    return {found.queue.name: found for found in queue_reports(view, map(pod_view, world.waiting))}


def test_the_line_is_by_priority_then_age_and_says_what_is_missing() -> None:
    pods = [
        pod("runs", "3", on="a", queue="research"),
        pod("first", "2", queue="research"),
        pod("second", "2", queue="research"),
        pod("urgent", "9", queue="research", priority=10),
    ]
    world = SchedulerInput([node("a", "8")], pods, queues=[queue("research", capability={"cpu": "4"}), queue("idle")])
    found = report(world)
    assert [(one.unit.key.name, one.position) for one in found["research"].line] == [
        ("urgent", 1), ("first", 2), ("second", 3),
    ]  # fmt: skip
    why = found["research"].line[1].why
    assert why is not None
    assert "queue research may use 4 cpu" in why.message
    assert found["research"].used["cpu"] == 3 * 10**9
    assert found["idle"].line == ()


def test_what_the_next_round_places_has_no_reason_to_wait() -> None:
    found = report(SchedulerInput([node("a", "8")], [pod("fits", "2")]))
    assert [(one.unit.key.name, one.why) for one in found["default"].line] == [("fits", None)]


@given(worlds())
@CASES
def test_everybody_who_waits_is_in_one_line_with_the_reason_of_the_round(world: SchedulerInput) -> None:
    found = report(world)
    refusals = reasons(play(world.nodes, world.pods, **world.kinds))
    shown: dict[str, str] = {}
    for each in found.values():
        assert [one.position for one in each.line] == list(range(1, len(each.line) + 1))
        for one in each.line:
            for member in one.unit.pods:
                assert member.key.name not in shown
                shown[member.key.name] = one.why.message if one.why else ""
    assert shown.keys() == {obj["metadata"]["name"] for obj in world.waiting}
    for name, text in shown.items():
        assert text == refusals.get(name, "") or not text
