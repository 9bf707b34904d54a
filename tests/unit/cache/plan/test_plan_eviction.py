"""Dropping what is needed last: against the best that any policy could do, and on Paddle's real orders."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan import SamplerOptions, Schedule
from paddlecloud.cache.plan.eviction import NEVER, Clairvoyant, next_uses, replay
from paddlecloud.cache.plan.schedule import flat


@cache
def epochs_of_nodes() -> list[list[list[int]]]:
    """N=20,000, four ranks on four nodes, B=64, ten epochs: reads by epoch and node."""
    schedule = Schedule(20_000, 4, SamplerOptions(batch_size=64, shuffle=True, epochs=10))
    return [[flat(steps) for steps in schedule.epoch(epoch)] for epoch in schedule.epochs]


@pytest.mark.parametrize(("share", "goal"), [(0.10, 0.31), (0.25, 0.51), (0.50, 0.65)])
def test_a_small_cache_keeps_what_the_goals_promise(share: float, goal: float) -> None:
    hits = reads = 0
    for node in range(4):
        order = [sample for epoch in epochs_of_nodes() for sample in epoch[node]]
        found = replay(order, int(20_000 * share))[5_000:]
        hits, reads = hits + sum(found), reads + len(found)
    assert hits / reads >= goal


def test_one_rank_that_reads_everything_keeps_its_share_and_no_more() -> None:
    schedule = Schedule(2_000, 1, SamplerOptions(batch_size=64, shuffle=True, epochs=8))
    order = [sample for epoch in schedule.epochs for sample in flat(schedule.node(0, epoch))]
    found = replay(order, 700)[2_000:]
    assert sum(found) / len(found) == pytest.approx(0.35, abs=0.002)


@settings(max_examples=60, deadline=None)
@given(reads=st.lists(st.integers(0, 5), max_size=12), capacity=st.integers(0, 4))
def test_no_policy_does_better(reads: list[int], capacity: int) -> None:
    @cache
    def best(position: int, held: frozenset[int]) -> int:
        if position == len(reads):
            return 0
        sample = reads[position]
        if sample in held:
            return 1 + best(position + 1, held)
        kept = [held]  # read past the cache, or in the place of any
        if len(held) < capacity:
            kept.append(held | {sample})
        elif capacity:
            kept += [held - {victim} | {sample} for victim in held]
        return max(best(position + 1, choice) for choice in kept)

    assert sum(replay(reads, capacity)) == best(0, frozenset())


def test_next_uses_are_found_in_one_pass() -> None:
    following, first = next_uses([7, 8, 7, 9, 8])
    assert list(following) == [2, 4, NEVER, NEVER, NEVER]
    assert first == {7: 0, 8: 1, 9: 3}


def test_several_small_ones_go_for_a_large_one_or_none_at_all() -> None:
    kept = Clairvoyant(10)
    for sample, use in ((1, 50), (2, 40), (3, 10)):
        assert kept.admit(sample, 3, use) == []
    assert kept.admit(4, 7, 30) == [1, 2]
    assert (kept.used, sorted(kept)) == (10, [3, 4])
    assert kept.admit(5, 9, 20) is None, "3 is wanted sooner, and without it there is no room"
    assert (kept.used, sorted(kept)) == (10, [3, 4])
    assert kept.admit(6, 11, 1) is None, "larger than the cache"


@settings(deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["admit", "use", "drop"]), st.integers(0, 9), st.integers(1, 5)), max_size=80
    )
)
def test_the_books_balance_whatever_happens(steps: list[tuple[str, int, int]]) -> None:
    kept = Clairvoyant(12)
    sizes: dict[int, int] = {}
    for position, (act, sample, size) in enumerate(steps):
        if act == "admit" and sample not in kept:
            gone = kept.admit(sample, size, position + size)
            if gone is not None:
                sizes[sample] = size
                assert len(gone) == len(set(gone))
                for victim in gone:
                    del sizes[victim]
        elif act == "use" and sample in kept:
            kept.use(sample, position + size)
        elif act == "drop":
            kept.drop(sample)
            sizes.pop(sample, None)
        assert set(kept) == set(sizes)
        assert kept.used == sum(sizes.values()) <= 12


def test_a_new_plan_changes_who_goes_first() -> None:
    kept = Clairvoyant(2)
    kept.admit(1, 1, 10)
    kept.admit(2, 1, 20)
    kept.plan_anew({1: 9})
    assert kept.admit(3, 1, 15) == [2], "2 is in the new plan no more"


def test_the_heap_does_not_grow_with_the_reads() -> None:
    kept = Clairvoyant(3)
    for sample in range(3):
        kept.admit(sample, 1, sample)
    for position in range(10_000):
        kept.use(position % 3, position + 3)
    assert len(kept._farthest) < 2_000
