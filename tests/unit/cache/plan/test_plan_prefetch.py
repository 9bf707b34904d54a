"""The model of prefetching: what it does is possible, and what it promises follows from the parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan import SamplerOptions, Schedule, warmup_shards
from paddlecloud.cache.plan.prefetch import Conditions, prefetch, window_of
from paddlecloud.cache.plan.schedule import Steps

COUNT, NODES, STEP = 4_000, 4, 32
OPTIONS = SamplerOptions(batch_size=STEP, shuffle=True, epochs=6)
COMPUTE = 0.1
DEMAND = STEP * 1000 / COMPUTE
"""Bytes per second that the training of a node reads, with samples of 1,000 bytes."""


def epochs(node: int = 0) -> list[Steps]:
    schedule = Schedule(COUNT, NODES, OPTIONS)
    return [schedule.node(node, epoch) for epoch in schedule.epochs]


def conditions(*, share: float, link: float) -> Conditions:
    held = int(COUNT * share)
    window = window_of(held, count=COUNT, step=STEP)
    return Conditions(
        sample_bytes=1000, cache_bytes=held * 1000, link=link * DEMAND, step_seconds=COMPUTE, window=window
    )


def test_a_full_cache_and_the_sampler_plan_make_shuffled_epochs_local() -> None:
    shard = warmup_shards("sampler", COUNT, partitions=NODES, sampler=replace(OPTIONS, epochs=1))[0]
    for figures in prefetch(epochs(), conditions(share=1.0, link=0.9), held=shard):
        assert figures.hit_ratio >= 0.99
        assert figures.stall_seconds < 0.01 * figures.seconds


def test_a_link_that_keeps_up_with_training_hides_any_cache_size() -> None:
    for share in (0.1, 0.5):
        for figures in prefetch(epochs(), conditions(share=share, link=2.0))[1:]:
            assert figures.hit_ratio == 1.0
            assert figures.stall_seconds == 0


def test_without_a_cache_an_epoch_takes_what_the_link_takes() -> None:
    half = conditions(share=0.02, link=0.5)
    for figures in prefetch(epochs(), half)[1:]:
        assert figures.seconds == pytest.approx(COUNT / NODES * 1000 / half.link, rel=0.08)
        assert figures.origin / figures.reads > 0.9


def test_a_short_window_fetches_little_more_than_is_missing() -> None:
    """Running as far ahead as the cache allows would fetch nearly every read anew."""
    modest = conditions(share=0.1, link=4.0)
    greedy = replace(modest, window=COUNT)
    fetched = [sum(figures.origin for figures in prefetch(epochs(), each)[1:]) for each in (modest, greedy)]
    assert fetched[0] < 0.8 * fetched[1]


@settings(deadline=None)
@given(
    share=st.floats(0, 1),
    link=st.floats(0.1, 4),
    window=st.integers(0, 500),
    warm=st.booleans(),
)
def test_whatever_the_parameters_the_figures_can_be_true(share: float, link: float, window: int, warm: bool) -> None:
    schedule = Schedule(300, 2, replace(OPTIONS, batch_size=8, epochs=3))
    steps = [schedule.node(0, epoch) for epoch in schedule.epochs]
    size = 100
    rate = link * 8 * size / COMPUTE
    setting = Conditions(size, int(300 * share) * size, rate, COMPUTE, window)
    figures = prefetch(steps, setting, held=range(300) if warm else ())
    for epoch, reads in zip(figures, steps, strict=True):
        assert epoch.seconds == pytest.approx(len(reads) * COMPUTE + epoch.stall_seconds)
        assert 0 <= epoch.on_time <= epoch.reads == sum(map(len, reads))
    total = sum(epoch.origin for epoch in figures)
    held = int(300 * share) if warm else 0
    distinct = len({sample for reads in steps for step in reads for sample in step})
    assert total >= distinct - held
    assert total * size / rate <= sum(epoch.seconds for epoch in figures) + 1e-6, "the link is never faster than it is"
