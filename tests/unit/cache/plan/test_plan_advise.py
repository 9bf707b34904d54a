"""What-if: the closed form against the simulators, and the text people read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan import Measured, SamplerOptions, Schedule, advise
from paddlecloud.cache.plan.advise import hit_ratio
from paddlecloud.cache.plan.eviction import replay
from paddlecloud.cache.plan.prefetch import Conditions, prefetch, window_of
from paddlecloud.cache.plan.schedule import flat

GIB = 1 << 30
RUN = Measured(
    samples=20_000,
    sample_bytes=100_000,
    samples_per_second=400,
    link_bytes_per_second=6_000_000,
    cache_bytes=500_000_000,
    nodes=4,
)


@pytest.mark.parametrize(("share", "expected"), [(0.10, 0.3167), (0.25, 0.5139), (0.50, 0.6504), (1.0, 0.692)])
def test_the_worked_example(share: float, expected: float) -> None:
    run = replace(RUN, cache_bytes=share * 2_000_000_000)
    assert sum(hit_ratio(run, epoch) for epoch in range(2, 11)) / 9 == pytest.approx(expected, abs=0.0005)


@settings(max_examples=25, deadline=None)
@given(nodes=st.integers(1, 6), share=st.floats(0, 1), epochs=st.integers(2, 10), shuffle=st.booleans())
def test_hit_ratios_agree_with_clairvoyant_eviction(nodes: int, share: float, epochs: int, shuffle: bool) -> None:
    count = 1_200
    schedule = Schedule(count, nodes, SamplerOptions(batch_size=10, shuffle=shuffle, epochs=epochs))
    each = [flat(schedule.node(0, epoch)) for epoch in schedule.epochs]
    held = int(share * count)
    hits = replay([sample for reads in each for sample in reads], held)[len(each[0]) :]
    run = Measured(
        samples=count,
        sample_bytes=1,
        samples_per_second=1,
        link_bytes_per_second=1,
        cache_bytes=held,
        nodes=nodes,
        epochs=epochs,
        shuffle=shuffle,
    )
    predicted = sum(hit_ratio(run, epoch) for epoch in range(2, epochs + 1)) / (epochs - 1)
    assert predicted == pytest.approx(sum(hits) / len(hits), abs=0.05)


@settings(max_examples=20, deadline=None)
@given(nodes=st.integers(1, 4), share=st.floats(0.05, 1), link=st.floats(0.1, 2))
def test_stall_agrees_with_the_model_of_prefetching(nodes: int, share: float, link: float) -> None:
    """Twelve epochs: the last ones are alike, as those the advice is about."""
    count, size, rate = 1_200, 1_000, 100.0
    epochs = 12
    schedule = Schedule(count, nodes, SamplerOptions(batch_size=10, shuffle=True, epochs=epochs))
    held = int(share * count)
    run = Measured(
        samples=count,
        sample_bytes=size,
        samples_per_second=rate,
        link_bytes_per_second=link * rate * size,
        cache_bytes=held * size,
        nodes=nodes,
        epochs=epochs,
    )
    figures = prefetch(
        [schedule.node(0, epoch) for epoch in schedule.epochs],
        Conditions(
            sample_bytes=size,
            cache_bytes=held * size,
            link=link * rate * size / nodes,
            step_seconds=10 * nodes / rate,
            window=window_of(held, count=count, step=10),
        ),
    )
    assert advise(run).total_seconds == pytest.approx(sum(epoch.seconds for epoch in figures), rel=0.12)


@settings(deadline=None)
@given(
    nodes=st.integers(1, 16),
    share=st.floats(0, 1),
    link=st.floats(0.01, 3),
    handover=st.booleans(),
    shuffle=st.booleans(),
)
def test_the_advised_cache_is_enough_and_less_is_not(
    nodes: int, share: float, link: float, handover: bool, shuffle: bool
) -> None:
    size = RUN.samples * RUN.sample_bytes
    demand = RUN.samples_per_second * RUN.sample_bytes
    run = replace(
        RUN,
        nodes=nodes,
        cache_bytes=share * size,
        link_bytes_per_second=link * demand,
        handover=handover,
        shuffle=shuffle,
    )
    advice = advise(run)
    slight = 1e-6 * advice.compute_seconds
    assert advice.cache_without_stall <= size
    assert advise(replace(run, cache_bytes=advice.cache_without_stall * 1.0001)).stall_seconds <= slight
    assert (
        advise(replace(run, link_bytes_per_second=max(1, advice.link_without_stall * 1.0001))).stall_seconds <= slight
    )
    if advice.cache_without_stall > 1:
        assert advise(replace(run, cache_bytes=advice.cache_without_stall * 0.98)).stall_seconds > 0
    more = advise(replace(run, cache_bytes=share * size + size / 10))
    assert more.epoch_seconds <= advice.epoch_seconds, "more cache never hurts"


def test_the_text_says_what_to_expect_and_what_would_help() -> None:
    assert str(advise(RUN)).splitlines() == [
        "20,000 samples of 98 KiB on 4 nodes, 477 MiB of cache on each, 5.7 MiB/s from the origin, "
        "400 samples/s when nothing waits",
        "computing alone        50s an epoch",
        "first epoch, cold      5m33s",
        "later epochs           2m26s, of which 1m36s waiting; 56% of reads hit the cache, 834 MiB cross the link",
        "all 10 epochs          29m52s",
        "Any of these would end the waiting:",
        "  1.1 GiB of cache on each node",
        "  501 MiB of cache on each node, and nodes that hand samples over to their next reader",
        "  17 MiB/s from the origin",
    ]


def test_a_link_that_keeps_up_needs_nothing() -> None:
    text = str(advise(replace(RUN, link_bytes_per_second=GIB)))
    assert text.endswith("The link keeps up: no larger cache is needed.")


@pytest.mark.parametrize("field", ["samples", "sample_bytes", "samples_per_second", "link_bytes_per_second", "nodes"])
def test_what_cannot_be_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        replace(RUN, **{field: 0})
