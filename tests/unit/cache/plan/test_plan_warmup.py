"""What is cached where before training begins, and how much of an epoch then finds its samples at home."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan import SamplerOptions, Schedule, warmup_shards
from paddlecloud.cache.plan.schedule import flat


def at_home(shards: list[list[int]], schedule: Schedule, epoch: int = 0) -> float:
    """Share of an epoch's reads that find their sample in their own node's shard."""
    hits = reads = 0
    for shard, steps in zip(shards, schedule.epoch(epoch), strict=True):
        held = set(shard)
        reads += len(flat(steps))
        hits += sum(sample in held for sample in flat(steps))
    return hits / reads


def test_sequence_deals_in_turn() -> None:
    assert warmup_shards("sequence", 7, partitions=3, seed=0, sampler=None) == [[0, 3, 6], [1, 4], [2, 5]]


def test_random_is_uniform_and_repeatable() -> None:
    shards = warmup_shards("random", 10_000, partitions=4, seed=7)
    assert shards == warmup_shards("random", 10_000, partitions=4, seed=7)
    assert shards != warmup_shards("random", 10_000, partitions=4, seed=8)
    assert sorted(sample for shard in shards for sample in shard) == list(range(10_000))
    assert all(2_300 < len(shard) < 2_700 for shard in shards)
    assert [len(shard) for shard in warmup_shards("random", 8, partitions=2, seed=1)] == [4, 4], (
        "frozen across releases"
    )


def test_sampler_brings_the_first_epoch_in_reading_order() -> None:
    options = SamplerOptions(batch_size=2, shuffle=True)
    assert warmup_shards("sampler", 10, partitions=2, seed=0, sampler=options) == [[2, 8, 1, 6, 0], [4, 9, 7, 3, 5]]


def test_ranks_of_one_node_share_its_shard_step_by_step() -> None:
    options = SamplerOptions(batch_size=2, ranks_per_node=2)
    assert warmup_shards("sampler", 12, partitions=1, sampler=options) == [list(range(12))]
    two = warmup_shards("sampler", 16, partitions=2, sampler=options)
    assert two == [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]


def test_further_epochs_follow_each_sample_once() -> None:
    options = SamplerOptions(batch_size=2, shuffle=True, epochs=2)
    first, second = warmup_shards("sampler", 10, partitions=2, sampler=options)
    assert first == [2, 8, 1, 6, 0, 9, 3], "epoch 0, then what epoch 1 adds"
    assert second == [4, 9, 7, 3, 5, 6, 1]


@pytest.mark.parametrize("partitions", [2, 4, 8])
def test_only_the_sampler_plan_finds_a_shuffled_epoch_at_home(partitions: int) -> None:
    options = SamplerOptions(batch_size=32, shuffle=True)
    schedule = Schedule(20_003, partitions, options)
    for strategy, expected in (("sequence", 1 / partitions), ("random", 1 / partitions), ("sampler", 1.0)):
        shards = warmup_shards(strategy, 20_003, partitions=partitions, seed=1, sampler=options)
        assert at_home(shards, schedule) == pytest.approx(expected, abs=0.015), strategy


def test_sequence_fits_only_unshuffled_batches_of_one() -> None:
    for size, expected in ((1, 1.0), (32, 0.25)):
        schedule = Schedule(20_003, 4, SamplerOptions(batch_size=size))
        found = at_home(warmup_shards("sequence", 20_003, partitions=4), schedule)
        assert found == pytest.approx(expected, abs=0.01)


@settings(deadline=None)
@given(
    count=st.integers(0, 200),
    partitions=st.integers(1, 6),
    strategy=st.sampled_from(["sequence", "random", "sampler"]),
    options=st.builds(
        SamplerOptions,
        batch_size=st.integers(1, 9),
        shuffle=st.booleans(),
        epochs=st.integers(1, 3),
        start_epoch=st.integers(0, 5),
        ranks_per_node=st.integers(1, 3),
    ),
)
def test_every_strategy_covers_the_set(count: int, partitions: int, strategy: str, options: SamplerOptions) -> None:
    shards = warmup_shards(strategy, count, partitions=partitions, seed=3, sampler=options)
    assert len(shards) == partitions
    assert {sample for shard in shards for sample in shard} == set(range(count))
    assert all(len(shard) == len(set(shard)) for shard in shards), "no shard fetches a sample twice"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"strategy": "lucky", "count": 1, "partitions": 1}, "sequence, random, sampler"),
        ({"strategy": "random", "count": 1, "partitions": 0}, "0 partitions"),
        ({"strategy": "random", "count": -1, "partitions": 1}, "-1 samples"),
    ],
)
def test_what_cannot_be_spread_is_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        warmup_shards(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["batch_size", "epochs", "ranks_per_node"])
def test_options_name_the_field_that_is_wrong(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        SamplerOptions(**{field: 0})
