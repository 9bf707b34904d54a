"""How far a rank is, from reads that come nearly in order."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.cache.plan import SamplerOptions, Schedule, rank_reads
from paddlecloud.data.track import Track

OPTIONS = SamplerOptions(batch_size=4, shuffle=True, epochs=3)


def order(count: int, ranks: int, rank: int, epoch: int) -> list[int]:
    return rank_reads(count, ranks=ranks, rank=rank, batch_size=4, epoch=epoch, shuffle=True)


@settings(deadline=None)
@given(count=st.integers(1, 90), ranks=st.integers(1, 4), workers=st.integers(1, 4), data=st.data())
def test_workers_out_of_step_never_move_the_position_past_what_is_unread(
    count: int, ranks: int, workers: int, data: st.DataObject
) -> None:
    rank = data.draw(st.integers(0, ranks - 1))
    track = Track(Schedule(count, ranks, OPTIONS), rank)
    for epoch in range(3):
        reads = order(count, ranks, rank, epoch)
        batches = [reads[start : start + 4] for start in range(0, len(reads), 4)]
        queues = [list(chain.from_iterable(batches[worker::workers])) for worker in range(workers)]
        unread = list(reads)
        while any(queues):
            queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
            index = queue.pop(0)
            assert track.on_read(index) == epoch
            unread.remove(index)
            certain = reads[: track.position - epoch * track.per_epoch]
            assert all(certain.count(sample) + unread.count(sample) <= reads.count(sample) for sample in unread)
        assert track.position == (epoch + 1) * track.per_epoch
    assert not track.lost


def test_an_epoch_that_was_cut_short_is_followed_by_the_one_announced() -> None:
    track = Track(Schedule(40, 1, OPTIONS), 0)
    for index in order(40, 1, 0, 0)[:10]:
        track.on_read(index)
    track.begin(1)
    assert [track.on_read(index) for index in order(40, 1, 0, 1)[:8]] == [1] * 8
    assert track.position == 40 + 8


def test_a_read_that_never_comes_is_not_waited_for_without_end() -> None:
    options = SamplerOptions(batch_size=1, shuffle=False)
    track = Track(Schedule(1_000, 1, options), 0)
    for index in range(1, 60):
        track.on_read(index)
    assert track.position == 0, "a slow worker may yet read it"
    for index in range(60, 200):
        track.on_read(index)
    assert track.position == 200
    assert not track.lost


@pytest.mark.parametrize("reads", [range(999, -1, -1), [7] * 1_000, range(1_000, 2_000)])
def test_another_order_is_found_out(reads: list[int]) -> None:
    track = Track(Schedule(1_000, 1, SamplerOptions(batch_size=1, shuffle=True)), 0)
    for index in reads:
        track.on_read(index)
    assert track.lost
