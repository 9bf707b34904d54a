"""Samples that wait where they are read next: nothing is fetched twice, nothing waited for, and the slack is small."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan import SamplerOptions, Schedule
from paddlecloud.cache.plan.handover import fits, hand_over


def plan(count: int, nodes: int, **options: object) -> Schedule:
    return Schedule(count, nodes, SamplerOptions(shuffle=True, **options))  # type: ignore[arg-type]


def test_after_the_first_epoch_every_read_is_local() -> None:
    epochs = list(hand_over(plan(20_000, 4, batch_size=64, epochs=4)))
    assert [epoch.origin for epoch in epochs] == [20_000, 0, 0, 0]
    assert [epoch.local for epoch in epochs] == [0, 20_000, 20_000, 20_000]
    moved = [sum(map(len, epoch.moves)) for epoch in epochs]
    assert moved[:3] == pytest.approx([15_000] * 3, rel=0.01), "three quarters change their reader"
    assert moved[3] == 0, "nobody reads after the last epoch"


def test_the_slack_a_node_needs_is_two_percent_of_its_share() -> None:
    schedule = plan(20_000, 4, batch_size=64, epochs=4)
    assert fits(schedule, 5_100)
    assert not fits(schedule, 5_000)


@settings(deadline=None)
@given(
    count=st.integers(1, 120),
    nodes=st.integers(1, 5),
    size=st.integers(1, 9),
    ranks=st.integers(1, 2),
    drop_last=st.booleans(),
)
def test_moves_bring_every_sample_to_its_next_reader_in_time(
    count: int, nodes: int, size: int, ranks: int, drop_last: bool
) -> None:
    schedule = plan(count, nodes, batch_size=size, ranks_per_node=ranks, drop_last=drop_last, epochs=4)
    where: dict[int, set[int]] = {}
    for number, epoch in zip(schedule.epochs, hand_over(schedule), strict=True):
        steps = schedule.epoch(number)
        local = peer = origin = 0
        for step in range(len(steps[0])):
            for node in range(nodes):
                for sample in steps[node][step]:
                    places = where.setdefault(sample, set())
                    local += node in places
                    origin += not places
                    peer += bool(places) and node not in places
                    places.add(node)
            for node in range(nodes):
                for move in epoch.moves[node]:
                    if move.step == step:
                        assert node in where[move.sample], "sends what it has"
                        assert (move.needed_epoch, number) == (number + 1, epoch.epoch)
                        assert move.sample in schedule.node(move.target, move.needed_epoch)[move.needed_step]
                        where[move.sample].add(move.target)
        assert origin == epoch.origin
        assert local + peer + origin == epoch.local + epoch.peer + epoch.origin
        if number > 0 and not drop_last and ranks * nodes <= count:
            assert epoch.local == local + peer + origin, "every sample was sent to its reader"
